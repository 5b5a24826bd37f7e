package upstream

import (
	"strings"
	"testing"
)

// Every URL that the table has is one that it takes, and reads as itself.
func TestHomes(t *testing.T) {
	hosted := 0
	for _, k := range All() {
		if k.Home == "" {
			if base, wrong := k.HomeURL("eu", "p"); base != "" || wrong != "" {
				t.Errorf("%s has the home %q (%s)", k.Word, base, wrong)
			}
			continue
		}
		hosted++
		for _, region := range []string{"us-east-1", "global"} {
			home, wrong := k.HomeURL(region, "my-project")
			if wrong != "" || strings.ContainsAny(home, "{}") {
				t.Fatalf("%s: the home is %q (%s)", k.Word, home, wrong)
			}
			if base, wrong := k.BaseURL(home); base != home || wrong != "" || k.Doubtful(base) {
				t.Errorf("%s: the home %s is read as %q (%s), doubtful %v", k.Word, home, base, wrong, k.Doubtful(base))
			}
		}
		_, wrong := k.HomeURL("", "")
		if needs := strings.Contains(k.Home, "{"); needs != strings.Contains(wrong, "region") {
			t.Errorf("%s: without a region: %q", k.Word, wrong)
		}
	}
	if hosted < 12 {
		t.Errorf("%d kinds are hosted by their makers, want at least 12", hosted)
	}
}

func TestPlaceName(t *testing.T) {
	for name, want := range map[string]bool{
		"us-east-1": true, "my-project-123": true, "example.com:project": true, "a": true,
		"": false, "-a": false, "a-": false, "EU": false, "a/b": false, "a..b": false, "a@b": false, "a?b": false, strings.Repeat("a", 65): false,
	} {
		if got := PlaceName(name); got != want {
			t.Errorf("PlaceName(%q) = %v, want %v", name, got, want)
		}
	}
}

// Where the makers' own documentation has generation, by kind, base and model.
func TestForms(t *testing.T) {
	const vertex = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1"
	for _, want := range []struct {
		kind, base, model string
		dialect           Dialect
		name, once, flow  string
	}{
		{"openai", "https://api.openai.com/v1", "gpt-4o", OpenAI, "gpt-4o", "", ""},
		{"anthropic", "https://api.anthropic.com/v1", "claude-x", Anthropic, "claude-x", "", ""},
		{
			"gemini", "https://generativelanguage.googleapis.com/v1beta", "gemini-2.5-flash", Gemini, "gemini-2.5-flash",
			"/models/gemini-2.5-flash:generateContent", "/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
		},
		{"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", OpenAI, "gemini-2.5-flash", "", ""},
		{
			"vertex", vertex, "gemini-2.5-pro", Gemini, "gemini-2.5-pro",
			"/publishers/google/models/gemini-2.5-pro:generateContent", "/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
		},
		{
			"vertex", vertex, "google/gemini-2.5-pro", Gemini, "gemini-2.5-pro",
			"/publishers/google/models/gemini-2.5-pro:generateContent", "/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
		},
		{
			"vertex", vertex, "anthropic/claude-sonnet-4@20250514", Anthropic, "claude-sonnet-4@20250514",
			"/publishers/anthropic/models/claude-sonnet-4@20250514:rawPredict", "/publishers/anthropic/models/claude-sonnet-4@20250514:streamRawPredict",
		},
		{"vertex", vertex + "/endpoints/openapi", "google/gemini-2.5-pro", OpenAI, "google/gemini-2.5-pro", "", ""},
		{
			"bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", "anthropic.claude-3-5-sonnet-20241022-v2:0", Converse, "anthropic.claude-3-5-sonnet-20241022-v2:0",
			"/model/anthropic.claude-3-5-sonnet-20241022-v2:0/converse", "/model/anthropic.claude-3-5-sonnet-20241022-v2:0/converse-stream",
		},
		{
			"bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", "arn:aws:bedrock:us-east-1:1:inference-profile/../x?y", Converse, "arn:aws:bedrock:us-east-1:1:inference-profile/../x?y",
			"/model/arn:aws:bedrock:us-east-1:1:inference-profile%2F..%2Fx%3Fy/converse", "/model/arn:aws:bedrock:us-east-1:1:inference-profile%2F..%2Fx%3Fy/converse-stream",
		},
		{"bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", "openai.gpt-oss-20b-1:0", OpenAI, "openai.gpt-oss-20b-1:0", "", ""},
		{"cohere", "https://api.cohere.ai/compatibility/v1", "command-a-03-2025", OpenAI, "command-a-03-2025", "", ""},
		{"cohere", "https://api.cohere.com/v2", "command-a-03-2025", Cohere, "command-a-03-2025", "", ""},
		{"mistral", "https://api.mistral.ai/v1", "mistral-large", OpenAI, "mistral-large", "", ""},
	} {
		k := Of(want.kind).At(want.base)
		f, name := k.FormOf(want.model)
		if f.Dialect != want.dialect || name != want.name || f.Path(name, false) != want.once || f.Path(name, true) != want.flow {
			t.Errorf("%s at %s: %s is %q in dialect %q at %q and %q", want.kind, want.base, want.model, name, f.Dialect, f.Path(name, false), f.Path(name, true))
		}
		if k.Word != want.kind || k.Serves("/chat/completions") != (want.dialect == OpenAI) {
			t.Errorf("%s at %s is %s, and serves chats: %v", want.kind, want.base, k.Word, k.Serves("/chat/completions"))
		}
	}
}
