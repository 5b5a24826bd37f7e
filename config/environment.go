package config

import (
	"crypto/sha256"
	"strings"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// baseVariable and keyVariable are the variables of a start without a file.
const baseVariable, keyVariable = "OPENAI_BASE_URL", "OPENAI_API_KEY"

// Source is what a configuration was made of. After Parse it says nothing of files.
type Source struct {
	File      string   // that Load read, as an absolute path; "" = none
	Variables []string // that FromEnvironment took; nil = none

	// Ignored are the variables of a start without a file that are set, though there
	// is a file and it does not refer to them. It is nil while OPENAI_BASE_URL is not
	// one of them: a key alone starts nothing.
	Ignored []string

	// files are those that Load read, as they were just before: the configuration
	// and what it names. nil = nothing was read.
	files stamps

	// Warnings are what Parse wants said though it is no error, by line, each
	// as FILE:LINE:COL: text.
	Warnings []string

	// plain are the keys that stand there as plain text, by the warning of each.
	plain map[string][sha256.Size]byte
}

// Source returns what c was made of. It is not to be changed.
func (c *Config) Source() Source { return c.source }

// seen returns getenv, and a function that tells whether it was asked for a variable.
func seen(getenv func(string) (string, bool)) (asking func(string) (string, bool), asked func(string) bool) {
	names := map[string]bool{}
	return func(name string) (string, bool) {
		names[name] = true
		return getenv(name)
	}, func(name string) bool { return names[name] }
}

// setOf returns those of the variables of a start without a file that hold something,
// and of which but says no.
func setOf(getenv func(string) (string, bool), but func(string) bool) (names []string) {
	for _, name := range []string{baseVariable, keyVariable} {
		if text, _ := getenv(name); strings.TrimSpace(text) != "" && !but(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || names[0] != baseVariable {
		return nil
	}
	return names
}

// FromEnvironment builds the configuration of a start without a file:
// OPENAI_BASE_URL and OPENAI_API_KEY give one backend and a catch-all route
// without a floor, open to this machine alone. The error is an Errors.
func FromEnvironment(getenv func(string) (string, bool)) (*Config, error) {
	r := &reader{file: "environment"}
	text, _ := getenv(baseVariable)
	text = strings.TrimSpace(text)
	kind := upstream.Of(upstream.Default)
	base, wrong := kind.BaseURL(text)
	switch {
	case text == "":
		r.problem(place{}, "there is no configuration; name a file with -c pacer.yaml, or set OPENAI_BASE_URL to a backend such as http://127.0.0.1:8000/v1")
	case wrong != "":
		r.problem(place{}, "OPENAI_BASE_URL: %s", wrong)
	}
	key, _ := getenv(keyVariable)
	if !upstream.HeaderValue(key) {
		r.problem(place{}, "OPENAI_API_KEY holds a line break, a control character or outer blanks, which no HTTP header can carry; take them out")
	}
	if err := r.result(); err != nil {
		return nil, err
	}
	c, b, route := defaulted[Config](), defaulted[Backend](), defaulted[Route]()
	c.Store = inMemory()
	c.source.Variables = setOf(getenv, func(string) bool { return false })
	b.Name, b.URL, b.APIKey = "default", base, Secret(key)
	route.Models = []string{everyModel}
	route.Targets = []Target{{Backend: b.Name}}
	route.steps(r, object{})
	c.Backends, c.Routes = []Backend{b}, []Route{route}
	if kind.Doubtful(base) {
		c.source.Warnings = append(c.source.Warnings, "environment: OPENAI_BASE_URL does not end in a version; most engines serve under /v1, as in http://127.0.0.1:8000/v1")
	}
	return &c, nil
}
