package openai

import "unicode/utf8"

// Usage is the token count in an answer. Backends are not believed further
// than this: no count is negative or above 2^31-1, CachedTokens is part of
// PromptTokens, ReasoningTokens of CompletionTokens, and of both some may be sound.
type Usage struct {
	PromptTokens, CachedTokens, CompletionTokens, ReasoningTokens int

	AudioPromptTokens, AudioCompletionTokens int
}

// Chunk is what one event of a stream of chat.completions or completions
// holds, or one whole answer. The zero value holds nothing.
type Chunk struct {
	// Content is whether any choice carries something that the model generated:
	// text, reasoning, a refusal, a tool call, audio. Bytes is how long its text
	// is; audio has none.
	Content bool
	Bytes   int

	Reasoning bool // some of the content is reasoning

	// Texts is how many strings the content is made of, and Text the last of them.
	Texts int
	Text  Text

	HasUsage bool // Usage is the answer's own count
	Usage    Usage

	// HasTimings is whether llama.cpp's timings were there, and Timings is what
	// they say. They are in every answer, asked or not.
	HasTimings bool
	Timings    Usage

	// UsageOnly is whether the event carries usage and nothing else for the
	// client: choices is an empty array, usage an object, and there is neither
	// an error nor the prompt's filter results.
	UsageOnly bool

	Running Running

	Choices     Choices
	Fingerprint Fingerprint

	Error bool // the backend reports an error
}

// Text is a string of the content: [From, To) is what stands between its quotes, in
// offsets of the event's data.
type Text struct {
	From, To int
	Escaped  bool // it holds escapes
}

// OfOne reports whether the usage counts a single choice although there may be
// several, as llama.cpp's does: it is what the timings say, and they are of one.
func (c *Chunk) OfOne() bool {
	return c.HasTimings && (!c.HasUsage || c.Usage.CompletionTokens == c.Timings.CompletionTokens)
}

// Choices is what is known of an event's choices. The zero value is none.
type Choices struct {
	Count      int
	Index      int  // the highest one
	FirstBytes int  // what the first one has of the chunk's Bytes
	Finished   bool // one has a finish_reason
}

// Fingerprint is the system_fingerprint of an event: [From, To) is its value, in
// offsets of the event's data. Null is whether it is null. The zero value says
// that there is none.
type Fingerprint struct {
	From, To int
	Null     bool
}

// Running is the top-level usage of an event that has choices too: a count
// while the answer runs, or null where there is none yet. The zero value says
// that there is neither.
type Running struct {
	Null bool // it is null, which may also stand beside choices that are empty

	// [From, To) is what to take out of the event, so that the rest is as if the
	// usage had not been there; [Value, End) is its value. They are offsets in
	// the event's data. To is 0 when it is neither an object nor null.
	From, To, Value, End int
}

// ParseChunkText reads data into c, which is overwritten, and reports whether data
// is one JSON object. It appends what the model generated to text, until that has most
// bytes: the text whose length is Bytes, but for arguments that are no string. Else it
// allocates nothing.
func ParseChunkText(data []byte, c *Chunk, text []byte, most int) ([]byte, bool) {
	*c = Chunk{}
	p := chunkParser{walker: walker{b: data, inf: true}, c: c, kept: text, keep: most}
	start := p.space(0)
	if p.kind(start) != '{' {
		return text, false
	}
	end := p.top(start)
	if end < 0 || p.space(end) < len(data) {
		*c = Chunk{}
		return text, false
	}
	c.UsageOnly = p.noChoices && p.usageObject && !p.more && !c.Error && !c.Content
	if p.someChoices || p.noChoices && p.running.Null {
		c.Running = p.running
	}
	return p.kept, true
}

type chunkParser struct {
	walker
	c           *Chunk
	noChoices   bool // choices: []
	someChoices bool // choices: [ and something
	usageObject bool // usage: {…}
	more        bool // something else that clients read
	running     Running

	kept []byte // the text so far
	keep int    // how much of it is kept, in bytes
}

func (p *chunkParser) top(i int) int {
	at, done := p.first(i, '}')
	behind := -1 // the value before at; -1 = there is none
	for !done {
		key, _, v := p.key(at)
		if v < 0 {
			return -1
		}
		var end int
		switch string(key) {
		case "choices":
			end = p.choices(v)
		case "usage":
			end = p.topUsage(behind, at, v)
		case "x_groq":
			end = p.usageWithin(v)
		case "timings":
			end = p.timings(v)
		case "error":
			if end = p.value(v, 1); end > 0 {
				text := string(p.b[v:end])
				p.c.Error = p.c.Error || text != "null" && text != "false" && text != `""`
			}
		case "object":
			if end = p.value(v, 1); end > 0 && string(p.b[v:end]) == `"error"` {
				p.c.Error = true
			}
		case "system_fingerprint":
			if end = p.value(v, 1); p.kind(v) == '"' && end > v+2 || p.kind(v) == 'n' {
				p.c.Fingerprint = Fingerprint{From: v, To: end, Null: p.kind(v) == 'n'}
			}
		case "prompt_filter_results":
			end = p.value(v, 1)
			p.more = p.more || p.kind(v) != 'n'
		default:
			end = p.value(v, 1)
		}
		if end < 0 {
			return -1
		}
		first := behind < 0
		behind = end
		if at, done = p.next(end, '}'); first && !done && p.running.To == end {
			p.running.To = at // nothing stands before it: the comma behind goes
		}
	}
	return at
}

// topUsage reads the usage whose key stands at at and its value at v; behind
// is the end of the value before it, -1 if there is none.
func (p *chunkParser) topUsage(behind, at, v int) int {
	end := p.usage(v, 1)
	if end < 0 {
		return -1
	}
	p.usageObject = p.kind(v) == '{'
	p.running = Running{}
	if null := p.kind(v) == 'n'; null || p.usageObject {
		p.running = Running{Null: null, From: at, To: end, Value: v, End: end}
		if behind >= 0 {
			p.running.From = behind
		}
	}
	return end
}

func (p *chunkParser) choices(i int) int {
	if p.kind(i) != '[' {
		return p.value(i, 1)
	}
	p.noChoices, p.someChoices = true, false
	return p.items(i, func(at int) int {
		p.noChoices, p.someChoices = false, true
		end := p.choice(at)
		if p.c.Choices.Count++; p.c.Choices.Count == 1 {
			p.c.Choices.FirstBytes = p.c.Bytes
		}
		return end
	})
}

func (p *chunkParser) choice(i int) int {
	if p.kind(i) != '{' {
		return p.value(i, 2)
	}
	return p.fields(i, func(key []byte, v int) int {
		switch string(key) {
		case "delta", "message":
			return p.message(v)
		case "text":
			return p.text(v, 3)
		case "index":
			n := 0
			end := p.tokens(v, 3, &n)
			p.c.Choices.Index = max(p.c.Choices.Index, n)
			return end
		case "finish_reason":
			p.c.Choices.Finished = p.c.Choices.Finished || p.kind(v) == '"'
		case "usage": // Moonshot has it here
			return p.usage(v, 3)
		}
		return p.value(v, 3)
	})
}

// message reads a delta or a whole message.
func (p *chunkParser) message(i int) int {
	if p.kind(i) != '{' {
		return p.value(i, 3)
	}
	return p.fields(i, func(key []byte, v int) int {
		switch string(key) {
		case "reasoning_content", "reasoning":
			before := p.c.Bytes
			end := p.parts(v, 4)
			p.c.Reasoning = p.c.Reasoning || p.c.Bytes > before
			return end
		case "refusal":
			return p.text(v, 4)
		case "content", "tool_calls", "function_call", "audio":
			return p.parts(v, 4)
		}
		return p.value(v, 4)
	})
}

// text counts the string at v as content; anything else is passed over.
func (p *chunkParser) text(v, depth int) int {
	if p.kind(v) != '"' {
		return p.value(v, depth)
	}
	end, escaped := p.str(v)
	if end > v+2 {
		p.c.Content = true
		p.c.Bytes += textLen(p.b[v+1:end-1], escaped)
		p.c.Texts++
		p.c.Text = Text{From: v + 1, To: end - 1, Escaped: escaped}
		if len(p.kept) <= p.keep-utf8.UTFMax { // with less room a character may have been left out already
			p.kept, _ = appendUnquoted(p.kept, p.b[v+1:end-1], escaped, p.keep)
		}
	}
	return end
}

// parts counts the content at v: a string, or objects and arrays that hold
// strings under the keys that content has in tool calls, audio and typed
// parts.
func (p *chunkParser) parts(v, depth int) int {
	switch p.kind(v) {
	case '"':
		return p.text(v, depth)
	case '[':
		if !p.enter(v, depth) {
			return -1
		}
		return p.items(v, func(at int) int {
			if p.kind(at) == '"' { // plain strings are no parts
				return p.value(at, depth+1)
			}
			return p.parts(at, depth+1)
		})
	case '{':
		return p.part(v, depth)
	}
	return p.value(v, depth)
}

func (p *chunkParser) part(i, depth int) int {
	if !p.enter(i, depth) {
		return -1
	}
	return p.fields(i, func(key []byte, v int) int {
		switch string(key) {
		case "text", "transcript", "name", "input", "function", "custom":
			return p.parts(v, depth+1)
		case "thinking":
			before := p.c.Bytes
			end := p.parts(v, depth+1)
			p.c.Reasoning = p.c.Reasoning || p.c.Bytes > before
			return end
		case "arguments":
			return p.arguments(v, depth+1)
		case "data": // audio
			end := p.value(v, depth+1)
			p.c.Content = p.c.Content || end > v+2 && p.kind(v) == '"'
			return end
		}
		return p.value(v, depth+1)
	})
}

// arguments counts those of a tool call: a string that holds JSON, or with
// some engines the JSON itself.
func (p *chunkParser) arguments(v, depth int) int {
	if k := p.kind(v); k != '{' && k != '[' {
		return p.text(v, depth)
	}
	end := p.value(v, depth)
	if end > v+2 {
		p.c.Content = true
		p.c.Bytes += end - v
	}
	return end
}
