package endpoint

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A path stands once, below /v1 and as requests have it.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if seen[e.Path] || !strings.HasPrefix(e.Path, "/") || strings.HasSuffix(e.Path, "/") || strings.ContainsAny(strings.TrimSuffix(e.Path, "/*"), "?*") {
			t.Errorf("the path %q stands twice, or is none", e.Path)
		}
		seen[e.Path] = true
		if e.Decodes && (e.Quick || e.Events || e.Dialect == Documents) {
			t.Errorf("%s is said to decode, and not to", e.Path)
		}
		if e.Stored && (e.Decodes || e.Stores || !strings.Contains(e.Path, "{id}") && !e.Pinned) {
			t.Errorf("%s is about an answer that is kept, and makes one", e.Path)
		}
		if got := Of(e.Path + "?beta=true"); got != e {
			t.Errorf("%s with a query is %+v", e.Path, got)
		}
	}
}

func TestOf(t *testing.T) {
	for path, want := range map[string]Dialect{
		"/chat/completions": Chat, "/completions": Completions, "/responses": Responses, "/messages": Messages,
		"/audio/transcriptions": Transcription, "/audio/speech": Speech, "/images/generations": Images,
		"/messages/count_tokens": Documents, "/embeddings": Documents, "/rerank": Documents, "/moderations": Documents,
		"/responses/resp_1": Documents, "/nowhere": Documents, "": Documents, "/Chat/Completions": Documents,
	} {
		if got := Of(path).Dialect; got != want {
			t.Errorf("the dialect of %q is %d, want %d", path, got, want)
		}
	}
	if got := Of("/chat/completions").AskedWith(); !slices.Equal(got, []string{http.MethodPost}) {
		t.Errorf("a chat is asked for with %q", got)
	}
}

func TestAPIs(t *testing.T) {
	for path, want := range map[string]struct{ openAI, anthropic bool }{
		"/messages": {true, true}, "/messages/count_tokens": {true, true}, "/chat/completions": {true, false}, "/responses/resp_1": {true, false},
	} {
		if e := Of(path); e.PartOf(OpenAI) != want.openAI || e.PartOf(Anthropic) != want.anthropic {
			t.Errorf("%s is part of OpenAI's API: %v, of Anthropic's: %v; want %v", path, e.PartOf(OpenAI), e.PartOf(Anthropic), want)
		}
	}
	for path, want := range map[string]bool{"/messages": true, "/messages/batches": true, "/messagesx": false, "/models": false} {
		if got := InMessages(path); got != want {
			t.Errorf("InMessages(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for path, want := range map[string][]string{
		"/chat/completions": {"/v1/chat/completions", "/chat/completions", "/openai/v1/chat/completions"},
		"/tokenize":         {"/v1/tokenize", "/tokenize"},
		"/v2/rerank":        {"/v2/rerank"},
	} {
		var got []string
		for _, a := range Of(path).Addresses() {
			if a.Base+path != a.Path {
				t.Errorf("%+v is no address of %s", a, path)
			}
			got = append(got, a.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is found at %q, want %q", path, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	for rest, want := range map[string]struct{ path, model string }{
		"gpt-4o/chat/completions":                {"/chat/completions", "gpt-4o"},
		"meta-llama/Llama-3.1-8B/completions/":   {"/completions", "meta-llama/Llama-3.1-8B"},
		"whisper/audio/translations":             {"/audio/translations", "whisper"},
		"chat/completions":                       {"/completions", "chat"},
		"/completions":                           {},
		"completions":                            {},
		"m/tokenize":                             {},
		"m/responses/resp_1":                     {},
		"":                                       {},
		"a\r\nb/completions":                     {},
		strings.Repeat("m", 257) + "/embeddings": {},
	} {
		e, model := Named(rest)
		path := ""
		if e != nil {
			path = e.Path
		}
		if path != want.path || model != want.model {
			t.Errorf("%.40q is %q for %q, want %q for %q", rest, path, model, want.path, want.model)
		}
	}
}
