package config

import (
	"strings"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// FromEnvironment builds the configuration of a start without a file:
// OPENAI_BASE_URL and OPENAI_API_KEY give one backend and a catch-all route
// without a floor, open to this machine alone. The error is an Errors.
func FromEnvironment(getenv func(string) (string, bool)) (*Config, error) {
	r := &reader{file: "environment"}
	text, _ := getenv("OPENAI_BASE_URL")
	text = strings.TrimSpace(text)
	kind := upstream.Of(upstream.Default)
	base, wrong := kind.BaseURL(text)
	switch {
	case text == "":
		r.problem(place{}, "there is no configuration; name a file with -c pacer.yaml, or set OPENAI_BASE_URL to a backend such as http://127.0.0.1:8000/v1")
	case wrong != "":
		r.problem(place{}, "OPENAI_BASE_URL: %s", wrong)
	}
	key, _ := getenv("OPENAI_API_KEY")
	if !upstream.HeaderValue(key) {
		r.problem(place{}, "OPENAI_API_KEY holds a line break, a control character or outer blanks, which no HTTP header can carry; take them out")
	}
	if err := r.result(); err != nil {
		return nil, err
	}
	c, b, route := defaulted[Config](), defaulted[Backend](), defaulted[Route]()
	c.Store = inMemory()
	b.Name, b.URL, b.APIKey = "default", base, Secret(key)
	route.Models = []string{everyModel}
	route.Targets = []Target{{Backend: b.Name}}
	route.steps(r, object{})
	c.Backends, c.Routes = []Backend{b}, []Route{route}
	if kind.Doubtful(base) {
		c.Warnings = append(c.Warnings, "environment: OPENAI_BASE_URL does not end in a version; most engines serve under /v1, as in http://127.0.0.1:8000/v1")
	}
	return &c, nil
}
