package endpoint

import (
	"cmp"
	"net/http"
	"strings"
)

// Endpoint is what the house must know of an address that clients ask. The zero
// value is an endpoint that is not known: one JSON document, passed through.
type Endpoint struct {
	// Path is below /v1. {id} stands for one step that the client names, * at its end
	// for all that follows.
	Path string

	// Root: Path stands at the root of a server in place of its /v1, at the
	// gateway and at the backend.
	Root bool

	// Methods are those that it is asked with; nil = POST.
	Methods []string

	Dialect Dialect

	// Decodes: the answer is generated token by token, so its stream is
	// measured, and it weighs its sequences. Whatever does not decode holds a
	// place for caps and health only, and is passed through.
	Decodes bool

	Basic  bool // every engine has it: where it is missing, the backend's URL is wrong
	Quick  bool // nothing is generated: its answer takes no longer than a first token
	Events bool // an answer may be a stream of events though it is not measured
	Form   bool // the body may be multipart/form-data
	Stores bool // the answer has an id that stays with its backend
	Stored bool // the request is about such an answer, and has no model
	Socket bool // the answer is a session over WebSocket, and the model in the query
	Pinned bool // the request is about what one backend keeps for its key; Stored too
	Counts bool // the request is only counted: its prompt goes into no limit

	Continues bool // the request may go on from an answer that its backend keeps

	// Default is the model of a body that names none, as OpenAI's API has it; "" =
	// there is no such.
	Default string

	// APIs are those that it is part of; 0 = OpenAI's. A backend serves it whose
	// kind has one of them.
	APIs API

	// Flows: its answers are streams, which is said by its path alone.
	Flows bool

	// Deployed: Azure's API with a version in the query has the model in the
	// path of it.
	Deployed bool

	// Pasted: who copies its whole address into a backend's url is told so.
	Pasted bool
}

// API is a set of those that backends have.
type API uint8

// OpenAI's is that of most engines, which speak Messages as well, or say
// themselves that they do not.
const (
	OpenAI API = 1 << iota
	Anthropic
	Google
	Cohere
	Foreign // of a dialect that no endpoint has: what goes there was translated
)

// messages, and what is below it, speaks Anthropic's dialect.
const messages = "/messages"

const files = "/files"

var table = []*Endpoint{
	{Path: "/chat/completions", Dialect: Chat, Decodes: true, Basic: true, Deployed: true, Pasted: true},
	{Path: "/completions", Dialect: Completions, Decodes: true, Basic: true, Deployed: true, Pasted: true},
	{Path: "/responses", Dialect: Responses, Decodes: true, Stores: true, Continues: true, Pasted: true},
	{Path: "/responses/input_tokens", Dialect: Documents, Counts: true, Continues: true, Quick: true},
	{Path: "/responses/compact", Dialect: Documents, Continues: true},
	{Path: messages, Dialect: Messages, Decodes: true, Pasted: true, APIs: OpenAI | Anthropic},
	{Path: messages + "/count_tokens", Dialect: Documents, Counts: true, Quick: true, APIs: OpenAI | Anthropic},

	// Google's: the model stands in the path, and Asked finds it there.
	{Path: modelStep + "generateContent", Dialect: Generate, Decodes: true, APIs: Google},
	{Path: modelStep + "streamGenerateContent", Dialect: Generate, Decodes: true, Flows: true, APIs: Google},
	{Path: modelStep + "countTokens", Dialect: Documents, Counts: true, Quick: true, APIs: Google},

	{Path: "/embeddings", Dialect: Documents, Quick: true, Deployed: true, Pasted: true},
	{Path: "/rerank", Dialect: Documents, Quick: true, APIs: OpenAI | Cohere},
	{Path: "/moderations", Dialect: Documents, Quick: true, Default: "omni-moderation-latest"},
	{Path: "/images/generations", Dialect: Images, Events: true, Deployed: true, Default: "dall-e-2"},
	{Path: "/images/edits", Dialect: Images, Events: true, Form: true, Deployed: true, Default: "dall-e-2"},
	{Path: "/images/variations", Dialect: Images, Form: true, Default: "dall-e-2"},
	{Path: "/audio/speech", Dialect: Speech, Events: true, Deployed: true},
	{Path: "/audio/transcriptions", Dialect: Transcription, Events: true, Form: true, Deployed: true},
	{Path: "/audio/translations", Dialect: Transcription, Form: true, Deployed: true},

	{Path: "/realtime", Methods: []string{http.MethodGet}, Dialect: Documents, Socket: true, Quick: true},

	// What vLLM, SGLang and llama.cpp have beside OpenAI's, and Cohere's.
	{Path: "/tokenize", Root: true, Dialect: Documents, Quick: true},
	{Path: "/detokenize", Root: true, Dialect: Documents, Quick: true},
	{Path: "/score", Root: true, Dialect: Documents, Quick: true},
	{Path: "/classify", Root: true, Dialect: Documents, Quick: true},
	{Path: "/pooling", Root: true, Dialect: Documents, Quick: true},
	{Path: "/v2/chat", Root: true, Dialect: CohereChat, Decodes: true, APIs: Cohere},
	{Path: "/v2/rerank", Root: true, Dialect: Documents, Quick: true, APIs: OpenAI | Cohere},
	{Path: "/v2/embed", Root: true, Dialect: Documents, Quick: true, APIs: OpenAI | Cohere},

	// What a client does with an answer that a backend keeps.
	{Path: "/responses/{id}", Methods: []string{http.MethodGet, http.MethodDelete}, Stored: true, Quick: true},
	{Path: "/responses/{id}/cancel", Stored: true, Quick: true},
	{Path: "/responses/{id}/input_items", Methods: []string{http.MethodGet}, Stored: true, Quick: true},

	// What a client keeps at a hosted API. Of files, those for batch jobs are Pacer's own.
	{Path: files, Methods: []string{http.MethodGet, http.MethodPost}, Stored: true, Pinned: true, Quick: true},
	{Path: files + "/*", Methods: []string{http.MethodGet, http.MethodDelete}, Stored: true, Pinned: true, Quick: true},
	{Path: "/vector_stores", Methods: []string{http.MethodGet, http.MethodPost}, Stored: true, Pinned: true, Quick: true},
	{Path: "/vector_stores/*", Methods: []string{http.MethodGet, http.MethodPost, http.MethodDelete}, Stored: true, Pinned: true, Quick: true},
	{Path: "/fine_tuning/*", Methods: []string{http.MethodGet, http.MethodPost, http.MethodDelete}, Stored: true, Pinned: true, Quick: true},
}

// AskedWith returns the methods of e.
func (e *Endpoint) AskedWith() []string {
	if e.Methods == nil {
		return []string{http.MethodPost}
	}
	return e.Methods
}

// PartOf reports whether e is part of api.
func (e *Endpoint) PartOf(api API) bool { return cmp.Or(e.APIs, OpenAI)&api != 0 }

// Documented reports whether what e generates nothing for is answered in JSON: vectors,
// scores, images. Sound and words of it are not.
func (e *Endpoint) Documented() bool {
	return !e.Decodes && !e.Stored && !e.Socket && (e.Dialect == Documents || e.Dialect == Images)
}

var unknown = &Endpoint{}

// All returns the endpoints, which nobody may change.
func All() []*Endpoint { return table }

// Of returns the endpoint at path, which is below /v1 and may have a query, or
// one of which nothing is known: so it is of answers that are kept, since their
// paths hold an id.
func Of(path string) *Endpoint {
	path, _, _ = strings.Cut(path, "?")
	for _, e := range table {
		if e.Path == path {
			return e
		}
	}
	return unknown
}

// InMessages reports whether the clients of path, which is below /v1, are those
// of the Messages API.
func InMessages(path string) bool {
	rest, ok := strings.CutPrefix(path, messages)
	return ok && (rest == "" || rest[0] == '/')
}
