package upstream

import (
	"net/url"
	"slices"

	"github.com/pacer-dev/pacer/internal/endpoint"
)

// Kind is what the house must know of one kind of backend. Zero values are
// what most kinds have.
type Kind struct {
	Word string // as kind: has it
	Name string // as people call it

	API endpoint.API // what it serves; 0 = OpenAI's

	// Home is the base URL of one that its maker hosts, which a backend need not
	// write; "" = it has none. {region} and {project} stand for the backend's.
	// GlobalHome is that of the region "global".
	Home, GlobalHome string

	// Forms are how it is asked to generate, where that is not by the endpoints of
	// API; nil = by them, and nothing is translated. The first whose Prefix a model
	// has is the one.
	Forms []Form

	// Layers are other APIs of the same maker on the same server. The first one is
	// it that the base URL's path ends in.
	Layers []Layer

	// Above is what the base URL's path has above its version, where endpoints at
	// the root of the server do not lie below it; "" = nothing.
	Above string

	// Paths are where it has pages and endpoints, by their paths, that stand
	// elsewhere: at the root of the server.
	Paths map[string]string

	// Unlisted: it has no list of what a target's model may be.
	Unlisted bool

	// Auth is who makes the credentials where a backend has no key: one of the
	// words of Auths; "" = nobody.
	Auth string

	// Service is what requests are signed for, with AWS's keys.
	Service string

	// AnyServer: it may be any server with the API, so that nothing follows from
	// what the kind does not have.
	AnyServer bool

	// query returns the query of the base URL, with its question mark, or what is
	// wrong with it; nil = no query may stand there. mistaken says what is wrong
	// with a base URL of this kind; nil = nothing but what is wrong with all.
	query    func(u *url.URL) (query, wrong string)
	mistaken func(base string) (wrong string)

	AnyPath bool // the base URL need not end in a version

	// deployments: below a base path that ends in /openai the model is a part of
	// the path. It has to be a DeploymentName.
	deployments bool

	KeyHeader string // that carries the API key; "" = Authorization, as a bearer's

	// KeyRefused reports whether an answer with status 400, which begins with start,
	// is about the key; nil = none is: there are 401 and 403.
	KeyRefused func(start []byte) bool

	// Headers are sent where the client has none of that name.
	Headers map[string]string

	// HealthPage tells whether the server is well, below its root; "" = it is not
	// looked at: hosted APIs have no such page, and requests to others cost.
	HealthPage string

	// Limits are how it tells its rate limits; nil = it does not.
	Limits []Limit

	// Gauges are how its page of metrics tells its load; nil = it has none.
	Gauges *Gauges

	Usage Usage

	Chats
}

// Chats are how a kind takes chats.
type Chats struct {
	Continue Continue

	// Prefixes: it keeps the beginnings of prompts in a cache, unless told not to.
	Prefixes bool

	// Mistral: its chats are of Mistral's form. They have fields and parts of their
	// own, and none of OpenAI's beside those.
	Mistral bool
}

// Continue is how a kind goes on with a text that another one began.
type Continue uint8

// The zero value is for those that cannot, or of which that is not known.
const (
	NoContinue     Continue = iota
	ContinueBehind          // with a final message of the assistant as it is, and with a completion behind its prompt
	ContinueTold            // as ContinueBehind, but a chat has to be told so: continue_final_message
)

// Layer is an API that a server has beside that of its kind.
type Layer struct {
	End  string // of the base URL's path, from a slash on
	Kind Kind   // without Word, Name and Home, which are those of the kind it belongs to
}

// Gauges are the names under which an engine exports its load.
type Gauges struct {
	Prefix           string // of everything that the engine itself exports
	Running, Waiting string // sequences with a slot, and without
}

// Usage is how streams of choices tell their tokens.
type Usage struct {
	// Unasked: they always do, and stream_options are not known.
	Unasked bool

	// Continuous: they do in every chunk, where asked to.
	Continuous bool

	// What an engine writes only because it was asked, and whose client must not
	// see it: Nulls, "usage":null wherever there is none yet; Zeros, a usage of
	// zeros in every chunk of completions. SGLang and others write nulls in every
	// stream: there they stay.
	Nulls, Zeros bool

	// Print: asked for usage, it moves the system_fingerprint to the event that
	// carries it. The default kind is often vLLM, too.
	Print bool
}

// Default is the word of the kind that a backend is of which nothing is said.
const Default = "openai"

var table = []*Kind{
	{Word: Default, Name: "OpenAI", AnyServer: true, Limits: openAILimits, Usage: Usage{Nulls: true, Print: true}},
	{
		Word: "vllm", Name: "vLLM", HealthPage: "/health",
		Gauges: &Gauges{"vllm:", "vllm:num_requests_running", "vllm:num_requests_waiting"},
		Usage:  Usage{Continuous: true, Nulls: true, Print: true},

		Chats: Chats{Continue: ContinueTold, Prefixes: true},
	},
	{
		Word: "sglang", Name: "SGLang", HealthPage: "/health",
		Gauges: &Gauges{"sglang:", "sglang:num_running_reqs", "sglang:num_queue_reqs"},
		Usage:  Usage{Continuous: true},

		Chats: Chats{Continue: ContinueTold, Prefixes: true},
	},
	{
		Word: "tgi", Name: "TGI", HealthPage: "/health",
		Gauges: &Gauges{"tgi_", "tgi_batch_current_size", "tgi_queue_size"},
	},
	{
		Word: "llamacpp", Name: "llama.cpp", HealthPage: "/health",
		Gauges: &Gauges{"llamacpp:", "llamacpp:requests_processing", "llamacpp:requests_deferred"},

		Chats: Chats{Continue: ContinueBehind},
	},
	{Word: "ollama", Name: "Ollama", mistaken: ollamaMistaken, HealthPage: "/", Usage: Usage{Zeros: true}},
	{
		Word: "azure", Name: "Azure", query: azureQuery, AnyPath: true, deployments: true,
		KeyHeader: "Api-Key", Limits: openAILimits, Usage: Usage{Nulls: true},
	},
	{
		Word: "anthropic", Name: "Anthropic", API: endpoint.Anthropic,
		Home:      "https://api.anthropic.com/v1",
		KeyHeader: "X-Api-Key", Headers: map[string]string{"Anthropic-Version": "2023-06-01"},
		Limits: anthropicLimits,
		Forms:  []Form{{Dialect: Anthropic}},
		Usage:  Usage{Unasked: true},
	},
	{
		Word: "gemini", Name: "Gemini", API: endpoint.Google,
		Home:      "https://generativelanguage.googleapis.com/v1beta",
		KeyHeader: "X-Goog-Api-Key", KeyRefused: googleKeyRefused,
		Forms: []Form{{
			Dialect: Gemini, Generate: "/models/{model}:generateContent",
			Stream: "/models/{model}:streamGenerateContent?alt=sse", Count: "/models/{model}:countTokens",
		}},
		Usage:  Usage{Unasked: true},
		Layers: []Layer{{End: "/openai", Kind: Kind{KeyRefused: googleKeyRefused}}},
	},
	{
		Word: "vertex", Name: "Vertex AI", API: endpoint.Google, AnyPath: true, Unlisted: true, Auth: AuthGoogle,
		Home:       "https://{region}-aiplatform.googleapis.com/v1/projects/{project}/locations/{region}",
		GlobalHome: "https://aiplatform.googleapis.com/v1/projects/{project}/locations/global",
		Forms: []Form{
			{
				Prefix: "anthropic/", Dialect: Anthropic, Generate: "/publishers/anthropic/models/{model}:rawPredict",
				Stream: "/publishers/anthropic/models/{model}:streamRawPredict",
				Set:    map[string]string{"anthropic_version": "vertex-2023-10-16"},
			},
			{
				Prefix: "google/", Dialect: Gemini, Generate: "/publishers/google/models/{model}:generateContent",
				Stream: "/publishers/google/models/{model}:streamGenerateContent?alt=sse", Count: "/publishers/google/models/{model}:countTokens",
			},
			{
				Dialect: Gemini, Generate: "/publishers/google/models/{model}:generateContent",
				Stream: "/publishers/google/models/{model}:streamGenerateContent?alt=sse", Count: "/publishers/google/models/{model}:countTokens",
			},
		},
		Usage:  Usage{Unasked: true},
		Layers: []Layer{{"/endpoints/openapi", Kind{AnyPath: true, Unlisted: true, Auth: AuthGoogle}}},
	},
	{
		Word: "bedrock", Name: "Bedrock", API: endpoint.Foreign, AnyPath: true, Unlisted: true, Auth: AuthAWS, Service: "bedrock",
		Home:   "https://bedrock-runtime.{region}.amazonaws.com",
		Forms:  []Form{{Dialect: Converse, Generate: "/model/{model}/converse", Stream: "/model/{model}/converse-stream"}},
		Usage:  Usage{Unasked: true},
		Layers: []Layer{{"/openai/v1", Kind{Unlisted: true, Auth: AuthAWS, Service: "bedrock"}}},
	},
	{
		Word: "mistral", Name: "Mistral", Home: "https://api.mistral.ai/v1",
		Limits: mistralLimits, Usage: Usage{Unasked: true}, // stream_options are an error
		Chats: Chats{Mistral: true},
	},
	{Word: "deepseek", Name: "DeepSeek", Home: "https://api.deepseek.com/v1", Usage: Usage{Nulls: true}},
	{
		Word: "cohere", Name: "Cohere", Home: "https://api.cohere.ai/compatibility/v1", Above: "/compatibility",
		Paths: map[string]string{"/rerank": "/v2/rerank", "/models": "/v1/models"},
		Layers: []Layer{{End: "/v2", Kind: Kind{
			API: endpoint.Cohere, Forms: []Form{{Dialect: Cohere}}, Usage: Usage{Unasked: true}, Paths: map[string]string{"/models": "/v1/models"},
		}}},
	},
	{Word: "groq", Name: "Groq", Home: "https://api.groq.com/openai/v1", Limits: openAILimits},
	{Word: "together", Name: "Together", Home: "https://api.together.xyz/v1", Limits: plainLimits},
	{Word: "fireworks", Name: "Fireworks", Home: "https://api.fireworks.ai/inference/v1", Limits: fireworksLimits},
	{Word: "openrouter", Name: "OpenRouter", Home: "https://openrouter.ai/api/v1", Limits: plainLimits},
	{Word: "xai", Name: "xAI", Home: "https://api.x.ai/v1", Limits: openAILimits},
}

// All returns the kinds, which nobody may change.
func All() []*Kind { return table }

// Of returns the kind of a word, "" standing for the default, or nil.
func Of(word string) *Kind {
	if word == "" {
		word = Default
	}
	if i := slices.IndexFunc(table, func(k *Kind) bool { return k.Word == word }); i >= 0 {
		return table[i]
	}
	return nil
}

// Words returns what kind: may be.
func Words() []string {
	return list(func(k *Kind) (string, bool) { return k.Word, true })
}

// WithGauges returns the words of the kinds whose load can be read.
func WithGauges() []string {
	return list(func(k *Kind) (string, bool) { return k.Word, k.Gauges != nil })
}

// Continuous returns the names of the kinds that count in every chunk.
func Continuous() []string {
	return list(func(k *Kind) (string, bool) { return k.Name, k.Usage.Continuous })
}

// Engines returns the words of the kinds that are, or may be, inference engines.
func Engines() []string {
	return list(func(k *Kind) (string, bool) { return k.Word, k.IsEngine() })
}

func list(of func(*Kind) (text string, ok bool)) (all []string) {
	for _, k := range table {
		if text, ok := of(k); ok {
			all = append(all, text)
		}
	}
	return all
}

// IsEngine reports whether it is, or may be, an inference engine: a server of its
// own, which needs no more than a URL.
func (k *Kind) IsEngine() bool { return k.Gauges != nil || k.AnyServer || k.HealthPage != "" }

// HasDeployments reports whether its models have the names that their owners chose.
func (k *Kind) HasDeployments() bool { return k.deployments }

// Serves reports whether a backend of this kind can be sent a request to path,
// which is below /v1. It may be one that the engine lacks: that it says itself.
func (k *Kind) Serves(path string) bool {
	api := k.API
	if api == 0 {
		api = endpoint.OpenAI
	}
	return endpoint.Of(path).PartOf(api)
}

// Key returns the header that carries the API key, and its value.
func (k *Kind) Key(secret string) (name, value string) {
	if k.KeyHeader != "" {
		return k.KeyHeader, secret
	}
	return "Authorization", "Bearer " + secret
}

// Pageless reports whether a server of this kind has no page of metrics.
func (k *Kind) Pageless() bool { return k.Gauges == nil && !k.AnyServer }
