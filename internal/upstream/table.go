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

	// Headers are sent where the client has none of that name.
	Headers map[string]string

	// HealthPage tells whether the server is well, below its root; "" = it is not
	// looked at: hosted APIs have no such page, and requests to others cost.
	HealthPage string

	// Gauges are how its page of metrics tells its load; nil = it has none.
	Gauges *Gauges

	Usage Usage
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
	{Word: Default, Name: "OpenAI", AnyServer: true, Usage: Usage{Nulls: true, Print: true}},
	{
		Word: "vllm", Name: "vLLM", HealthPage: "/health",
		Gauges: &Gauges{"vllm:", "vllm:num_requests_running", "vllm:num_requests_waiting"},
		Usage:  Usage{Continuous: true, Nulls: true, Print: true},
	},
	{
		Word: "sglang", Name: "SGLang", HealthPage: "/health",
		Gauges: &Gauges{"sglang:", "sglang:num_running_reqs", "sglang:num_queue_reqs"},
		Usage:  Usage{Continuous: true},
	},
	{
		Word: "tgi", Name: "TGI", HealthPage: "/health",
		Gauges: &Gauges{"tgi_", "tgi_batch_current_size", "tgi_queue_size"},
	},
	{
		Word: "llamacpp", Name: "llama.cpp", HealthPage: "/health",
		Gauges: &Gauges{"llamacpp:", "llamacpp:requests_processing", "llamacpp:requests_deferred"},
	},
	{Word: "ollama", Name: "Ollama", mistaken: ollamaMistaken, HealthPage: "/", Usage: Usage{Zeros: true}},
	{
		Word: "azure", Name: "Azure", query: azureQuery, AnyPath: true, deployments: true,
		KeyHeader: "Api-Key", Usage: Usage{Nulls: true},
	},
	{
		Word: "anthropic", Name: "Anthropic", API: endpoint.Anthropic,
		KeyHeader: "X-Api-Key", Headers: map[string]string{"Anthropic-Version": "2023-06-01"},
		Usage: Usage{Unasked: true},
	},
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

func list(of func(*Kind) (text string, ok bool)) (all []string) {
	for _, k := range table {
		if text, ok := of(k); ok {
			all = append(all, text)
		}
	}
	return all
}

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
