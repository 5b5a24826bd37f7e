package providers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/sse"
)

// What engines send with continuous_usage_stats, and what they would have sent
// to a client that asked for nothing. %s is where the usage stands.
var continuous = []struct {
	name, path string
	usage      string // %d prompt tokens, %d all, %d of the completion
	without    string // what stands there otherwise
	events     []string
	end        string // the usage event
}{
	{
		name: "vLLM, chat", path: "/chat/completions",
		usage: `,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}`,
		events: []string{
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]%s,"prompt_token_ids":null}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"reasoning":"Let"},"logprobs":null,"finish_reason":null,"token_ids":null}]%s}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"say \"usage\":{}"},"logprobs":null,"finish_reason":null,"token_ids":null}]%s}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}]%s}`,
		},
		end: `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":15,"completion_tokens":6}}`,
	},
	{
		name: "vLLM, completions", path: "/completions",
		usage: `,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":null}`,
		events: []string{
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]%s}`,
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" b","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]%s}`,
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]%s}`,
		},
		end: `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":13,"completion_tokens":4}}`,
	},
	{
		name: "SGLang, chat", path: "/chat/completions",
		usage: `,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":null,"reasoning_tokens":0}`,
		events: []string{
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null,"matched_stop":null}]}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null,"matched_stop":null}]%s}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","matched_stop":2}]}`,
		},
		end: `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2,"reasoning_tokens":0}}`,
	},
	{
		name: "SGLang with nulls, chat", path: "/chat/completions",
		usage:   `,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":null}`,
		without: `,"usage":null`,
		events: []string{
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":"Hi","tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}]%s}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":null},"logprobs":null,"finish_reason":"stop","matched_stop":2}],"usage":null}`,
		},
		end: `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}`,
	},
	{
		name: "an engine that ignores the option", path: "/chat/completions",
		events: []string{
			`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`,
			`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"stop"}]}`,
		},
		end: `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}}`,
	},
}

// A client that asked for nothing, or for usage at the end only, sees byte for
// byte what it would have seen without Pacer; one that asked for continuous
// usage sees that.
func TestContinuousUsageIsTakenOutAgain(t *testing.T) {
	for _, tt := range continuous {
		t.Run(tt.name, func(t *testing.T) {
			var with, without strings.Builder
			tokens := 0
			for i, e := range tt.events {
				e = "data: " + e + "\n\n"
				if i == 1 {
					e = ": ping\n\n" + e
				}
				if !strings.Contains(e, "%s") {
					with.WriteString(e)
					without.WriteString(e)
					continue
				}
				fmt.Fprintf(&with, e, fmt.Sprintf(tt.usage, 9, 9+2*i, 2*i))
				fmt.Fprintf(&without, e, tt.without)
				tokens = 2 * i
			}
			end, done := "data: "+tt.end+"\n\n", "data: [DONE]\n\n"
			for _, c := range []struct {
				strip Strip
				want  string
			}{
				{0, with.String() + end + done},
				{StripEvent, with.String() + done},
				{StripRunning, without.String() + end + done},
				{StripRunning | StripEvent, without.String() + done},
			} {
				stream := []byte(with.String() + end + done)
				cuts := [][][]byte{{stream}, bytewise(stream)}
				for i := range stream {
					cuts = append(cuts, [][]byte{stream[:i], stream[i:]})
				}
				for _, pieces := range cuts {
					got := look(tt.path, true, c.strip, pieces...)
					if got.passed != c.want || !got.Done || got.Bad {
						t.Fatalf("strip %d, in %d pieces, the first of %d bytes:\ngot\n%s\nwant\n%s", c.strip, len(pieces), len(pieces[0]), got.passed, c.want)
					}
					if !got.HasUsage || tokens > 2 && got.Tokens == 0 {
						t.Fatalf("strip %d: %+v, want the usage, and the count that came with content", c.strip, got)
					}
				}
			}
		})
	}
}

// The count is that of the last chunk with content: the token that ends the
// answer comes with none.
func TestTheCountIsThatOfTheLastContent(t *testing.T) {
	const chunk = `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":%d}}` + "\n\n"
	m := (&Backend{}).NewMeter("/chat/completions", true, StripRunning)
	_, seen := m.Read(fmt.Appendf(nil, chunk+chunk+`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":8}}`+"\n\n", 3, 7))
	if seen.Tokens != 7 || seen.Chunks != 2 || seen.Usage == nil || seen.Usage.CompletionTokens != 8 || !seen.Running {
		t.Errorf("saw %+v, want 7 tokens with 2 chunks, and a running usage of 8", seen)
	}
	if _, seen = m.Read(usageOf(8)); seen.Tokens != 0 || seen.Running || seen.Usage.CompletionTokens != 8 {
		t.Errorf("saw %+v, want the usage at the end alone", seen)
	}
}

// An event that is too large to be held goes on as it came, in one piece or in
// many.
func TestAHugeEventKeepsItsUsage(t *testing.T) {
	for _, size := range []int{sse.MaxTail - 200, sse.MaxTail + 200} {
		event := []byte(`data: {"choices":[{"delta":{"content":"` + strings.Repeat("a", size) + `"}}],"usage":{"completion_tokens":7}}` + "\n\n")
		want := string(event)
		if size < sse.MaxTail {
			want = runningUsage.ReplaceAllString(want, "")
		}
		for _, step := range []int{len(event), 1000, 32 << 10} {
			var pieces [][]byte
			for rest := event; len(rest) > 0; rest = rest[min(step, len(rest)):] {
				pieces = append(pieces, rest[:min(step, len(rest))])
			}
			if got := meter(StripRunning, pieces...); got.passed != want || got.Tokens != 7 {
				t.Errorf("content of %d bytes in pieces of %d: passed %d bytes, want %d; %d tokens, want 7", size, step, len(got.passed), len(want), got.Tokens)
			}
		}
	}
}

func TestRunningUsageAtTheVeryEnd(t *testing.T) {
	const stream = `data: {"choices":[{"text":"a"}],"usage":{"completion_tokens":1}}`
	for _, end := range []string{"", "\n", "\r\n"} {
		for _, pieces := range [][][]byte{{[]byte(stream + end)}, bytewise([]byte(stream + end))} {
			if got := meter(StripRunning, pieces...); got.passed != `data: {"choices":[{"text":"a"}]}`+end || got.Tokens != 1 {
				t.Errorf("in %d pieces: passed %q, %d tokens", len(pieces), got.passed, got.Tokens)
			}
		}
	}
}

// OpenAI, Azure and others write "usage":null in every chunk, once they are asked
// for usage: a client that did not ask does not see it, however the stream is
// cut, and nothing else is missing.
func TestNullsAreTakenOutAgain(t *testing.T) {
	const plain = `data: {"choices":[],"id":"","prompt_filter_results":[{"prompt_index":0}]}` + "\n\n" +
		": ping\n" + `data: {"id":"c","choices":[{"delta":{"content":"say ,\"usage\":null"}}],"obfuscation":"x"}` + "\r\n\r\n" +
		`data: { "choices":[{"delta":{"content":"é"},"usage":null}]}` + "\n\n" +
		`data: {"choices":[{"delta":{}}],"x":{"usage":null}}` + "\n\n" +
		`data: {"usage_of":null,"choices":[]}` + "\n\n"
	asked := strings.NewReplacer(
		`,"prompt_filter_results":[{"prompt_index":0}]}`, `,"prompt_filter_results":[{"prompt_index":0}],"usage":null}`,
		`],"obf`, `], "usage" : null,"obf`, `{ "choices":`, `{ "usage":null,"choices":`, `,"x":`, `,"usage":null,"x":`,
		`"choices":[]}`, `"choices":[],"usage":null}`,
	).Replace(plain)
	const done = "data: [DONE]\n\n"
	for strip, want := range map[Strip]string{
		0: asked + usageEvent + done, StripEvent: asked + done, StripRunning: asked + usageEvent + done,
		StripNull: plain + usageEvent + done, StripEvent | StripNull: plain + done, StripEvent | StripRunning | StripNull: plain + done,
	} {
		stream := []byte(asked + usageEvent + done)
		cuts := [][][]byte{{stream}, bytewise(stream)}
		for i := range stream {
			cuts = append(cuts, [][]byte{stream[:i], stream[i:]})
		}
		for _, pieces := range cuts {
			if got := meter(strip, pieces...); got.passed != want || !got.Done || got.Bad || got.Chunks != 2 || got.Usage.CompletionTokens != 2 {
				t.Fatalf("strip %d, in %d pieces, the first of %d bytes: %+v\nwant\n%s", strip, len(pieces), len(pieces[0]), got, want)
			}
		}
	}
}

// What is no count, or not where Pacer asked for it, stays.
func TestWhatOfARunningUsageStays(t *testing.T) {
	for _, event := range []string{
		`data: {"choices":[{"delta":{"content":"a"}}],"usage":null}` + "\n\n",
		`data: {"choices":[{"delta":{"content":"a"},"usage":{"completion_tokens":1}}]}` + "\n\n",
		`data: {"choices":[{"delta":{"content":"a"}}],"x_groq":{"usage":{"completion_tokens":1}}}` + "\n\n",
		`data: {"error":{"message":"x"},"choices":[{}],"usage":{}}` + "\n\n",
		"data: {\"choices\":[{}],\ndata: \"usage\":{}}\n\n",
		`data: {"usage":{"completion_tokens":1}}` + "\n\n",
		`data: {"choices":[],"prompt_filter_results":[],"usage":{}}` + "\n\n",
	} {
		if got := meter(StripRunning|StripEvent, []byte(event)); got.passed != event {
			t.Errorf("%q became %q", event, got.passed)
		}
	}
}
