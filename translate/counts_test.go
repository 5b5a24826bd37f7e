package translate

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// What each API counts, as usage of one kind: a prompt with what came from a cache, an
// answer with its thoughts.
func TestUsage(t *testing.T) {
	chat := func(usage string) string {
		return sseOf([2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`}, [2]string{"", `{"choices":[],"usage":` + usage + `}`}, [2]string{"", "[DONE]"})
	}
	messages := func(begin, end string) string {
		return sseOf(
			[2]string{"message_start", `{"type":"message_start","message":{"id":"m","content":[],"usage":` + begin + `}}`},
			[2]string{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + end + `}`},
			[2]string{"message_stop", `{"type":"message_stop"}`})
	}
	for name, c := range map[string]struct {
		from   Name
		stream string
		want   Usage
	}{
		"OpenAI":                      {Chat, chat(`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}`), Usage{Prompt: 10, Cached: 4, Completion: 5, Reasoning: 2}},
		"DeepSeek":                    {Chat, chat(`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}`), Usage{Prompt: 10, Cached: 6, Completion: 5}},
		"more cached than there is":   {Chat, chat(`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":50}}`), Usage{Prompt: 10, Cached: 10, Completion: 5, Reasoning: 5}},
		"Anthropic":                   {Messages, messages(`{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}`, `{"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}`), Usage{Prompt: 9, Cached: 4, Written: 2, Completion: 7, Reasoning: 3}},
		"Anthropic, input at the end": {Messages, messages(`{"input_tokens":1,"output_tokens":1}`, `{"input_tokens":8,"cache_read_input_tokens":4,"output_tokens":7}`), Usage{Prompt: 12, Cached: 4, Completion: 7}},
		"Anthropic, no end":           {Messages, messages(`{"input_tokens":3,"output_tokens":1}`, `{}`), Usage{Prompt: 3}},
		"Google":                      {Gemini, sseOf([2]string{"", `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8,"toolUsePromptTokenCount":2,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":3}}`}), Usage{Prompt: 10, Cached: 4, Completion: 8, Reasoning: 3}},
		"Bedrock":                     {Converse, awsOf([2]string{"messageStop", `{"stopReason":"end_turn"}`}, [2]string{"metadata", `{"usage":{"inputTokens":3,"cacheReadInputTokens":4,"cacheWriteInputTokens":2,"outputTokens":5}}`}), Usage{Prompt: 9, Cached: 4, Written: 2, Completion: 5}},
		"Cohere":                      {Cohere, sseOf([2]string{"message-end", `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":1,"output_tokens":1},"tokens":{"input_tokens":9.0,"output_tokens":5},"cached_tokens":4}}}`}), Usage{Prompt: 9, Cached: 4, Completion: 5}},
	} {
		if _, seen := through(c.from, Chat, c.stream); seen.Usage != c.want || !seen.Done {
			t.Errorf("%s: %+v, want %+v", name, seen, c.want)
		}
	}
}

// Google counts thoughts beside the answer, in what it says and in what is told it.
func TestThoughtsStandBesideGooglesAnswer(t *testing.T) {
	got, _ := through(Chat, Gemini, sseOf([2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`},
		[2]string{"", `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2}}}`}, [2]string{"", "[DONE]"}))
	if !strings.Contains(got, `"candidatesTokenCount":3,"totalTokenCount":15,"thoughtsTokenCount":2`) {
		t.Errorf("got %s", got)
	}
}

// Why an answer ends, in the words of each API and of two clients.
func TestWhyAnAnswerEnds(t *testing.T) {
	chat := func(choice string) string {
		return `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"a"},` + choice + `}]}`
	}
	messages := func(reason string) string {
		return `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"` + reason + `","stop_sequence":"END"}`
	}
	gemini := func(rest string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"a"}]}` + rest + `}]}`
	}
	converse := func(reason string) string {
		return `{"output":{"message":{"content":[{"text":"a"}]}},"stopReason":"` + reason + `"}`
	}
	cohere := func(reason string) string {
		return `{"message":{"content":[{"type":"text","text":"a"}]},"finish_reason":"` + reason + `"}`
	}
	for _, c := range []struct {
		from                      Name
		answer, chat, claude, end string
	}{
		{Chat, chat(`"finish_reason":"stop"`), "stop", "end_turn", ""},
		{Chat, chat(`"finish_reason":"length"`), "length", "max_tokens", ""},
		{Chat, chat(`"finish_reason":"model_length"`), "length", "max_tokens", ""},
		{Chat, chat(`"finish_reason":"content_filter"`), "content_filter", "refusal", ""},
		{Chat, chat(`"finish_reason":"stop","stop_reason":"END"`), "stop", "stop_sequence", "END"},
		{Chat, chat(`"finish_reason":"stop","stop_reason":128001`), "stop", "end_turn", ""},
		{Chat, chat(`"finish_reason":"function_call"`), "tool_calls", "tool_use", ""},
		{Chat, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, "tool_calls", "tool_use", ""},
		{Messages, messages("max_tokens"), "length", "max_tokens", ""},
		{Messages, messages("model_context_window_exceeded"), "length", "max_tokens", ""},
		{Messages, messages("refusal"), "content_filter", "refusal", ""},
		{Messages, messages("stop_sequence"), "stop", "stop_sequence", "END"},
		{Messages, messages("pause_turn"), "stop", "end_turn", ""},
		{Gemini, gemini(`,"finishReason":"MAX_TOKENS"`), "length", "max_tokens", ""},
		{Gemini, gemini(`,"finishReason":"SPII"`), "content_filter", "refusal", ""},
		{Gemini, `{"promptFeedback":{"blockReason":"OTHER"}}`, "content_filter", "refusal", ""},
		{Converse, converse("max_tokens"), "length", "max_tokens", ""},
		{Converse, converse("model_context_window_exceeded"), "length", "max_tokens", ""},
		{Converse, converse("content_filtered"), "content_filter", "refusal", ""},
		{Converse, converse("guardrail_intervened"), "content_filter", "refusal", ""},
		{Converse, converse("stop_sequence"), "stop", "stop_sequence", ""},
		{Cohere, cohere("MAX_TOKENS"), "length", "max_tokens", ""},
		{Cohere, cohere("ERROR_TOXIC"), "content_filter", "refusal", ""},
		{Cohere, cohere("STOP_SEQUENCE"), "stop", "stop_sequence", ""},
	} {
		for to, want := range map[Name][2]string{Chat: {"choices.0.finish_reason", c.chat}, Messages: {"stop_reason", c.claude}} {
			out, look, err := Document(c.from, to, reply, []byte(c.answer))
			if got := gjson.GetBytes(out, want[0]).Str; err != nil || got != want[1] || look.Error {
				t.Errorf("%s %s: %q (%v), want %q", c.from, c.answer, got, err, want[1])
			}
			if got := gjson.GetBytes(out, "stop_sequence").Str; to == Messages && got != c.end {
				t.Errorf("%s %s: it ends with %q, want %q", c.from, c.answer, got, c.end)
			}
		}
	}
	for from, answer := range map[Name]string{Chat: chat(`"finish_reason":"error"`), Cohere: cohere("TIMEOUT")} {
		if out, look, err := Document(from, Messages, reply, []byte(answer)); err != nil || !look.Error || gjson.GetBytes(out, "type").Str != "error" {
			t.Errorf("%s %s: %s (%v, %+v), want an error", from, answer, out, err, look)
		}
	}
}

// What is left of a limit, by the names that clients of the other dialect read.
func TestRateLimits(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from, to    Name
		name, value string
		as, want    string
	}{
		{Messages, Chat, "Anthropic-Ratelimit-Requests-Limit", "50", "X-Ratelimit-Limit-Requests", "50"},
		{Messages, Responses, "Anthropic-Ratelimit-Tokens-Remaining", "9", "X-Ratelimit-Remaining-Tokens", "9"},
		{Messages, Chat, "Anthropic-Ratelimit-Requests-Reset", "2026-11-24T12:01:30Z", "X-Ratelimit-Reset-Requests", "1m30s"},
		{Messages, Chat, "Anthropic-Ratelimit-Requests-Reset", "2026-11-24T11:00:00Z", "X-Ratelimit-Reset-Requests", "0s"},
		{Messages, Chat, "Anthropic-Ratelimit-Input-Tokens-Limit", "50", "X-Ratelimit-Limit-Input-Tokens", ""},
		{Chat, Messages, "X-Ratelimit-Reset-Tokens", "6m0s", "Anthropic-Ratelimit-Tokens-Reset", "2026-11-24T12:06:00Z"},
		{Chat, Messages, "X-Ratelimit-Reset-Tokens", "soon", "Anthropic-Ratelimit-Tokens-Reset", ""},
		{Chat, Messages, "X-Ratelimit-Remaining-Requests", "3", "Anthropic-Ratelimit-Requests-Remaining", "3"},
		{Chat, Gemini, "X-Ratelimit-Remaining-Requests", "3", "X-Ratelimit-Remaining-Requests", ""},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got := RateLimits(c.from, c.to, h, now); got.Get(c.as) != c.want || c.want == "" && len(got) > 0 {
			t.Errorf("%s: %s from %s to %s is %v, want %s: %s", c.name, c.value, c.from, c.to, got, c.as, c.want)
		}
	}
}

// A usage that stands beside a piece of text says how many tokens there were with it,
// read or known by its shape.
func TestCountsBesideText(t *testing.T) {
	s := NewStream(Chat, Messages, reply)
	for i, c := range []struct {
		data string
		want int
	}{
		{`{"id":"c","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, 1},
		{`{"id":"c","choices":[{"index":0,"delta":{"content":"b c"}}],"usage":{"prompt_tokens":3,"completion_tokens":3}}`, 3},
		{`{"id":"c","choices":[{"index":0,"delta":{"content":"d"}}]}`, 0},
		{`{"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, 0},
	} {
		if _, look := s.Feed([]byte(sseOf([2]string{"", c.data}))); look.Tokens != c.want || look.Bad {
			t.Errorf("%d: %+v, want %d tokens", i, look, c.want)
		}
	}
}
