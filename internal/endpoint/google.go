package endpoint

import (
	"slices"
	"strings"
)

// modelStep is how the paths of Google's API begin, behind the version. What is to
// be done with the model follows.
const modelStep = "/models/{model}:"

// googleVersions are what its addresses begin with that no other API has, and
// everybody's, under which Vertex AI has projects and publishers.
var (
	googleVersions = []string{"/v1beta/", "/v1beta1/", "/v1alpha/"}
	vertexSteps    = []string{"/v1/projects/", "/v1/publishers/"}
)

// GoogleBases are the bases of addresses that only Google's clients have.
func GoogleBases() []string { return append(append([]string(nil), googleVersions...), vertexSteps...) }

// Asked returns the endpoint of Google's API that is asked at path, and the model
// that stands in it; nil where there is none. A model of another publisher at Vertex
// AI has its publisher before it.
func Asked(path string) (e *Endpoint, model string) {
	rest, verb, ok := cutLast(strings.TrimSuffix(path, "/"), ":")
	if !ok {
		return nil, ""
	}
	e = Of(modelStep + verb)
	before, model, ok := strings.Cut(rest, "/models/")
	if e == unknown || !ok || !nameable(model) {
		return nil, ""
	}
	if _, publisher, ok := cutLast(before, "/publishers/"); ok && publisher != "google" {
		model = publisher + "/" + model
	}
	return e, model
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// InGoogle reports whether the clients of path, which begins with its version, are
// those of Google's API.
func InGoogle(path string) bool {
	if slices.ContainsFunc(GoogleBases(), func(base string) bool { return strings.HasPrefix(path, base) }) {
		return true
	}
	e, _ := Asked(path)
	return e != nil
}
