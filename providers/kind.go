package providers

import (
	"net/url"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Serves reports whether a request to path, which is below the base URL, can be
// sent to this backend. One of kind anthropic speaks Messages and nothing else,
// and nothing is translated into it. Of other kinds it is true even where the
// engine may lack the endpoint: that it says itself.
func (b *Backend) Serves(path string) bool { return b.kind.Serves(path) }

// Kind is the word of b's kind.
func (b *Backend) Kind() string { return b.kind.Word }

// Counts reports whether the tokens of a prompt are surely counted here: by
// Anthropic's own API. Not all engines that speak Messages can.
func (b *Backend) Counts() bool { return b.kind.API&endpoint.Anthropic != 0 }

// Deploys reports whether a call of path has the model in its URL. Such a model
// has to be the name of a deployment (upstream.DeploymentName).
func (b *Backend) Deploys(path string) bool { return b.deploys && endpoint.Of(path).Deployed }

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
	if endpoint.Of(path).Root {
		prefix, escaped = upstream.Root(prefix), upstream.Root(escaped)
	}
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
