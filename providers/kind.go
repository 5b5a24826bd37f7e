package providers

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Serves reports whether a request to path, which is below the base URL, can be
// sent to this backend as it is. One of kind anthropic speaks Messages and nothing
// else. Of other kinds it is true even where the engine may lack the endpoint: that
// it says itself, and Has knows.
func (b *Backend) Serves(path string) bool { return b.kind.Serves(path) }

// FormOf returns the form in which b is asked to generate with model, and what it
// calls that model.
func (b *Backend) FormOf(model string) (f upstream.Form, name string) { return b.kind.FormOf(model) }

// IsEngine reports whether b is, or may be, an inference engine, which has fields
// beside OpenAI's own.
func (b *Backend) IsEngine() bool { return b.kind.IsEngine() }

// thinks are the names of OpenAI's models that do not know max_tokens.
var thinks = regexp.MustCompile(`(?:^|/)(?:o[1-9]|gpt-[5-9])`)

// WantsCompletionLimit reports whether model is asked with max_completion_tokens
// for no more than so many tokens. Engines and older models know max_tokens; what
// model a deployment has, its name need not say.
func (b *Backend) WantsCompletionLimit(model string) bool {
	return b.kind.HasDeployments() || thinks.MatchString(model)
}

// MistralChats reports whether b takes chats of Mistral's form alone.
func (b *Backend) MistralChats() bool { return b.kind.Mistral }

// Continues is how b goes on with a text that another backend began.
func (b *Backend) Continues() upstream.Continue { return b.kind.Continue }

// Kind is the word of b's kind.
func (b *Backend) Kind() string { return b.kind.Word }

// Counts reports whether the tokens of a prompt for model are surely counted here, at
// path: by Anthropic's own API, or Google's. Not all engines that speak Messages can.
func (b *Backend) Counts(path, model string) bool {
	if endpoint.Of(path).PartOf(endpoint.Google) {
		f, _ := b.kind.FormOf(model)
		return f.Count != ""
	}
	return b.kind.API&endpoint.Anthropic != 0
}

// Deploys reports whether a call of path has the model in its URL. Such a model
// has to be the name of a deployment (upstream.DeploymentName).
func (b *Backend) Deploys(path string) bool { return b.deploys && endpoint.Of(path).Deployed }

// Keeps reports whether b may keep what clients leave there, such as vector stores: it
// speaks OpenAI's API itself. Engines keep nothing of that kind.
func (b *Backend) Keeps() bool { return b.kind.AnyServer || b.kind.HasDeployments() }

// NamesDeployments reports whether b calls its models deployments: Azure's API with a
// version in the query.
func (b *Backend) NamesDeployments() bool { return b.deploys }

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
	if elsewhere := b.kind.Paths[path]; elsewhere != "" || endpoint.Of(path).Root {
		prefix, escaped, path = b.kind.Root(prefix), b.kind.Root(escaped), cmp.Or(elsewhere, path)
	}
	if c.Model != "" && b.Deploys(path) {
		prefix += "/deployments/" + c.Model
		escaped += "/deployments/" + url.PathEscape(c.Model)
	}
	if c.Escaped {
		escaped += path
		if plain, err := url.PathUnescape(path); err == nil {
			path = plain
		}
	} else {
		escaped += (&url.URL{Path: path}).EscapedPath()
	}
	u.Path, u.RawPath = prefix+path, escaped
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
