package providers

import (
	"strings"
	"testing"
)

// vLLM has its fingerprint on the event that ends a choice, and, once it is
// asked for usage, on the usage event alone. A client that did not ask gets it
// where it would have been, however the stream is cut.
func TestTheFingerprintStaysInTheStream(t *testing.T) {
	const (
		content = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n"
		end     = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n"
		printed = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"system_fingerprint":"fp_\"1\""}` + "\n\n"
		usage   = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2},"system_fingerprint":"fp_\"1\""}` + "\n\n"
		other   = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"system_fingerprint":"other"}` + "\n\n"
		done    = "data: [DONE]\n\n"
	)
	golden := string(readStream(t, "vllm-fingerprint"))
	usageOfGolden := golden[strings.Index(golden, `data: {"id":"chatcmpl-5b3e","object":"chat.completion.chunk","created":1763712000,"model":"Qwen/Qwen3-32B","choices":[],`):strings.Index(golden, done)]
	second := strings.NewReplacer(`"index":0`, `"index":1`)
	before := strings.NewReplacer(`{"id"`, `{"usage":{"prompt_tokens":1,"completion_tokens":2},"id"`)
	behind := strings.NewReplacer(`]}`, `],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	null := strings.NewReplacer(`{"id"`, `{"system_fingerprint": null,"id"`)
	for name, c := range map[string]struct {
		strip        Strip
		stream, want string
	}{
		"vLLM 0.32":            {StripEvent | MovePrint, golden, strings.NewReplacer(`"stop_reason":null,"token_ids":null}]}`, `"stop_reason":null,"token_ids":null}],"system_fingerprint":"vllm-0.32.0-tp1-5b3e9a11"}`, usageOfGolden, "").Replace(golden)},
		"not ours":             {0, content + end + usage + done, content + end + usage + done},
		"of another kind":      {StripEvent, end + usage + done, end + done},
		"alone":                {StripEvent | MovePrint, end + usage + done, printed + done},
		"two choices":          {StripEvent | MovePrint, end + second.Replace(end) + usage + done, end + second.Replace(printed) + done},
		"more behind it":       {StripEvent | MovePrint, end + content + end + usage + done, end + content + printed + done},
		"no usage":             {StripEvent | MovePrint, content + end + done, content + end + done},
		"none in the usage":    {StripEvent | MovePrint, end + usageEvent + done, end + done},
		"CRLF":                 {StripEvent | MovePrint, strings.ReplaceAll(end+usage+done, "\n", "\r\n"), strings.ReplaceAll(printed+done, "\n", "\r\n")},
		"CR":                   {StripEvent | MovePrint, strings.ReplaceAll(end+usage+done, "\n", "\r"), strings.ReplaceAll(printed+done, "\n", "\r")},
		"continuous, behind":   {StripEvent | MovePrint | StripRunning, behind.Replace(content+end) + usage + done, content + printed + done},
		"continuous, before":   {StripEvent | MovePrint | StripRunning, before.Replace(content+end) + usage + done, content + printed + done},
		"a null":               {StripEvent | MovePrint, null.Replace(end) + usage + done, strings.Replace(null.Replace(end), "null", `"fp_\"1\""`, 1) + done},
		"one is there":         {StripEvent | MovePrint, other + end + usage + done, other + end + done},
		"a comment between":    {StripEvent | MovePrint, end + ": ping\n\n" + usage + done, end + ": ping\n\n" + done},
		"no last event":        {StripEvent | MovePrint, content + end, content + end},
		"the usage at the end": {StripEvent | MovePrint, content + end + strings.TrimSuffix(usage, "\n\n"), content + printed},
		"an error":             {StripEvent | MovePrint, `data: {"error":"x","choices":[{"finish_reason":"stop"}]}` + "\n\n" + usage + done, `data: {"error":"x","choices":[{"finish_reason":"stop"}]}` + "\n\n" + done},
	} {
		t.Run(name, func(t *testing.T) {
			cuts := [][][]byte{{[]byte(c.stream)}, bytewise([]byte(c.stream))}
			for i := range c.stream {
				cuts = append(cuts, [][]byte{[]byte(c.stream[:i]), []byte(c.stream[i:])})
			}
			for _, pieces := range cuts {
				if got := meter(c.strip, pieces...); got.passed != c.want || got.Bad {
					t.Fatalf("in %d pieces, the first of %d bytes:\ngot\n%s\nwant\n%s", len(pieces), len(pieces[0]), got.passed, c.want)
				}
			}
		})
	}
}

// What waits for a fingerprint waits for the next event, not longer.
func TestTheLastEventWaitsForTheNextOne(t *testing.T) {
	const end, next = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", `data: {"choices":[{"index":1,"delta":{"content":"a"}}]}` + "\n\n"
	m := (&Backend{}).NewMeter("/chat/completions", true, StripEvent|MovePrint)
	if pass, seen := m.Read([]byte(end)); len(pass) > 0 || !seen.Moved {
		t.Errorf("passed %q, moved %v; want it held, and seen", pass, seen.Moved)
	}
	if pass, _ := m.Read([]byte(next)); string(pass) != end+next {
		t.Errorf("passed %q, want both: what follows is no usage", pass)
	}
}
