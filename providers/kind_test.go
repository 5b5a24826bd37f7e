package providers

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func newKind(t *testing.T, o Options) *Backend {
	t.Helper()
	o.Name = "b"
	b := must.Get(New(o))(t)
	return b
}

func TestURLs(t *testing.T) {
	const classic = "https://r.openai.azure.com/openai?api-version=2024-10-21"
	for _, tt := range []struct {
		kind, base, path, model string
		want                    string
	}{
		{"", "http://h:8000/v1/", "/chat/completions", "m", "http://h:8000/v1/chat/completions"},
		{"openai", "http://h", "/embeddings", "m", "http://h/embeddings"},
		{"vllm", "https://h/a%2Fb/v1", "/messages?beta=true", "m", "https://h/a%2Fb/v1/messages?beta=true"},
		{"sglang", "http://h/pre fix/v1", "/rerank", "m", "http://h/pre%20fix/v1/rerank"},
		{"llamacpp", "http://h/v1", "/responses/resp_1?include=a&include=b", "", "http://h/v1/responses/resp_1?include=a&include=b"},
		{"ollama", "http://h:11434/v1", "/chat/completions", "qwen3:8b", "http://h:11434/v1/chat/completions"},
		{"openai", "http://h/openai", "/chat/completions", "m", "http://h/openai/chat/completions"},

		{"azure", classic, "/chat/completions", "gpt-4o", "https://r.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"},
		{"azure", classic, "/audio/transcriptions", "a/b c", "https://r.openai.azure.com/openai/deployments/a%2Fb%20c/audio/transcriptions?api-version=2024-10-21"},
		{"azure", classic, "/responses", "gpt-4o", "https://r.openai.azure.com/openai/responses?api-version=2024-10-21"},
		{"azure", classic, "/embeddings", "", "https://r.openai.azure.com/openai/embeddings?api-version=2024-10-21"},
		{"azure", "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21", "/chat/completions", "gpt-4o", "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"},
		{"azure", "https://r.openai.azure.com/openai/v1", "/chat/completions", "gpt-4o", "https://r.openai.azure.com/openai/v1/chat/completions"},
		{"azure", "https://r.openai.azure.com/openai/v1/?api-version=preview", "/responses?api-version=old&stream=true&api%2Dversion=x", "gpt-4o", "https://r.openai.azure.com/openai/v1/responses?api-version=preview&stream=true"},
		{"anthropic", "https://api.anthropic.com/v1", "/messages?beta=true", "claude", "https://api.anthropic.com/v1/messages?beta=true"},
	} {
		b := newKind(t, Options{Kind: tt.kind, BaseURL: tt.base})
		for range 2 { // the base is not changed
			if got := b.target(Call{Path: tt.path, Model: tt.model}).String(); got != tt.want {
				t.Errorf("%s %s + %s: got %s, want %s", tt.kind, tt.base, tt.path, got, tt.want)
			}
		}
	}
}

// Each kind gets its key in the header it reads, the client's own credentials
// go nowhere, and what is configured stands above all.
func TestKeyHeaders(t *testing.T) {
	client := http.Header{"Authorization": {"Bearer client"}, "X-Api-Key": {"client"}, "Api-Key": {"client"}, "Anthropic-Beta": {"x"}}
	for _, tt := range []struct {
		kind string
		own  http.Header
		want http.Header // "" = absent
	}{
		{"openai", nil, http.Header{"Authorization": {"Bearer k"}, "X-Api-Key": nil, "Api-Key": nil, "Anthropic-Version": nil}},
		{"ollama", nil, http.Header{"Authorization": {"Bearer k"}, "X-Api-Key": nil, "Api-Key": nil}},
		{"azure", nil, http.Header{"Api-Key": {"k"}, "Authorization": nil, "X-Api-Key": nil}},
		{"azure", http.Header{"api-key": {"own"}}, http.Header{"Api-Key": {"own"}}},
		{"anthropic", nil, http.Header{"X-Api-Key": {"k"}, "Authorization": nil, "Api-Key": nil, "Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"x"}}},
		{"anthropic", http.Header{"anthropic-version": {"2042"}}, http.Header{"Anthropic-Version": {"2042"}}},
	} {
		b := newKind(t, Options{Kind: tt.kind, BaseURL: "http://h/v1", APIKey: "k", Headers: tt.own})
		req := b.request(Call{Header: client})
		v, err := b.pool.keys[0].Source.Get(t.Context())
		l := &loan{key: b.pool.keys[0], value: v}
		must.Do(t, errors.Join(err, b.authorize(t.Context(), req, nil, l)))
		own, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b.appendHead(nil, Call{Header: client, Path: "/x"}, 0, l))))
		must.Do(t, err)
		for by, got := range map[string]http.Header{"net/http": req.Header, "own": own.Header} {
			for name, want := range tt.want {
				if g := got[name]; !slices.Equal(g, want) {
					t.Errorf("%s by %s: %s is %q, want %q", tt.kind, by, name, g, want)
				}
			}
		}
	}
	b := newKind(t, Options{Kind: "anthropic", BaseURL: "http://h/v1"})
	if got := b.upward(Call{Header: http.Header{"Anthropic-Version": {"2025-01-01"}}}).Get("Anthropic-Version"); got != "2025-01-01" {
		t.Errorf("the client's anthropic-version became %q", got)
	}
}

func TestServes(t *testing.T) {
	for _, tt := range []struct {
		kind, path string
		want       bool
	}{
		{"anthropic", "/messages", true},
		{"anthropic", "/messages?beta=true", true},
		{"anthropic", "/messages/count_tokens", true},
		{"anthropic", "/chat/completions", false},
		{"anthropic", "/responses", false},
		{"anthropic", "/embeddings", false},
		{"vllm", "/messages", true},
		{"vllm", "/messages/count_tokens", true},
		{"openai", "/messages/count_tokens?beta=true", true},
		{"openai", "/chat/completions", true},
		{"azure", "/responses", true},
	} {
		if got := newKind(t, Options{Kind: tt.kind, BaseURL: "http://h/v1"}).Serves(tt.path); got != tt.want {
			t.Errorf("%s serves %s: %v, want %v", tt.kind, tt.path, got, tt.want)
		}
	}
}
