package gateway

// endpoint is what the journey must know of the address that was asked.
type endpoint struct {
	path string // below /v1; "" for a stored answer, whose path holds its id

	// decodes: the answer is generated token by token, so its stream is
	// measured, and it weighs its sequences. Whatever does not decode holds a
	// place for caps and health only, and is passed through.
	decodes bool

	basic  bool // every engine has it: where it is missing, the backend's URL is wrong
	quick  bool // nothing is generated: its answer takes no longer than a first token
	events bool // an answer may be a stream of events though it is not measured
	form   bool // the body may be multipart/form-data
	stores bool // the answer has an id that stays with its backend
	stored bool // the request is about such an answer, and has no model
	counts bool // the request is only counted: its prompt goes into no limit
}

// journeys are the endpoints that are served by backends.
var journeys = []*endpoint{
	{path: "/chat/completions", decodes: true, basic: true},
	{path: "/completions", decodes: true, basic: true},
	{path: "/responses", decodes: true, stores: true},
	{path: messagesPath, decodes: true},
	{path: messagesPath + "/count_tokens", counts: true, quick: true},
	{path: "/embeddings", quick: true},
	{path: "/rerank", quick: true},
	{path: "/moderations", quick: true},
	{path: "/images/generations", events: true},
	{path: "/audio/speech", events: true},
	{path: "/audio/transcriptions", events: true, form: true},
}

// messagesPath, and what is below it, speaks Anthropic's dialect.
const messagesPath = "/messages"

// storedAnswer is what a client does with an answer that a backend keeps.
var storedAnswer = &endpoint{stored: true, quick: true}
