package sim

import (
	"encoding/json"
	"testing"
)

// FuzzRequest checks that whatever a client sends, an accepted request stays
// within the limits.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{` + hello + `,"stream":true,"stream_options":{"include_usage":true},"max_tokens":5,"n":2}`,
		`{"prompt":["one",[1,2,3]],"max_completion_tokens":7}`,
		`{"prompt":[1,2,3]}`, `{"prompt":[[]]}`, `{"prompt":null}`, `{"prompt":""}`,
		`{"messages":[{"content":[{"type":"text","text":"x"},{}]},{"content":null},{}]}`,
		`{"messages":[null],"n":-1}`, `{"n":9223372036854775807,"prompt":["a","b"]}`,
		`{"max_tokens":131072,"prompt":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var q request
		if json.Unmarshal(body, &q) != nil {
			return
		}
		prompts := []int{0}
		for _, m := range q.Messages {
			prompts[0] += tokensOf(m.Content.bytes)
		}
		if q.Prompt != nil {
			prompts = q.Prompt.tokens
		}
		g, err := q.generation(prompts)
		if err != nil {
			return
		}
		if len(g.choices) > maxChoices || g.maxTokens < 1 || g.promptTokens < 0 || g.promptTokens > len(body) {
			t.Errorf("%d choices of %d tokens after %d", len(g.choices), g.maxTokens, g.promptTokens)
		}
		for i := range g.choices {
			if c := &g.choices[i]; c.promptTokens < 0 || c.promptTokens+g.maxTokens > maxModelLen {
				t.Errorf("choice %d has %d and %d tokens, over the limit of %d", i, c.promptTokens, g.maxTokens, maxModelLen)
			}
		}
	})
}
