package translate

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// chatVoice writes chunks of a chat completion.
type chatVoice struct {
	o      Reply
	head   []byte // of every chunk, up to its delta
	calls  int
	bare   bool // the call under way has no arguments yet
	signed int
	text   []byte // of the thought under way, as the signature is for all of it
	lost   bool   // of the thought under way not all was kept
	ended  Finish
	usage  Usage

	call []byte // the beginning and the arguments of the call under way, where it is told as a whole
}

// held implements keeper, of a call that is told as a whole and of a thought.
func (c *chatVoice) held() int { return cap(c.call) + cap(c.text) }

// ends implements keeper.
func (c *chatVoice) ends() int { return c.held() }

// letGo implements keeper.
func (c *chatVoice) letGo() (lost bool) {
	lost = len(c.call) > 0
	c.lost = c.lost || len(c.text) > 0
	c.call, c.text = nil, nil
	return lost
}

func chatStream(o Reply) voice { return &chatVoice{o: o} }

const (
	chatTail = `},"finish_reason":null}]}` + "\n\n"

	// maxThought is how long a thought may be that is handed out with its
	// signature, in bytes.
	maxThought = 1 << 20
)

func (c *chatVoice) begin(id []byte) {
	w := writer{}
	w.b = append(w.b, "data: "...)
	w.open('{')
	w.bytesField("id", c.o.id(id, "chatcmpl-", ""))
	w.field("object", "chat.completion.chunk")
	w.intField("created", int(c.o.Created))
	w.field("model", c.o.Model)
	c.head = append(w.b, `,"choices":[`...)
}

// chunk writes a chunk whose delta is prefix, text and suffix.
func (c *chatVoice) chunk(b []byte, prefix string, text []byte, suffix string) []byte {
	if c.head == nil {
		c.begin(nil)
	}
	b = append(append(b, c.head...), `{"index":0,"delta":{`...)
	b = append(append(append(b, prefix...), text...), suffix...)
	return append(b, chatTail...)
}

func (c *chatVoice) say(b []byte, e *Event) []byte {
	switch e.Kind {
	case Begin:
		c.begin(e.ID)
		return c.chunk(b, `"role":"assistant","content":""`, nil, "")
	case BlockBegin:
		return c.blockBegin(b, e)
	case BlockDelta:
		switch e.Block {
		case Redacted:
			return b // its beginning has all
		case Thinking:
			if c.lost = c.lost || len(c.text)+len(e.Text) > maxThought; !c.lost {
				c.text = append(c.text, inner(e.Text)...)
			}
			return c.chunk(b, `"reasoning_content":`, e.Text, "")
		case ToolCall:
			c.bare = false
			if c.o.WholeCalls {
				c.call = append(c.call, inner(e.Text)...)
				return b
			}
			return c.chunk(b, `"tool_calls":[{"index":`+strconv.Itoa(c.calls-1)+`,"function":{"arguments":`, e.Text, "}}]")
		}
		if e.Refusal {
			return c.chunk(b, `"refusal":`, e.Text, "")
		}
		return c.chunk(b, `"content":`, e.Text, "")
	case BlockSigned:
		return c.blockSigned(b, e)
	case BlockEnd:
		if e.Block == ToolCall && c.o.WholeCalls {
			if c.bare {
				c.call = append(c.call, "{}"...)
			}
			b = c.chunk(b, "", c.call, `"}}]`)
			if c.call = c.call[:0]; cap(c.call) > keptOut {
				c.call = nil
			}
			return b
		}
		if e.Block == ToolCall && c.bare {
			c.bare = false
			return c.chunk(b, `"tool_calls":[{"index":`+strconv.Itoa(c.calls-1)+`,"function":{"arguments":"{}"`, nil, "}}]")
		}
	case Chances:
		if c.head == nil {
			c.begin(nil)
		}
		b = append(append(b, c.head...), `{"index":0,"delta":{},"logprobs":{"content":[`...)
		return append(append(b, e.Raw...), `],"refusal":null},"finish_reason":null}]}`+"\n\n"...)
	case Ended:
		c.ended = e.Finish
	case Used:
		c.usage = e.Usage
	case Failed:
		b = append(b, "data: "...)
		return append(append(b, e.Failure.chat()...), "\n\n"...)
	case Over:
		return c.over(b)
	}
	return b
}

func (c *chatVoice) blockBegin(b []byte, e *Event) []byte {
	switch e.Block {
	case Thinking:
		c.text, c.lost = c.text[:0], false
	case Redacted:
		b = c.chunk(b, `"thinking_blocks":[{"index":`+strconv.Itoa(c.signed)+`,"type":"redacted_thinking","data":`, e.Text, "}]")
		c.signed++
	case ToolCall:
		id := c.o.id(e.ID, "call_", strconv.Itoa(c.calls))
		prefix := `"tool_calls":[{"index":` + strconv.Itoa(c.calls) + `,"id":` + string(id) + `,"type":"function","function":{"name":`
		c.calls++
		c.bare = true
		if c.o.WholeCalls {
			c.call = append(append(append(c.call[:0], prefix...), e.Name...), `,"arguments":"`...)
			return b
		}
		suffix := `,"arguments":""}}]`
		if e.Raw != nil {
			suffix = `,"arguments":""},"extra_content":{"google":{"thought_signature":` + string(e.Raw) + `}}}]`
		}
		return c.chunk(b, prefix, e.Name, suffix)
	}
	return b
}

// blockSigned writes a thought with its signature, for clients that send back
// what they got. Of a part of a thought the signature would be wrong.
func (c *chatVoice) blockSigned(b []byte, e *Event) []byte {
	if c.lost {
		return b
	}
	prefix := `"thinking_blocks":[{"index":` + strconv.Itoa(c.signed) + `,"type":"thinking","thinking":"` + string(c.text) + `","signature":`
	c.signed++
	c.text = c.text[:0]
	return c.chunk(b, prefix, e.Text, "}]")
}

func (c *chatVoice) over(b []byte) []byte {
	if c.head == nil {
		c.begin(nil)
	}
	b = append(append(b, c.head...), `{"index":0,"delta":{},"finish_reason":"`...)
	b = append(append(b, chatReason.of(c.ended)...), `"}]}`+"\n\n"...)
	if c.o.WantUsage {
		w := writer{append(append(b, c.head...), ']')}
		w.chatUsage(c.usage)
		b = append(w.b, "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

var chatReason = reasons{FinishStop: "stop", FinishLength: "length", FinishTools: "tool_calls", FinishFilter: "content_filter"}

func (w *writer) chatUsage(u Usage) {
	w.within("usage", '{', '}', func() {
		w.intField("prompt_tokens", u.Prompt)
		w.intField("completion_tokens", u.Completion)
		w.intField("total_tokens", u.Prompt+u.Completion)
		w.within("prompt_tokens_details", '{', '}', func() { w.intField("cached_tokens", u.Cached) })
		w.within("completion_tokens_details", '{', '}', func() { w.intField("reasoning_tokens", u.Reasoning) })
	})
}

// chat is the error as OpenAI's clients read it.
func (f *Failure) chat() []byte {
	w := writer{}
	w.object(func() {
		w.within("error", '{', '}', func() {
			w.field("message", f.Message)
			w.field("type", cmp.Or(f.Type, "upstream_error"))
			w.rawField("param", "null")
			if f.Type != "" {
				w.field("code", f.Type)
			} else {
				w.field("code", "upstream_disconnected")
			}
		})
	})
	return w.b
}

// chatWhole writes a whole chat completion.
func chatWhole(o Reply, a *answer) []byte {
	if a.failure != nil {
		return a.failure.chat()
	}
	w := writer{}
	w.object(func() {
		w.bytesField("id", o.id(a.id, "chatcmpl-", ""))
		w.field("object", "chat.completion")
		w.intField("created", int(o.Created))
		w.field("model", o.Model)
		w.within("choices", '[', ']', func() {
			w.object(func() {
				w.intField("index", 0)
				w.within("message", '{', '}', func() { w.chatMessage(o, a) })
				if a.chances != nil {
					w.within("logprobs", '{', '}', func() {
						w.within("content", '[', ']', func() { w.b = append(w.b, a.chances...) })
						w.rawField("refusal", "null")
					})
				} else {
					w.rawField("logprobs", "null")
				}
				w.field("finish_reason", chatReason.of(a.finish))
			})
		})
		w.chatUsage(a.usage)
	})
	return w.b
}

func (w *writer) chatMessage(o Reply, a *answer) {
	w.field("role", "assistant")
	orNull := func(name string, text []byte) {
		if text == nil {
			text = []byte("null")
		}
		w.bytesField(name, text)
	}
	orNull("content", a.joined(Text, false))
	orNull("refusal", a.joined(Text, true))
	if thought := a.joined(Thinking, false); thought != nil {
		w.bytesField("reasoning_content", thought)
	}
	if slices.ContainsFunc(a.blocks, block.goesBack) {
		w.within("thinking_blocks", '[', ']', func() {
			for i := range a.blocks {
				if b := &a.blocks[i]; b.goesBack() {
					w.messageBlock(o, b, nil) // as Anthropic has them
				}
			}
		})
	}
	w.toolCalls(a, o, true)
}

// toolCalls writes the calls of an answer as OpenAI and Cohere have them; signed is
// whether the client can carry the signature that Google's models want back.
func (w *writer) toolCalls(a *answer, o Reply, signed bool) {
	if !a.calls() {
		return
	}
	w.within("tool_calls", '[', ']', func() {
		n := 0
		for i := range a.blocks {
			b := &a.blocks[i]
			if b.kind != ToolCall {
				continue
			}
			w.object(func() {
				w.bytesField("id", bytes.TrimSpace(o.id(b.id, "call_", strconv.Itoa(n))))
				w.field("type", "function")
				w.within("function", '{', '}', func() {
					w.bytesField("name", b.name)
					w.field("arguments", b.input())
				})
				if signed && b.signature != nil {
					w.within("extra_content", '{', '}', func() {
						w.within("google", '{', '}', func() { w.bytesField("thought_signature", b.signature) })
					})
				}
			})
			n++
		}
	})
}

// goesBack reports whether b is a thought that its author wants back.
func (b block) goesBack() bool {
	return b.kind == Redacted || b.kind == Thinking && b.signature != nil
}
