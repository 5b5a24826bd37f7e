package translate

import (
	"cmp"
	"strconv"

	"github.com/tidwall/gjson"
)

// cohereHearing reads answers of Cohere's chat.
type cohereHearing struct{ passage }

func hearCohere() hearing { return &cohereHearing{} }

func (h *cohereHearing) payload(f frame, to heard) {
	if len(f.data) == 0 || string(f.data) == "[DONE]" {
		return
	}
	v, ok := parse(f.data)
	if !ok {
		to.bad()
		return
	}
	message := v.Get("delta.message")
	switch v.Get("type").Str {
	case "message-start":
		to.emit(Event{Kind: Begin, ID: quoted(v.Get("id"))})
	case "content-start":
		kind := Text
		if message.Get("content.type").Str == "thinking" {
			kind = Thinking
		}
		h.begin(kind, nil, nil, to)
		h.content(message.Get("content"), to)
	case "content-delta":
		h.content(message.Get("content"), to)
	case "tool-plan-delta":
		h.piece(Text, message.Get("tool_plan"), to)
	case "tool-call-start":
		call := message.Get("tool_calls")
		h.begin(ToolCall, quoted(call.Get("id")), quoted(call.Get("function.name")), to)
		h.piece(ToolCall, call.Get("function.arguments"), to)
	case "tool-call-delta":
		if h.open && h.kind == ToolCall {
			h.piece(ToolCall, message.Get("tool_calls.function.arguments"), to)
		}
	case "content-end", "tool-call-end":
		h.close(to)
	case "message-end":
		h.end(v.Get("delta"), to)
	}
}

// end reads the end of a stream, or of a document.
func (h *cohereHearing) end(v gjson.Result, to heard) {
	h.close(to)
	reason := v.Get("finish_reason").Str
	if usage := v.Get("usage"); usage.IsObject() {
		to.emit(Event{Kind: Used, Usage: cohereUsage(usage)})
	}
	if failed := v.Get("error"); failed.Str != "" || reason == "ERROR" || reason == "TIMEOUT" {
		to.emit(Event{Kind: Failed, Failure: &Failure{Type: "upstream_error", Message: cmp.Or(failed.Str, "The backend ended its answer with "+reason+".")}})
	} else {
		to.emit(Event{Kind: Ended, Finish: finished(cohereFinish, reason)})
	}
	to.emit(Event{Kind: Over})
}

// content reads a piece of a text or of a thought.
func (h *cohereHearing) content(v gjson.Result, to heard) {
	h.piece(Thinking, v.Get("thinking"), to)
	h.piece(Text, v.Get("text"), to)
}

func (h *cohereHearing) document(v gjson.Result, to heard) {
	message := v.Get("message")
	if !message.IsObject() {
		to.bad()
		return
	}
	to.emit(Event{Kind: Begin, ID: quoted(v.Get("id"))})
	message.Get("content").ForEach(func(_, b gjson.Result) bool {
		if kind := b.Get("type").Str; kind == "text" || kind == "thinking" {
			h.content(b, to)
			h.close(to)
		}
		return true
	})
	h.piece(Text, message.Get("tool_plan"), to)
	message.Get("tool_calls").ForEach(func(_, call gjson.Result) bool {
		if call.IsObject() {
			h.begin(ToolCall, quoted(call.Get("id")), quoted(call.Get("function.name")), to)
			h.piece(ToolCall, call.Get("function.arguments"), to)
		}
		return true
	})
	h.end(v, to)
}

var cohereFinish = map[string]Finish{
	"MAX_TOKENS": FinishLength, "TOOL_CALL": FinishTools, "STOP_SEQUENCE": FinishSequence, "ERROR_TOXIC": FinishFilter,
}

func cohereUsage(v gjson.Result) (u Usage) {
	eachCount(raw(v), func(parent, name []byte, n int) {
		switch {
		case string(parent) == "tokens" && string(name) == "input_tokens":
			u.Prompt = n
		case string(parent) == "tokens" && string(name) == "output_tokens":
			u.Completion = n
		case parent == nil && string(name) == "cached_tokens":
			u.Cached = n
		}
	})
	u.Cached = min(u.Cached, u.Prompt)
	return u
}

// cohereVoice writes the events of Cohere's chat.
type cohereVoice struct {
	o      Reply
	begun  bool
	blocks int // of text and of thoughts that have begun
	calls  int
	kind   PartKind
	open   bool
	ended  Finish
	usage  Usage
}

func cohereStream(o Reply) voice { return &cohereVoice{o: o} }

// event begins the event typ: what is within its delta's message follows.
func (c *cohereVoice) event(b []byte, typ string, index int) []byte {
	b = append(append(b, "event: "...), typ...)
	b = append(append(append(b, "\ndata: {\"type\":\""...), typ...), '"')
	if index >= 0 {
		b = strconv.AppendInt(append(b, `,"index":`...), int64(index), 10)
	}
	return b
}

func (c *cohereVoice) say(b []byte, e *Event) []byte {
	switch e.Kind {
	case Begin:
		return c.begin(b, e.ID)
	case BlockBegin:
		return c.blockBegin(b, e)
	case BlockDelta:
		return c.delta(b, e)
	case BlockEnd:
		return c.blockEnd(b)
	case Ended:
		c.ended = e.Finish
	case Used:
		c.usage = e.Usage
	case Failed:
		w := writer{c.event(b, "message-end", -1)}
		w.within("delta", '{', '}', func() {
			w.field("error", e.Failure.Message)
			w.field("finish_reason", "ERROR")
		})
		return append(w.b, "}\n\n"...)
	case Over:
		return c.over(b)
	}
	return b
}

func (c *cohereVoice) begin(b, id []byte) []byte {
	c.begun = true
	w := writer{c.event(b, "message-start", -1)}
	w.bytesField("id", c.o.id(id, "", ""))
	return append(w.b, `,"delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`+"\n\n"...)
}

func (c *cohereVoice) blockBegin(b []byte, e *Event) []byte {
	if e.Block == Redacted {
		return b // nobody but its author reads it
	}
	if !c.begun {
		b = c.begin(b, nil)
	}
	c.kind, c.open = e.Block, true
	switch e.Block {
	case ToolCall:
		b = append(c.event(b, "tool-call-start", c.calls), `,"delta":{"message":{"tool_calls":{"id":`...)
		b = append(b, c.o.id(e.ID, "call_", strconv.Itoa(c.calls))...)
		b = append(append(b, `,"type":"function","function":{"name":`...), e.Name...)
		c.calls++
		return append(b, `,"arguments":""}}}}}`+"\n\n"...)
	case Thinking:
		b = append(c.event(b, "content-start", c.blocks), `,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`+"\n\n"...)
	default:
		b = append(c.event(b, "content-start", c.blocks), `,"delta":{"message":{"content":{"type":"text","text":""}}}}`+"\n\n"...)
	}
	c.blocks++
	return b
}

func (c *cohereVoice) delta(b []byte, e *Event) []byte {
	switch e.Block {
	case Redacted:
		return b
	case ToolCall:
		b = append(c.event(b, "tool-call-delta", c.calls-1), `,"delta":{"message":{"tool_calls":{"function":{"arguments":`...)
		return append(append(b, e.Text...), "}}}}}\n\n"...)
	case Thinking:
		b = append(c.event(b, "content-delta", c.blocks-1), `,"delta":{"message":{"content":{"thinking":`...)
	default:
		b = append(c.event(b, "content-delta", c.blocks-1), `,"delta":{"message":{"content":{"text":`...)
	}
	return append(append(b, e.Text...), "}}}}\n\n"...)
}

func (c *cohereVoice) blockEnd(b []byte) []byte {
	if !c.open {
		return b
	}
	c.open = false
	if c.kind == ToolCall {
		return append(c.event(b, "tool-call-end", c.calls-1), "}\n\n"...)
	}
	return append(c.event(b, "content-end", c.blocks-1), "}\n\n"...)
}

func (c *cohereVoice) over(b []byte) []byte {
	if !c.begun {
		b = c.begin(b, nil)
	}
	w := writer{c.event(c.blockEnd(b), "message-end", -1)}
	w.within("delta", '{', '}', func() {
		w.field("finish_reason", cohereReason.of(c.ended))
		w.cohereUsage(c.usage)
	})
	return append(w.b, "}\n\n"...)
}

var cohereReason = reasons{
	FinishStop: "COMPLETE", FinishLength: "MAX_TOKENS", FinishTools: "TOOL_CALL", FinishSequence: "STOP_SEQUENCE", FinishFilter: "ERROR_TOXIC",
}

func (w *writer) cohereUsage(u Usage) {
	counts := func() {
		w.intField("input_tokens", u.Prompt)
		w.intField("output_tokens", u.Completion)
	}
	w.within("usage", '{', '}', func() {
		w.within("billed_units", '{', '}', counts)
		w.within("tokens", '{', '}', counts)
		w.intField("cached_tokens", u.Cached)
	})
}

// cohereFailure is the error as Cohere's clients read it.
func (f *Failure) cohere() []byte {
	w := writer{}
	w.object(func() { w.field("message", f.Message) })
	return w.b
}

// cohereWhole writes a whole answer of Cohere's chat.
func cohereWhole(o Reply, a *answer) []byte {
	if a.failure != nil {
		return a.failure.cohere()
	}
	w := writer{}
	w.object(func() {
		w.bytesField("id", o.id(a.id, "", ""))
		w.field("finish_reason", cohereReason.of(a.finish))
		w.within("message", '{', '}', func() { w.cohereMessage(o, a) })
		w.cohereUsage(a.usage)
	})
	return w.b
}

func (w *writer) cohereMessage(o Reply, a *answer) {
	w.field("role", "assistant")
	w.within("content", '[', ']', func() {
		for i := range a.blocks {
			b := &a.blocks[i]
			kind := map[PartKind]string{Text: "text", Thinking: "thinking"}[b.kind]
			if kind == "" {
				continue
			}
			w.object(func() {
				w.field("type", kind)
				w.bytesField(kind, b.text)
			})
		}
	})
	w.toolCalls(a, o, false)
}
