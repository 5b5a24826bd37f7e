package translate

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// messagesHearing reads Anthropic's messages.
type messagesHearing struct {
	passage
	skips bool // a block that is not passed on
	usage Usage
	fresh int // of the prompt, tokens that are neither read from a cache nor written to it
	begun bool
}

func hearMessages() hearing { return &messagesHearing{} }

func (h *messagesHearing) payload(f frame, to heard) {
	if len(f.data) == 0 {
		return
	}
	v, ok := parse(f.data)
	if !ok {
		to.bad()
		return
	}
	var typ, delta, block, message, usage gjson.Result
	pick(v, member{"type", &typ}, member{"delta", &delta}, member{"content_block", &block}, member{"message", &message}, member{"usage", &usage})
	switch typ.Str {
	case "message_start":
		h.begun = true
		to.emit(Event{Kind: Begin, ID: quoted(message.Get("id")), Name: quoted(message.Get("model"))})
		h.count(message.Get("usage"))
		h.usage.Completion = 0 // it counts nothing that was said
	case "content_block_start":
		h.start(block, to)
	case "content_block_delta":
		h.delta(delta, to)
	case "content_block_stop":
		h.skips = false
		h.close(to)
	case "message_delta":
		h.count(usage)
		to.emit(Event{Kind: Used, Usage: h.usage})
		if reason := delta.Get("stop_reason"); reason.Type == gjson.String {
			to.emit(Event{Kind: Ended, Finish: finished(messagesFinish, reason.Str), Stop: quoted(delta.Get("stop_sequence"))})
		}
	case "message_stop":
		to.emit(Event{Kind: Over})
	case "error":
		to.emit(Event{Kind: Failed, Failure: failureOf(v)})
		to.emit(Event{Kind: Over})
	}
}

func (h *messagesHearing) document(v gjson.Result, to heard) {
	if v.Get("type").Str == "error" {
		to.emit(Event{Kind: Failed, Failure: failureOf(v)})
		return
	}
	if !v.Get("content").IsArray() {
		to.bad()
		return
	}
	to.emit(Event{Kind: Begin, ID: quoted(v.Get("id")), Name: quoted(v.Get("model"))})
	v.Get("content").ForEach(func(_, b gjson.Result) bool {
		h.start(b, to)
		h.close(to)
		return true
	})
	h.count(v.Get("usage"))
	to.emit(Event{Kind: Ended, Finish: finished(messagesFinish, v.Get("stop_reason").Str), Stop: quoted(v.Get("stop_sequence"))})
	to.emit(Event{Kind: Used, Usage: h.usage})
	to.emit(Event{Kind: Over})
}

// start begins a block, with what it has already: all, in a document.
func (h *messagesHearing) start(v gjson.Result, to heard) {
	switch v.Get("type").Str {
	case "text":
		h.begin(Text, nil, nil, to)
		h.piece(Text, v.Get("text"), to)
	case "thinking":
		h.begin(Thinking, nil, nil, to)
		h.piece(Thinking, v.Get("thinking"), to)
		if s := v.Get("signature"); s.Str != "" {
			to.emit(Event{Kind: BlockSigned, Block: Thinking, Text: raw(s)})
		}
	case "redacted_thinking":
		h.close(to)
		h.open, h.kind = true, Redacted
		data := quoted(v.Get("data"))
		to.emit(Event{Kind: BlockBegin, Block: Redacted, Text: data})
		to.emit(Event{Kind: BlockDelta, Block: Redacted, Text: data})
	case "tool_use":
		h.begin(ToolCall, quoted(v.Get("id")), quoted(v.Get("name")), to)
		if in := v.Get("input"); in.IsObject() && hasMembers(in) {
			to.emit(Event{Kind: BlockDelta, Block: ToolCall, Text: quote(in.Raw)})
		}
	default:
		h.close(to)
		h.skips = true // of a tool that only Anthropic runs
	}
}

func (h *messagesHearing) delta(v gjson.Result, to heard) {
	if !h.open && !h.skips { // some servers announce no text
		h.begin(Text, nil, nil, to)
	}
	if !h.open {
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "text", "thinking", "partial_json":
			h.piece(h.kind, v, to)
		case "signature":
			if v.Str != "" {
				to.emit(Event{Kind: BlockSigned, Block: h.kind, Text: raw(v)})
			}
		}
		return true
	})
}

// count takes over what is counted; what is not said stays.
func (h *messagesHearing) count(v gjson.Result) {
	u := &h.usage
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case v.Type == gjson.Null:
		case key.Str == "input_tokens":
			h.fresh = count(v)
		case key.Str == "cache_read_input_tokens":
			u.Cached = count(v)
		case key.Str == "cache_creation_input_tokens":
			u.Written = count(v)
		case key.Str == "output_tokens":
			u.Completion = count(v)
		case key.Str == "output_tokens_details":
			u.Reasoning = count(v.Get("thinking_tokens"))
		}
		return true
	})
	u.Prompt = min(h.fresh+u.Cached+u.Written, 1<<31-1)
	u.Reasoning = min(u.Reasoning, u.Completion)
}

var messagesFinish = map[string]Finish{
	"max_tokens": FinishLength, "model_context_window_exceeded": FinishLength, "tool_use": FinishTools, "stop_sequence": FinishSequence, "refusal": FinishFilter,
}

// messagesVoice writes the events of Anthropic's messages.
type messagesVoice struct {
	o     Reply
	begun bool
	index int // of the block under way
	open  bool
	calls int
	ended Finish
	stop  []byte
	usage Usage
}

func messagesStream(o Reply) voice { return &messagesVoice{o: o, index: -1} }

func (m *messagesVoice) say(b []byte, e *Event) []byte {
	switch e.Kind {
	case Begin:
		return m.begin(b, e.ID)
	case BlockBegin:
		return m.blockBegin(b, e)
	case BlockDelta:
		return m.delta(b, e)
	case BlockSigned:
		if e.Block == Thinking {
			return m.piece(b, `{"type":"signature_delta","signature":`, e.Text)
		}
	case BlockEnd:
		return m.blockEnd(b)
	case Ended:
		m.ended, m.stop = e.Finish, append(m.stop[:0], e.Stop...)
	case Used:
		m.usage = e.Usage
	case Failed:
		b = append(b, "event: error\ndata: "...)
		return append(append(b, e.Failure.messages()...), "\n\n"...)
	case Over:
		return m.over(b)
	}
	return b
}

func (m *messagesVoice) begin(b []byte, id []byte) []byte {
	m.begun = true
	w := writer{append(b, "event: message_start\ndata: "...)}
	w.object(func() {
		w.field("type", "message_start")
		w.within("message", '{', '}', func() {
			w.messageHead(m.o, id)
			w.rawField("content", "[]")
			w.rawField("stop_reason", "null")
			w.rawField("stop_sequence", "null")
			w.messagesUsage(Usage{Prompt: m.o.Prompt}) // the target counts at the end
		})
	})
	return append(w.b, "\n\n"...)
}

// messageHead writes the fields that a message begins with.
func (w *writer) messageHead(o Reply, id []byte) {
	w.bytesField("id", o.id(id, "msg_", ""))
	w.field("type", "message")
	w.field("role", "assistant")
	w.field("model", o.Model)
}

func (m *messagesVoice) blockBegin(b []byte, e *Event) []byte {
	if !m.begun {
		b = m.begin(b, nil)
	}
	if e.Raw != nil { // a thought of Gemini's, which is nothing but its signature
		b = m.blockBegin(b, &Event{Block: Thinking})
		b = m.piece(b, `{"type":"signature_delta","signature":`, marked(e.Raw))
		b = m.blockEnd(b)
	}
	m.index++
	m.open = true
	b = append(m.event(b, "start"), `,"content_block":`...)
	switch e.Block {
	case Thinking:
		b = append(b, `{"type":"thinking","thinking":"","signature":""}`...)
	case Redacted:
		b = append(append(append(b, `{"type":"redacted_thinking","data":`...), e.Text...), '}')
	case ToolCall:
		b = append(append(b, `{"type":"tool_use","id":`...), m.o.id(e.ID, "toolu_", strconv.Itoa(m.calls))...)
		m.calls++
		b = append(append(append(b, `,"name":`...), e.Name...), `,"input":{}}`...)
	default:
		b = append(b, `{"type":"text","text":""}`...)
	}
	return append(b, "}\n\n"...)
}

// event begins an event of the block under way: its start, its stop or a delta of it.
func (m *messagesVoice) event(b []byte, what string) []byte {
	b = append(append(b, "event: content_block_"...), what...)
	b = append(append(append(b, "\ndata: {\"type\":\"content_block_"...), what...), `","index":`...)
	return strconv.AppendInt(b, int64(m.index), 10)
}

// marked is a quoted signature of Gemini's as it stands in place of Anthropic's.
func marked(signature []byte) []byte {
	return append(append([]byte(`"`+geminiMark), inner(signature)...), '"')
}

func (m *messagesVoice) delta(b []byte, e *Event) []byte {
	switch e.Block {
	case Thinking:
		return m.piece(b, `{"type":"thinking_delta","thinking":`, e.Text)
	case ToolCall:
		return m.piece(b, `{"type":"input_json_delta","partial_json":`, e.Text)
	case Redacted:
		return b // its beginning has all
	}
	return m.piece(b, `{"type":"text_delta","text":`, e.Text)
}

func (m *messagesVoice) piece(b []byte, head string, text []byte) []byte {
	b = append(append(append(m.event(b, "delta"), `,"delta":`...), head...), text...)
	return append(b, "}}\n\n"...)
}

func (m *messagesVoice) blockEnd(b []byte) []byte {
	if !m.open {
		return b
	}
	m.open = false
	return append(m.event(b, "stop"), "}\n\n"...)
}

func (m *messagesVoice) over(b []byte) []byte {
	if !m.begun {
		b = m.begin(b, nil)
	}
	w := writer{append(m.blockEnd(b), "event: message_delta\ndata: "...)}
	w.object(func() {
		w.field("type", "message_delta")
		w.within("delta", '{', '}', func() {
			w.field("stop_reason", messagesReason.of(m.ended))
			w.stopSequence(m.ended, m.stop)
		})
		w.messagesUsage(m.usage)
	})
	return append(w.b, "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

func (w *writer) stopSequence(f Finish, stop []byte) {
	if f != FinishSequence || len(stop) == 0 {
		stop = []byte("null")
	}
	w.bytesField("stop_sequence", stop)
}

var messagesReason = reasons{
	FinishStop: "end_turn", FinishLength: "max_tokens", FinishTools: "tool_use", FinishSequence: "stop_sequence", FinishFilter: "refusal",
}

// messagesUsage writes u as Anthropic counts: what came from a cache, or
// went to it, stands beside the rest of the prompt.
func (w *writer) messagesUsage(u Usage) {
	w.within("usage", '{', '}', func() {
		w.intField("input_tokens", max(0, u.Prompt-u.Cached-u.Written))
		w.intField("cache_creation_input_tokens", u.Written)
		w.intField("cache_read_input_tokens", u.Cached)
		w.intField("output_tokens", u.Completion)
	})
}

// messages is the error as Anthropic's clients read it.
func (f *Failure) messages() []byte {
	w := writer{}
	w.object(func() {
		w.field("type", "error")
		w.within("error", '{', '}', func() {
			w.field("type", messagesErrorType(f.Status))
			w.field("message", f.Message)
		})
	})
	return w.b
}

func messagesErrorType(status int) string {
	switch status {
	case 400, 422:
		return "invalid_request_error"
	case 429:
		return "rate_limit_error"
	case 503, 529:
		return "overloaded_error"
	}
	return "api_error"
}

// messagesWhole writes a whole message.
func messagesWhole(o Reply, a *answer) []byte {
	if a.failure != nil {
		return a.failure.messages()
	}
	w := writer{}
	w.object(func() {
		w.messageHead(o, a.id)
		w.within("content", '[', ']', func() {
			n := 0
			for i := range a.blocks {
				w.messageBlock(o, &a.blocks[i], &n)
			}
		})
		w.field("stop_reason", messagesReason.of(a.finish))
		w.stopSequence(a.finish, a.stop)
		w.messagesUsage(a.usage)
	})
	return w.b
}

func (w *writer) messageBlock(o Reply, b *block, calls *int) {
	if b.kind == ToolCall && b.signature != nil {
		w.messageBlock(o, &block{kind: Thinking, text: []byte(`""`), signature: marked(b.signature)}, calls)
	}
	w.object(func() {
		switch b.kind {
		case Thinking:
			w.field("type", "thinking")
			w.bytesField("thinking", b.text)
			if b.signature != nil {
				w.bytesField("signature", b.signature)
			} else {
				w.field("signature", "")
			}
		case Redacted:
			w.field("type", "redacted_thinking")
			w.bytesField("data", b.text)
		case ToolCall:
			w.field("type", "tool_use")
			w.bytesField("id", o.id(b.id, "toolu_", strconv.Itoa(*calls)))
			*calls++
			w.bytesField("name", b.name)
			w.rawField("input", b.input())
		default:
			w.field("type", "text")
			w.bytesField("text", b.text)
		}
	})
}
