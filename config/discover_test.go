package config

import (
	"slices"
	"testing"
)

// No two backends of an expanded configuration have one name, whatever was
// found: everything that is counted is counted by it.
func TestExpandGivesEachEngineANameOfItsOwn(t *testing.T) {
	c, err := Parse("test.yaml", []byte(`backends:
  - { name: a, url: "http://a/v1", discover: dns }
  - { name: a-b, url: "http://b/v1", discover: dns }
  - { name: a-10.0.0.7-8000, url: "http://c/v1" }
routes: [ { model: m, targets: [ { backend: a }, { backend: a-b }, { backend: a-10.0.0.7-8000 } ] } ]
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	c = c.Expand(map[string][]string{"a": {"10.0.0.7:8000", "b-1:80", "[fd00::1]:80"}, "a-b": {"1:80", "2:80"}})
	var backends, targets []string
	for _, b := range c.Backends {
		backends = append(backends, b.Name)
	}
	for _, t := range c.Routes[0].Targets {
		targets = append(targets, t.Backend)
	}
	want := []string{"a-b-1-80", "a-fd00__1-80", "a-b-2-80", "a-10.0.0.7-8000"}
	if !slices.Equal(backends, want) || !slices.Equal(targets, want) {
		t.Errorf("backends %q, targets %q; want %q", backends, targets, want)
	}
}
