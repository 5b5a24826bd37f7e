package main

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/pacer-dev/pacer/config"
)

// What the configuration accepts as a kind can be built.
func TestEveryKindIsBuilt(t *testing.T) {
	for kind, url := range map[string]string{
		"openai": "https://api.openai.com/v1", "vllm": "http://h/v1", "sglang": "http://h/v1", "llamacpp": "http://h/v1",
		"tgi": "http://h/v1", "ollama": "http://h/v1", "anthropic": "https://api.anthropic.com/v1",
		"azure": "https://r.openai.azure.com/openai?api-version=2024-10-21",
	} {
		text := fmt.Sprintf("backends: [ { name: a, kind: %s, url: %q, api_key: k } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n", kind, url)
		cfg, err := config.Parse("f", []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		p, err := wire(cfg, slog.New(slog.DiscardHandler), options{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := p.backends["a"].Serves("/messages"); !got {
			t.Errorf("%s does not serve Messages", kind)
		}
		for _, c := range p.close {
			c()
		}
	}
}
