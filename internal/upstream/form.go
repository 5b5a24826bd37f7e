package upstream

import (
	"net/url"
	"strings"
)

// Dialect is the form in which a backend is asked to generate, and answers. Two
// kinds of one dialect take the same body and send the same stream; what differs
// between them is in their rows.
type Dialect string

// The zero value is the dialect of most: bytes pass through as they are.
const (
	OpenAI    Dialect = ""          // chat completions, completions, responses: whatever the client asked for
	Anthropic Dialect = "anthropic" // Messages
	Gemini    Dialect = "gemini"    // generateContent
	Cohere    Dialect = "cohere"    // its chat
	Converse  Dialect = "converse"  // Bedrock's; its streams are AWS event streams, not lines
)

// Form is one way to ask a backend to generate. What is translated for it goes to
// Generate or Stream, and has neither a model nor a stream in its body where these
// are set. The zero value is that of OpenAI's kinds.
type Form struct {
	// Prefix is what models of this form begin with; "" = any. It is no part of
	// what the backend calls them.
	Prefix string

	Dialect Dialect

	// Generate, Stream and Count are where it is asked for a document, for a stream,
	// and to count a prompt, below the base URL, {model} being the model; "" = at
	// the endpoints of the dialect, with the model in the body.
	Generate, Stream, Count string

	// Set are fields that a body has to have, in place of what the dialect puts
	// into headers.
	Set map[string]string
}

// FormOf returns the form in which a backend of this kind is asked to generate
// with model, and what it calls that model. k is what At returned.
func (k *Kind) FormOf(model string) (f Form, name string) {
	for _, f := range k.Forms {
		if rest, ok := strings.CutPrefix(model, f.Prefix); ok {
			return f, rest
		}
	}
	return Form{}, model
}

// Path returns where f is asked, with the model in it: for a stream, or a
// document. "" = at the endpoint of the dialect.
func (f Form) Path(model string, stream bool) string {
	path := f.Generate
	if stream {
		path = f.Stream
	}
	return withModel(path, model)
}

// CountPath returns where f counts a prompt; "" = nowhere, or at the endpoint of
// the dialect.
func (f Form) CountPath(model string) string { return withModel(f.Count, model) }

// withModel puts a model into a path as one step of it, whatever it holds: a
// slash in it, as in ARNs, must not lead elsewhere.
func withModel(path, model string) string {
	return strings.Replace(path, "{model}", url.PathEscape(model), 1)
}

// At returns what k is at a base URL: k itself, or one of its layers.
func (k *Kind) At(base string) *Kind {
	base, _, _ = strings.Cut(base, "?")
	for _, l := range k.Layers {
		if strings.HasSuffix(base, l.End) {
			at := l.Kind
			at.Word, at.Name, at.Home = k.Word, k.Name, k.Home
			return &at
		}
	}
	return k
}
