package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Every backend that docs/HOSTED.md shows is read as it stands there, for each kind
// that its maker hosts.
func TestHostedBackendsAreRead(t *testing.T) {
	data := must.Get(os.ReadFile("../docs/HOSTED.md"))(t)
	any := func(string) (string, bool) { return "secret-key", true }
	kinds := map[string]bool{}
	for _, m := range regexp.MustCompile("\\| `(\\{ name: .*?\\})`").FindAllStringSubmatch(string(data), -1) {
		cfg := mustParse(t, fmt.Sprintf("backends: [ %s ]\nroutes: [ { model: m, targets: [ { backend: %s } ] } ]\n", m[1], nameIn(m[1])), any)
		b := cfg.Backends[0]
		if kinds[b.Kind] = true; !b.Keyed() || !b.Separate() || len(cfg.Source().Warnings) > 1 {
			t.Errorf("%s is read as %+v with %q", m[1], b, cfg.Source().Warnings)
		}
	}
	for _, kind := range append(hosted(), "openai", "azure") {
		if !kinds[kind] {
			t.Errorf("docs/HOSTED.md shows no backend of kind %s", kind)
		}
	}
	_, text, _ := strings.Cut(string(data), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	mustParse(t, text, any)
}

func nameIn(text string) string {
	return regexp.MustCompile(`name: ([a-z0-9-]+)`).FindStringSubmatch(text)[1]
}

// What a backend's credentials say together.
func TestCredentials(t *testing.T) {
	const routes = "\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n"
	for text, want := range map[string]string{
		`url: http://h/v1, api_key: k, api_key_file: f`:          "several of api_key",
		`url: http://h/v1, api_keys: []`:                         "is empty",
		`url: http://h/v1, api_keys: [ { file: f, key: k } ]`:    "one of key, file and command",
		`url: http://h/v1, api_keys: [ { max_concurrency: 3 } ]`: "one of key, file and command",
		`url: http://h/v1, api_key_command: []`:                  "is empty",
		`url: http://h/v1, api_key_command: { timeout: 1s }`:     "has no run",
		`url: http://h/v1, api_key_command: cat`:                 "must be",
		`url: http://h/v1, auth: gcp`:                            "unknown auth",
		`url: http://h/v1, auth: aws`:                            "kind: bedrock",
		`kind: bedrock, url: http://h/openai/v1`:                 "write region: us-east-1",
		`kind: bedrock`:                                          "needs a url or a region",
		`kind: vertex, region: eu`:                               "needs a url or a project",
		`kind: vertex, region: "e/u", project: p`:                "is not allowed",
		`kind: vllm`: "has no url",
		`url: http://h/v1, egress_proxy: "proxy:3128"`:                              "egress_proxy is no proxy",
		`url: http://h/v1, egress_proxy: "ftp://secret@proxy:1"`:                    "egress_proxy is no proxy",
		`url: http://h/v1, api_key: k, headers: { authorization: "Bearer x" }`:      "beside api_key",
		`url: http://h/v1, api_keys: [ k ], headers: { authorization: "Bearer x" }`: "beside api_key",
	} {
		_, err := Parse("f", []byte("backends: [ { name: a, "+text+" } ]"+routes), nothing)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for text, ok := range map[string]bool{
		`{ name: a, url: http://h/v1, api_key: k }, { name: b, url: http://h/v1, api_key: l }`:             true,
		`{ name: a, url: http://h/v1, models: separate }, { name: b, url: http://h/v1, models: separate }`: true,
		`{ name: a, url: http://h/v1 }, { name: b, url: http://h/v1, kind: vllm }`:                         true,
		`{ name: a, url: http://h/v1, api_key: k }, { name: b, url: http://h/v1, api_key: k }`:             false,
		`{ name: a, url: http://h/v1, models: separate }, { name: b, url: http://h/v1 }`:                   false,
	} {
		if _, err := Parse("f", []byte("backends: [ "+text+" ]"+routes), nothing); (err == nil) != ok {
			t.Errorf("%s: %v, want it taken: %v", text, err, ok)
		}
	}
	for text, want := range map[string]int{
		`max_concurrency: 7`: 7,
		`api_keys: [ { key: a, max_concurrency: 2 }, { key: b, max_concurrency: 3 } ]`:                     5,
		`max_concurrency: 4, api_keys: [ { key: a, max_concurrency: 2 }, { key: b, max_concurrency: 3 } ]`: 4,
		`api_keys: [ { key: a, max_concurrency: 2 }, b ]`:                                                  0,
	} {
		cfg := mustParse(t, "backends: [ { name: a, url: http://h/v1, "+text+" } ]"+routes, nothing)
		if got := cfg.Backends[0].Cap(); got != want {
			t.Errorf("%s: %d at once, want %d", text, got, want)
		}
	}
	cfg := mustParse(t, "backends: [ { name: a, url: http://h/v1, kind: vllm, usage: auto } ]"+routes, nothing)
	if got := cfg.Backends[0].Usage; got != usageContinuous {
		t.Errorf("auto of vLLM is %s", got)
	}
}

// hosted are the kinds that need no url.
func hosted() (kinds []string) {
	for _, k := range upstream.All() {
		if k.Home != "" {
			kinds = append(kinds, k.Word)
		}
	}
	return kinds
}
