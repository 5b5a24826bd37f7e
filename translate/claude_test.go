package translate

import (
	"encoding/json"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestClaudeOf(t *testing.T) {
	old := claude{}
	first := claude{adaptive: true, efforts: 4}
	second := claude{adaptive: true, plain: true, efforts: 5}
	fifth := second
	fifth.disabled = true
	always := second
	always.always = true
	unforced := always
	unforced.unforced = true
	for model, want := range map[string]claude{
		"claude-sonnet-4-5": old, "claude-sonnet-4-5@20250929": old, "claude-opus-4-20250514": old, "claude-3-7-sonnet-20250219": old,
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": old, "llama-3.3-70b": old, "claude-latest": old, "": old, "claude-": old,
		"claude-opus-4-6": first, "anthropic.claude-opus-4-6-v1": first, "anthropic/claude-sonnet-4.6": first,
		"claude-opus-4-7": second, "claude-opus-4-8-20260601": second,
		"claude-opus-5": fifth, "claude-sonnet-5": fifth, "claude-haiku-5-5": fifth,
		"claude-fable-5": always, "claude-mythos-preview": always,
		"claude-opus-5-5": unforced, "claude-sonnet-5-5": unforced, "claude-fable-5-2": unforced,
	} {
		if got := claudeOf(model); got != want {
			t.Errorf("%q is %+v, want %+v", model, got, want)
		}
	}
}

// Each generation is told to think in its own way, and what it does not take is
// lost by its name.
func TestThinkingByModel(t *testing.T) {
	for _, c := range []struct {
		dialect          Name
		model, ask, want string
		lost             string
	}{
		{Messages, "claude-sonnet-4-5", `"reasoning_effort":"medium"`, `{"thinking":{"type":"enabled","budget_tokens":8192}}`, ""},
		{Messages, "claude-opus-4-6", `"reasoning_effort":"medium"`, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"}}`, ""},
		{Messages, "claude-opus-4-6", `"reasoning_effort":"xhigh"`, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}`, ""},
		{Messages, "claude-opus-4-8", `"reasoning_effort":"xhigh"`, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"}}`, ""},
		{Messages, "claude-opus-5", `"reasoning_effort":"minimal","temperature":1.0`, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}`, ""},
		{Messages, "claude-opus-5", `"temperature":0.7`, `{}`, "temperature"},
		{Messages, "claude-opus-5", `"top_p":1`, `{}`, ""},
		{Messages, "claude-opus-5", `"reasoning_effort":"none"`, `{"thinking":{"type":"disabled"}}`, ""},
		{Messages, "claude-opus-4-8", `"reasoning_effort":"none"`, `{}`, ""},
		{Messages, "claude-fable-5", `"reasoning_effort":"none"`, `{}`, "reasoning_effort"},
		{Messages, "claude-opus-5", `"reasoning_effort":"high","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}}}`, ""},
		{Converse, "us.anthropic.claude-opus-4-7", `"reasoning_effort":"high"`, `{"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}},"inferenceConfig":{"maxTokens":32000}}`, ""},
		{Converse, "anthropic.claude-sonnet-4-5-v1:0", `"temperature":1.5`, `{"inferenceConfig":{}}`, "temperature"},
		{Gemini, "gemini-2.5-flash", `"reasoning_effort":"xhigh"`, `{"generationConfig":{"thinkingConfig":{"thinkingBudget":24576,"includeThoughts":true}}}`, ""},
		{Gemini, "gemini-2.5-pro", `"reasoning_effort":"xhigh"`, `{"generationConfig":{"thinkingConfig":{"thinkingBudget":32768,"includeThoughts":true}}}`, ""},
		{Gemini, "gemini-2.5-pro", `"reasoning_effort":"none"`, `{"generationConfig":{}}`, "reasoning_effort"},
		{Gemini, "gemini-3.5-flash", `"reasoning_effort":"medium"`, `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"medium","includeThoughts":true}}}`, ""},
		{Gemini, "gemini-3.5-flash", `"reasoning_effort":"none"`, `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"minimal","includeThoughts":false}}}`, ""},
		{Gemini, "gemini-3.1-pro-preview", `"reasoning_effort":"minimal"`, `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"low","includeThoughts":true}}}`, ""},
	} {
		r := must.Get(Read(Chat, []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}],`+c.ask+`}`)))(t)
		before := r.Params
		w := must.Get(r.Write(Target{Dialect: c.dialect, Model: c.model, Bare: c.dialect != Messages}))(t)
		lost := ""
		for _, l := range w.Lost {
			lost += l.Param
		}
		var got map[string]any
		must.Do(t, json.Unmarshal(w.Body, &got))
		for _, name := range []string{"model", "messages", "contents", "max_tokens"} {
			delete(got, name)
		}
		text, _ := json.Marshal(got)
		var want map[string]any
		must.Do(t, json.Unmarshal([]byte(c.want), &want))
		if wanted, _ := json.Marshal(want); string(text) != string(wanted) || lost != c.lost {
			t.Errorf("%s of %s is %s without %q, want %s without %q", c.ask, c.model, text, lost, wanted, c.lost)
		}
		if r.Params != before {
			t.Errorf("%s for %s changes the request", c.ask, c.model)
		}
	}
}
