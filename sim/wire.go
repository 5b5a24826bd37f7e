package sim

import (
	"strconv"
	"strings"
)

// wire is the shape of one kind of answer in the dialect of chat.completions
// and completions.
type wire struct {
	idPrefix      string
	object, chunk string // the object member of a whole answer and of a chunk
	// before and after stand around the words in a chunk's choice.
	before, after string
	role          string // the choice's content in the first chunk; empty = no such chunk
	finish        string // the choice's content in the last one
	details       string // and what its usage ends in where it does
	// thought stands in the place of before in the first half of the tokens,
	// which then are reasoning; empty = none are.
	thought string
	// piece is the text of one of the tokens; nil = word.
	piece  func(choice, t, tokens int) string
	choice func(index int, reasoning, text string) any
}

// thoughts is how many of so many tokens are reasoning.
func (w *wire) thoughts(tokens int) int {
	if w.thought == "" {
		return 0
	}
	return (tokens + 1) / 2
}

// text is the t-th of the tokens of a choice.
func (w *wire) text(choice, t, tokens int) string {
	if w.piece == nil {
		return word(choice, t)
	}
	return w.piece(choice, t, tokens)
}

// speak makes a the answer that w has the shape of.
func (w *wire) speak(a *answer) voice {
	v := &wireVoice{wire: w, answer: a, choices: make([]choiceHead, len(a.g.choices)), thoughts: w.thoughts(a.g.maxTokens)}
	a.id = strings.Replace(a.id, "chatcmpl", w.idPrefix, 1)
	head := w.head(a)
	for i := range v.choices {
		head := head + `{"index":` + strconv.Itoa(i) + `,`
		v.choices[i] = choiceHead{head: head, before: head + w.before, thought: head + w.thought}
	}
	return v
}

// wireVoice is the voice of an answer in the shape of wire. What does not
// change from token to token is made once.
type wireVoice struct {
	*wire
	answer   *answer
	choices  []choiceHead
	thoughts int // the first tokens of each choice that are reasoning
}

// choiceHead is the start of every chunk of one choice.
type choiceHead struct{ head, before, thought string }

// open appends the chunk that says who speaks, where there is one.
func (v *wireVoice) open(b []byte, choice int) []byte {
	if v.role == "" {
		return b
	}
	return v.close(append(append(b, v.choices[choice].head...), v.role...), choice, 0)
}

func (v *wireVoice) token(b []byte, choice, t int) []byte {
	if t < v.thoughts {
		b = append(b, v.choices[choice].thought...)
	} else {
		b = append(b, v.choices[choice].before...)
	}
	if v.piece == nil {
		b = append(b, word(choice, t)...)
	} else {
		b = appendEscaped(b, v.piece(choice, t, v.answer.g.maxTokens))
	}
	return v.close(append(b, v.after...), choice, t+1)
}

// finish appends the chunk that says why the choice ended.
func (v *wireVoice) finish(b []byte, choice int) []byte {
	b = append(append(b, v.choices[choice].head...), v.wire.finish...)
	a := v.answer
	if a.usage && a.server.quirks.usageOnFinish {
		return append(append(append(b, `,"usage":`...), marshal(a.g.usage())...), "}\n\n"...)
	}
	return v.close(b, choice, a.g.maxTokens)
}

// close ends a chunk of a choice that has so many tokens by now. Continuous
// usage is of that choice alone, as vLLM has it.
func (v *wireVoice) close(b []byte, choice, tokens int) []byte {
	a := v.answer
	if !a.continuous {
		if a.usage && a.server.quirks.usageNull {
			b = append(b, `,"usage":null`...)
		}
		return append(b, "}\n\n"...)
	}
	if a.server.quirks.repeatedUsage {
		tokens -= (tokens + 1) % 2 // an odd number of tokens is told twice
		tokens = max(tokens, 0)
	}
	prompt := a.g.choices[choice].promptTokens
	b = strconv.AppendInt(append(b, `,"usage":{"prompt_tokens":`...), int64(prompt), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(prompt+tokens), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(tokens), 10)
	return append(append(b, v.details...), "}}\n\n"...)
}

// appendEscaped appends what stands between the quotes of a JSON string. The
// tokens hold nothing to escape but quotes and backslashes.
func appendEscaped(b []byte, text string) []byte {
	if !strings.ContainsAny(text, `"\`) {
		return append(b, text...)
	}
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, text[i])
	}
	return b
}

// end appends the usage chunk, if it was asked for, and the last event.
func (v *wireVoice) end(b []byte) []byte {
	a := v.answer
	if a.usage && !a.server.quirks.usageOnFinish {
		b = v.usage(b, a)
		if a.server.quirks.repeatedUsage {
			b = v.usage(b, a)
		}
	}
	return append(b, "data: [DONE]\n\n"...)
}

func (v *wireVoice) body() any { return v.wire.body(v.answer) }

var chatWire = &wire{
	idPrefix: "chatcmpl", object: "chat.completion", chunk: "chat.completion.chunk",
	before: `"delta":{"content":"`,
	after:  `"},"logprobs":null,"finish_reason":null}]`,
	role:   `"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`,
	finish: `"delta":{"content":""},"logprobs":null,"finish_reason":"length","stop_reason":null}]`,
	choice: func(index int, _, text string) any {
		c := chatChoice{Index: index, FinishReason: "length"}
		c.Message.Role, c.Message.Content = "assistant", &text
		return c
	},
}

var completionWire = &wire{
	idPrefix: "cmpl", object: "text_completion", chunk: "text_completion",
	before:  `"text":"`,
	after:   `","logprobs":null,"finish_reason":null,"stop_reason":null}]`,
	finish:  `"text":"","logprobs":null,"finish_reason":"length","stop_reason":null}]`,
	details: `,"prompt_tokens_details":null`,
	choice: func(index int, _, text string) any {
		return completionChoice{Index: index, Text: text, FinishReason: "length"}
	},
}

// chatChoice is a choice of a chat: a text, maybe with the reasoning that led to it, or
// calls of tools in place of both.
type chatChoice struct {
	Index   int `json:"index"`
	Message struct {
		Role      string     `json:"role"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		Content   *string    `json:"content"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	} `json:"message"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
	StopReason   *string   `json:"stop_reason"`
}

type completionChoice struct {
	Index        int       `json:"index"`
	Text         string    `json:"text"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
	StopReason   *string   `json:"stop_reason"`
}

// usage is what an answer cost, in vLLM's order.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	TotalTokens      int `json:"total_tokens"`
	CompletionTokens int `json:"completion_tokens"`

	Details *promptDetails `json:"prompt_tokens_details,omitempty"`
}

// promptDetails is what vLLM tells of a prompt if it is started with
// --enable-prompt-tokens-details.
type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

func (g *generation) usage() usage {
	u := usage{PromptTokens: g.promptTokens, CompletionTokens: len(g.choices) * g.maxTokens}
	if g.wrongUsage {
		u.CompletionTokens = g.maxTokens
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	if g.tellsCached {
		u.Details = &promptDetails{}
		for i := range g.choices {
			u.Details.CachedTokens += int(g.choices[i].cached.Load())
		}
		if g.wrongCached {
			u.Details.CachedTokens = u.PromptTokens
		}
	}
	return u
}

// body is the whole answer.
func (w *wire) body(a *answer) any {
	b := struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		Model   string `json:"model"`
		Choices []any  `json:"choices"`
		Usage   usage  `json:"usage"`
	}{a.id, w.object, a.created, a.model, nil, a.g.usage()}
	thoughts := w.thoughts(a.g.maxTokens)
	for i := range a.g.choices {
		b.Choices = append(b.Choices, w.choice(i, w.join(i, 0, thoughts, a.g.maxTokens), w.join(i, thoughts, a.g.maxTokens, a.g.maxTokens)))
	}
	return b
}

// join is the text of the tokens from up to to, of so many.
func (w *wire) join(choice, from, to, tokens int) string {
	var text []byte
	for t := from; t < to; t++ {
		text = append(text, w.text(choice, t, tokens)...)
	}
	return string(text)
}

// head is the start of every chunk of an answer, up to its choices.
func (w *wire) head(a *answer) string {
	return `data: {"id":"` + a.id + `","object":"` + w.chunk + `","created":` + strconv.FormatInt(a.created, 10) +
		`,"model":` + quote(a.model) + `,"choices":[`
}

// usage appends the usage chunk.
func (w *wire) usage(b []byte, a *answer) []byte {
	b = append(b, w.head(a)...)
	b = append(b, `],"usage":`...)
	b = append(b, marshal(a.g.usage())...)
	return append(b, "}\n\n"...)
}

// words are what answers are made of, a token each. They need no escaping.
var words = [...]string{
	" the", " model", " reads", " a", " prompt", " and", " then", " one", " token", " after", " the", " other",
	" comes", " out", ".", " Every", " step", " serves", " all", " who", " wait", ",", " so", " a", " crowd", " is",
	" slow", " but", " nobody", " is", " left", " out", ".", " Some", " answers", " are", " short", ",", " some",
	" go", " on", " for", " pages", ";", " this", " text", " says", " little", " at", " any", " length", ".", " Count",
	" its", " words", " if", " you", " like", ",", " not", " its", " thoughts", ".", " Again", ":",
}

// word is the t-th token of the answer with the given index.
func word(index, t int) string { return words[(t+7*index)%len(words)] }
