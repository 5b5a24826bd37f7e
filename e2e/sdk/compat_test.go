package sdk

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

var update = flag.Bool("update", false, "write docs/COMPAT.md anew")

// version is that of a module in go.mod.
func version(t *testing.T, module string) string {
	t.Helper()
	text := must.Get(os.ReadFile("go.mod"))(t)
	_, rest, found := strings.Cut(string(text), "\t"+module+" ")
	if !found {
		t.Fatalf("go.mod has no %s", module)
	}
	version, _, _ := strings.Cut(rest, "\n")
	return version
}

var compatFile = filepath.Join("..", "..", "docs", "COMPAT.md")

// nodeVersion is that of a package in agents/package.json.
func nodeVersion(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("agents", "package.json")))(t)
	var p struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &p); err != nil || p.Dependencies[name] == "" {
		t.Fatalf("agents/package.json has no %s (%v)", name, err)
	}
	return p.Dependencies[name]
}

// TestCompat holds docs/COMPAT.md to the cases that run here.
func TestCompat(t *testing.T) {
	if *update {
		writeCompat(t)
	}
	if want, err := os.ReadFile(compatFile); err != nil || string(want) != compat(t) {
		t.Errorf("%s is not of these cases (%v); go test -run TestCompat -update writes it", compatFile, err)
	}
}

func writeCompat(t *testing.T) {
	t.Helper()
	must.Do(t, os.WriteFile(compatFile, []byte(compat(t)), 0o644))
}

// apiNames are the APIs of the fakes, as people call them.
var apiNames = map[string]string{
	"anthropic": "Anthropic's messages, Claude 4.5", "claude-5": "Anthropic's messages, Claude 5", "gemini": "Gemini's generateContent",
	"bedrock": "Bedrock's converse", "engine": "chat of an engine that lacks all else", "cohere": "Cohere's chat", "mistral": "Mistral's chat",
}

// compat is the text of docs/COMPAT.md.
func compat(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Clients and the dialects of backends\n\n")
	b.WriteString("Which official client was run before which API, and in what. Made by the test run: `cd e2e/sdk && go test -run TestCompat -update`. ")
	b.WriteString("`make sdk` runs every case through the built program, as a document and as a stream. The servers behind it are made from what the makers publish, and take nothing that the makers' own types do not hold. Those of Bedrock are the model of its API in botocore.\n\n")
	b.WriteString("| client | version | backend's API | cases | errors, cancel | command |\n|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		client, module, api, run string
		cases                    int
	}{
		{"openai-go", "github.com/openai/openai-go/v3", "Anthropic's messages", "TestChatOnClaude", 2 * len(chatCases)},
		{"anthropic-sdk-go", "github.com/anthropics/anthropic-sdk-go", "chat of an engine that lacks messages", "TestMessagesOnAnEngine", 2 * len(messagesCases)},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | yes | `cd e2e/sdk && go test -run %s` |\n", c.client, version(t, c.module), c.api, c.cases, c.run)
	}
	text := must.Get(os.ReadFile(pairsFile))(t)
	var pairs []pair
	must.Do(t, json.Unmarshal(text, &pairs))
	for _, p := range pairs {
		api := apiNames[p.To]
		if p.From == "generate" && p.To == "gemini" || p.From == p.To {
			api = "the same, byte for byte"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | yes | `cd e2e/sdk && go test -run TestPairs` |\n", p.Client, p.Version, api, p.Cases)
	}
	b.WriteString("\nWhat SDKs of other makers need:\n\n")
	b.WriteString("* google-genai: `http_options={\"base_url\": \"http://pacer:8080\"}` (Python), `httpOptions: { baseUrl }` (Node), `HTTPOptions` (Go). The key of Pacer is its `api_key`. Addresses of Vertex AI are served too.\n")
	b.WriteString("* mistralai: `server_url` (Python), `serverURL` (Node). In a stream it wants each call of a tool whole, as Mistral's own API writes it, and gets it so where the answer is translated. Of an engine that speaks chat itself the pieces pass through, and its types refuse them: tools work there in documents. The table leaves out what its types lack.\n")
	b.WriteString("* groq: `base_url` without `/v1`; it asks below `/openai/v1`, which is served.\n")
	b.WriteString("* cohere: `base_url` (Python), `baseUrl` (Node), without a version. `/v2/chat` is served on every backend; `/v2/rerank` and `/v2/embed` pass through.\n")
	b.WriteString("\n## Coding agents\n\nRun headless before an engine that has chat alone: each looks into a file by a tool of its own and tells what it read (`cd e2e/sdk && go test -run TestAgents`). Every request is checked by OpenAI's types.\n\n")
	b.WriteString("| agent | version | speaks | what it needs |\n|---|---|---|---|\n")
	fmt.Fprintf(&b, "| Claude Code | %s | messages | `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY` |\n", nodeVersion(t, "@anthropic-ai/claude-code"))
	fmt.Fprintf(&b, "| Codex | %s | responses | `model_providers` with `base_url` and `wire_api = \"responses\"`; `web_search` is OpenAI's own: `drop_params: true` at the backend leaves it out |\n", nodeVersion(t, "@openai/codex"))
	fmt.Fprintf(&b, "| Copilot CLI | %s | chat | `COPILOT_PROVIDER_BASE_URL` with `/v1`, `COPILOT_PROVIDER_API_KEY`, `COPILOT_MODEL`; `COPILOT_OFFLINE=true` keeps it from GitHub. `COPILOT_PROVIDER_TYPE=anthropic` has it speak messages |\n", nodeVersion(t, "@github/copilot"))
	b.WriteString("\nOf Copilot's habits by GitHub's own pages and issues: it wants streams and tools of each model, sends no headers of its own but `Authorization`, and asks GitHub for completions in the editor whatever is configured. In VS Code a custom endpoint has the `url` of chats (`http://pacer:8080/v1/chat/completions`), or of messages or responses by `apiType`.\n")
	b.WriteString("\n## The cases\n\nThe cases of Python and Node are one table, `e2e/sdk/pairs/cases.py`: text, images, files, audio, tools alone and in parallel, loops of forty calls, structured output, thoughts, limits, what is refused and what is dropped.")
	b.WriteString(" To them come nine errors, one within a stream, and a client that hangs up.\n\nThe cases of Go: ")
	var names []string
	for _, c := range chatCases {
		names = append(names, c.name)
	}
	b.WriteString("of chat " + strings.Join(names, ", "))
	names = nil
	for _, c := range messagesCases {
		names = append(names, c.name)
	}
	b.WriteString("; of messages " + strings.Join(names, ", ") + ", count_tokens.\n\n")
	b.WriteString(`## What is not carried

| from | to | what | what becomes of it |
|---|---|---|---|
| chat | any other | ` + "`n` above 1, `logit_bias`, `audio`, `web_search_options`, `functions`" + `, custom tools, fields of engines | 400 by its name, or dropped with ` + "`drop_params`" + ` |
| chat | messages | ` + "`seed`, `logprobs`, penalties, `temperature` above 1, `response_format: json_object`" + `, audio, files but PDF | the same |
| chat | messages | ` + "`temperature`, a forced tool, `top_p` below 0.95 beside `reasoning_effort`" + ` | the same: one that thinks takes none |
| chat | messages | ` + "`reasoning_effort`" + ` in a loop of tools whose client does not send back ` + "`thinking_blocks`" + ` | the same |
| messages | chat | tools that Anthropic runs, ` + "`mcp_servers`, `container`" + ` | the same |
| generateContent | any other | ` + "`candidateCount` above 1, `cachedContent`, `responseModalities` but text, `safetySettings` that filter, `mediaResolution`" + `, tools that Google runs, films, files that Google keeps | the same |
| generateContent | messages | ` + "`seed`, `responseLogprobs`, penalties, `responseMimeType` without a schema" + `, audio | the same |
| generateContent | any other | ` + "`labels`, `propertyOrdering` and `example` of a schema, formats of numbers" + ` | left out: the answer is the same without |
| any other | generateContent | thoughts | parts with ` + "`thought: true`" + `, asked for or not; signatures of Anthropic's stand in ` + "`thoughtSignature`" + `, and go back from there |
| any other | cohere | a tool by its name among several, one call at a time, files, audio, ` + "`logprobs`, penalties below 0 or above 1, `top_k` above 500" + ` | the same |
| any other, OpenAI's too | mistral | ` + "`user`" + ` | left out: it is for billing. ` + "`seed` is `random_seed`" + `, documents and sound are parts of Mistral's own |
| any other, OpenAI's too | mistral | ids of calls that are not nine letters and digits | others for the same calls |
| any other, OpenAI's too | mistral | a user behind the result of a tool | the model says one sentence between them, which some models there want |
| chat | any but mistral | ` + "`safe_prompt`, `prompt_mode`, `guardrails`, `min_tokens`, `repetition_penalty`" + ` | 400 by its name, or dropped |
| mistral's own client | mistral | nothing | byte for byte, both ways |
| any other | cohere | ` + "`top_p: 1`" + ` | ` + "`p: 0.99`" + `, the most that it has |
| cohere | any other | ` + "`documents`, `safety_mode: STRICT`, `logprobs`, `raw_prompting`" + ` | the same |
| responses | any | ` + "`previous_response_id`, `conversation`, `background`" + `, tools that OpenAI runs | the same; nothing is stored |
| any | any | marks for a cache, ids for billing, ` + "`metadata`, `service_tier: auto`, `context_management`" + ` | left out: the answer is the same without |
`)
	b.WriteString(besideLiteLLM)
	return b.String()
}
