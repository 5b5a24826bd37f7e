package continuation

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Request is what of a request has to be known for its answer to go on elsewhere.
// It refers to no byte of the body.
type Request struct {
	chat   bool
	open   int     // where a member may be put in
	behind int     // where the text so far goes: behind the last message, or the prompt
	limits []limit // how many tokens the answer has at most
	least  limit   // and at least
	stops  []string
}

// limit is a number of tokens in the body; to = 0: it is not there.
type limit struct{ from, to, tokens int }

// less is the edit that has the limit say so many tokens fewer, and no fewer than
// least.
func (l limit) less(tokens, least int) openai.Splice {
	return openai.Splice{From: l.from, To: l.to, Text: strconv.AppendInt(nil, int64(max(l.tokens-tokens, least)), 10)}
}

// harmless are the fields that do not matter to an answer that is continued. Those
// of sampling are for the next token alone. Those that count what the answer has
// already (presence_penalty, frequency_penalty) are in zeros.
var harmless = map[string]bool{
	"model": true, "stream": true, "stream_options": true,
	"temperature": true, "top_p": true, "top_k": true, "min_p": true, "typical_p": true, "repetition_penalty": true, "logit_bias": true,
	"stop_token_ids": true, "ignore_eos": true, "skip_special_tokens": true,
	"user": true, "metadata": true, "prompt_cache_key": true, "safety_identifier": true, "service_tier": true,
	"priority": true, "cache_salt": true, "request_id": true, "parallel_tool_calls": true,
	"chat_template": true, "chat_template_kwargs": true, "documents": true,
}

// zeros are fields that are harmless while they say nothing: 0, false, none.
var zeros = map[string]bool{
	"presence_penalty": true, "frequency_penalty": true, "logprobs": true, "top_logprobs": true, "prompt_logprobs": true,
	"echo": true, "store": true, "use_beam_search": true, "suffix": true, "tools": true, "functions": true,
	"include_stop_str_in_output": true,
}

// plain are fields that are harmless with one value.
var plain = map[string]string{
	"n": "1", "best_of": "1", "tool_choice": `"none"`, "function_call": `"none"`,
	"include_reasoning": "true", "separate_reasoning": "true", "stream_reasoning": "true", "reasoning_effort": `"none"`,
	"modalities": `["text"]`, "response_format": `{"type":"text"}`, "spaces_between_special_tokens": "true",
}

// Read reports what of r, a request to an endpoint of dialect d, has to be known
// for its answer to be continued, or why it cannot be.
func Read(d endpoint.Dialect, r *openai.Request) (Request, error) {
	q := Request{chat: d == endpoint.Chat, open: r.Open()}
	if !d.Chunks() {
		return q, errors.New("it is neither a chat nor a completion")
	}
	var why error
	r.Members(func(key, value []byte, from int) {
		if why == nil {
			why = q.member(string(key), value, from)
		}
	})
	switch {
	case why != nil:
		return q, why
	case q.behind == 0:
		return q, errors.New("there is nothing to continue")
	case !q.chat && len(q.limits) == 0: // engines have limits of their own there
		return q, errors.New("its max_tokens is not told")
	}
	return q, nil
}

func (q *Request) member(key string, value []byte, from int) error {
	end := from + len(value)
	switch {
	case key == "continue_final_message", key == "add_generation_prompt": // they are said to the next engine
		return errors.New("it says itself how its messages are gone on with")
	case string(value) == "null", harmless[key], plain[key] != "" && plain[key] == squeezed(value):
		return nil
	case key == "messages" && q.chat:
		return q.messages(value, from)
	case key == "prompt" && !q.chat:
		if value[0] != '"' {
			return errors.New("its prompt is no text")
		}
		q.behind = end - 1
		return nil
	case key == "max_tokens", key == "max_completion_tokens", key == "min_tokens":
		n, err := strconv.Atoi(string(value))
		if err != nil || n < 0 {
			return errors.New("its " + key + " is no plain number")
		}
		if l := (limit{from, end, n}); key == "min_tokens" {
			q.least = l
		} else {
			q.limits = append(q.limits, l)
		}
		return nil
	case key == "stop":
		for _, s := range gjson.ParseBytes(value).Array() {
			q.stops = append(q.stops, s.String())
		}
		return nil
	case zeros[key]:
		switch squeezed(value) {
		case "0", "0.0", "false", `""`, "[]":
			return nil
		}
	}
	return errors.New("it has " + strconv.Quote(key))
}

// messages notes where a final message goes.
func (q *Request) messages(value []byte, from int) error {
	list := gjson.ParseBytes(value)
	if !list.IsArray() {
		return errors.New("its messages are no list")
	}
	last := ""
	list.ForEach(func(_, m gjson.Result) bool { last = m.Get("role").String(); return true })
	if last == "" || last == "assistant" {
		return errors.New("its last message is the assistant's own")
	}
	q.behind = from + bytes.LastIndexByte(value, ']')
	return nil
}

// squeezed is value without white space, which in the values that are compared
// stands in no string.
func squeezed(value []byte) string {
	if len(value) > 64 {
		return ""
	}
	return strings.Join(strings.Fields(string(value)), "")
}

// Edits are what is changed in the body for an engine that goes on in this way,
// behind a text of so many tokens, beside the edits that it needs anyhow. None lies
// within another one. Where all of the answer is there but its end, one token is
// asked for.
func (q *Request) Edits(way upstream.Continue, text string, tokens int, edits []openai.Splice) []openai.Splice {
	edits = slices.Clone(edits)
	for _, l := range q.limits {
		edits = append(edits, l.less(tokens, 1))
	}
	if q.least.to > 0 {
		edits = append(edits, q.least.less(tokens, 0))
	}
	written := openai.AppendString(nil, text)
	switch {
	case text == "":
	case !q.chat:
		edits = append(edits, openai.Splice{From: q.behind, To: q.behind, Text: written[1 : len(written)-1]})
	default:
		message := append(append([]byte(`,{"role":"assistant","content":`), written...), '}')
		edits = append(edits, openai.Splice{From: q.behind, To: q.behind, Text: message})
	}
	if q.chat && text != "" && way == upstream.ContinueTold {
		edits = append(edits, openai.Splice{From: q.open, To: q.open, Text: []byte(`"continue_final_message":true,"add_generation_prompt":false,`)})
	}
	slices.SortStableFunc(edits, func(a, b openai.Splice) int { return a.From - b.From })
	return edits
}

// over reports whether so many tokens are all that the answer may have.
func (q *Request) over(tokens int) bool {
	return slices.ContainsFunc(q.limits, func(l limit) bool { return tokens >= l.tokens })
}

// stopping reports whether text ends in the beginning of a string that would end
// the answer: it may go on in the next engine's, which looks at its own text alone.
func (q *Request) stopping(text string) bool {
	for _, s := range q.stops {
		for n := min(len(s)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, s[:n]) {
				return true
			}
		}
	}
	return false
}
