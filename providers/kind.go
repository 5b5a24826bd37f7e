package providers

import (
	"net/url"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/endpoint"
)

// Kinds of backends: what is different in how they are reached, what they serve
// and how they say that they cannot.
const (
	kindOpenAI    = "openai"
	kindVLLM      = "vllm"
	kindSGLang    = "sglang"
	kindLlamaCpp  = "llamacpp"
	kindTGI       = "tgi"
	kindOllama    = "ollama"
	kindAzure     = "azure"
	kindAnthropic = "anthropic"
)

var kinds = []string{kindOpenAI, kindVLLM, kindSGLang, kindLlamaCpp, kindTGI, kindOllama, kindAzure, kindAnthropic}

// anthropicVersion is sent where the client names no version of the Messages API.
const anthropicVersion = "2023-06-01"

// Serves reports whether a request to path, which is below the base URL, can be
// sent to this backend. One of kind anthropic speaks Messages and nothing else,
// and nothing is translated into it; it alone is asked to count tokens. Of other
// kinds it is true even where the engine may lack the endpoint: that it says
// itself.
func (b *Backend) Serves(path string) bool {
	api := endpoint.OpenAI
	if b.kind == kindAnthropic {
		api = endpoint.Anthropic
	}
	return endpoint.Of(path).PartOf(api)
}

// keyHeader is the header that carries the API key of a kind, and what comes
// before the key in it.
func keyHeader(kind string) (name, before string) {
	switch kind {
	case kindAzure:
		return "Api-Key", ""
	case kindAnthropic:
		return "X-Api-Key", ""
	}
	return "Authorization", "Bearer "
}

// Deploys reports whether a call of path has the model in its URL. Such a model
// has to be the name of a deployment (config.DeploymentName).
func (b *Backend) Deploys(path string) bool {
	return b.kind == kindAzure && strings.HasSuffix(b.base.Path, "/openai") && endpoint.Of(path).Deployed
}

// target returns the URL for a call: path and query behind those of the base.
// The base's query parameters stand, whatever the client's say.
//
// Azure's older API has the deployment, which is the model, in the path. A base
// URL that ends in /openai is one of it; one that ends in a deployment or in
// /openai/v1 already says all.
func (b *Backend) target(c Call) *url.URL {
	path, query, _ := strings.Cut(c.Path, "?")
	u := *b.base
	prefix, escaped := u.Path, u.EscapedPath()
	if c.Model != "" && b.Deploys(path) {
		prefix += "/deployments/" + c.Model
		escaped += "/deployments/" + url.PathEscape(c.Model)
	}
	u.Path, u.RawPath = prefix+path, escaped+(&url.URL{Path: path}).EscapedPath()
	u.RawQuery = joinQueries(u.RawQuery, query)
	return &u
}

// joinQueries returns ours and the parameters of theirs that it does not have.
func joinQueries(ours, theirs string) string {
	if ours == "" || theirs == "" {
		return ours + theirs
	}
	var names []string
	for p := range strings.SplitSeq(ours, "&") {
		names = append(names, parameterName(p))
	}
	for p := range strings.SplitSeq(theirs, "&") {
		if p != "" && !slices.Contains(names, parameterName(p)) {
			ours += "&" + p
		}
	}
	return ours
}

func parameterName(p string) string {
	name, _, _ := strings.Cut(p, "=")
	if plain, err := url.QueryUnescape(name); err == nil {
		return plain
	}
	return name
}
