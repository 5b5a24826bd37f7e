package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/internal/must"
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
	must.Do(t, err)
	c = c.Expand(map[string][]Found{"a": standing("10.0.0.7:8000", "b-1:80", "[fd00::1]:80"), "a-b": standing("1:80", "2:80")})
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

func TestAPortIsANameOrANumber(t *testing.T) {
	for text, want := range map[string]bool{
		"http": true, "80-81": true, "8000": true, "65535": true, "0": false, "000": false, "65536": false, "99999999999999999999": false,
	} {
		if got := isPortOrName(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func standing(addresses ...string) (list []Found) {
	for _, a := range addresses {
		list = append(list, Found{Standing: Standing{Address: a}})
	}
	return list
}

// What a pod says of itself replaces what the configuration says of the backend,
// but for what would move connections, read files or give away secrets.
func TestEnginesSayWhatTheyAre(t *testing.T) {
	c := mustParse(t, `backends: [ { name: a, url: "http://a:8000/v1", kind: openai, api_key: k, price: { input: 1, output: 2 }, discover: { kubernetes: { service: vllm } } } ]
routes: [ { model: m, targets: [ { backend: a } ] } ]
`, nothing)
	b := c.Backends[0]
	got := must.Get(b.With(map[string]string{"kind": "vllm", "price": "{ input: 0.2, output: 0.6 }", "prior": "llama-3.1-70b/h200/vllm", "max_concurrency": "64", "usd_per_hour": "2.5", "labels": "{ gpu: H200 }"}))(t)
	if got.Kind != "vllm" || got.Price.Output != 0.6 || got.Prior.Preset != "llama-3.1-70b/h200/vllm" || got.MaxConcurrency != 64 || got.USDPerHour != 2.5 || got.Labels["gpu"] != "H200" {
		t.Errorf("got %+v", got)
	}
	if b.Kind != "openai" || b.Price.Output != 2 {
		t.Errorf("the backend itself has changed: %+v", b)
	}
	for name, text := range map[string]string{
		"url": "http://evil/v1", "api_key_file": "/etc/passwd", "ca_file": "x", "headers": "{ a: b }", "egress_proxy": "http://evil:1", "api_key": "x",
		"kind": "vertex", "prior": "{ file: /etc/passwd }", "labels": "{ a: \"${HOME}\" }", "price": "1\nurl: http://evil", "max_concurrency": "-1", "models": "[", "usd_per_hour": ".nan",
	} {
		same, err := b.With(map[string]string{name: text})
		if err == nil {
			t.Errorf("%s: %s is taken", name, text)
		}
		if diff := cmp.Diff(b, same); diff != "" {
			t.Errorf("%s: %s changes\n%s", name, text, diff)
		}
	}
}

// Pods' names are long; what is left of them is told apart.
func TestNamesOfPodsAreCut(t *testing.T) {
	pod := func(s string) Found {
		return Found{Name: "vllm-llama-3-1-70b-instruct-decode-workers-7d9f8b6c5d-" + s}
	}
	one, two := engineName("h200-pool", pod("abcde")), engineName("h200-pool", pod("fghij"))
	if len(one) > 64 || len(two) > 64 || one == two || one != engineName("h200-pool", pod("abcde")) {
		t.Errorf("names %q and %q", one, two)
	}
	if got := engineName("h200", Found{Name: "vllm-0"}); got != "h200-vllm-0" {
		t.Errorf("got %q", got)
	}
}
