package translate

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/internal/openai"
)

// responsesVoice writes the events of OpenAI's responses. The last of them repeats
// the whole answer, which is kept for it.
type responsesVoice struct {
	o        Reply
	answer   answer
	sequence int
	begun    bool
	open     bool
	items    int // that have begun
	kept     int // bytes of all blocks, but for the text of the last one

	// What stands around the number and the text of each piece of the block.
	head, where []byte
	tail        string
}

func responsesStream(o Reply) voice { return &responsesVoice{o: o} }

// perBlock is what a block takes beside its strings, in bytes.
const perBlock = 256

// held is how many bytes are kept of the answer.
func (r *responsesVoice) held() int {
	if len(r.answer.blocks) == 0 {
		return 0
	}
	return r.kept + cap(r.last().text)
}

// ends implements keeper: the block under way is written in three events, and all blocks
// in the last one.
func (r *responsesVoice) ends() int {
	if len(r.answer.blocks) == 0 {
		return 0
	}
	return 3*len(r.last().text) + r.held() + fewBytes/4
}

// letGo implements keeper.
func (r *responsesVoice) letGo() (lost bool) {
	r.answer.blocks, r.open, r.kept = nil, false, 0
	return true
}

// event writes one event; fill writes its fields but for type and number.
func (r *responsesVoice) event(b []byte, typ string, fill func(w *writer)) []byte {
	b = append(append(append(b, "event: "...), typ...), "\ndata: "...)
	w := writer{b}
	w.object(func() {
		w.field("type", typ)
		w.intField("sequence_number", r.sequence)
		fill(&w)
	})
	r.sequence++
	return append(w.b, "\n\n"...)
}

func (r *responsesVoice) say(b []byte, e *Event) []byte {
	switch e.Kind {
	case Begin:
		r.answer.begun = true
		return r.begin(b)
	case BlockBegin:
		return r.blockBegin(b, e)
	case BlockDelta:
		r.answer.emit(*e)
		return r.delta(b, e)
	case BlockSigned:
		k := r.last()
		r.kept += len(e.Text) - len(k.signature)
		k.signature = bytes.Clone(e.Text)
	case BlockEnd:
		return r.blockEnd(b)
	case Ended:
		r.answer.finish = e.Finish
	case Used:
		r.answer.usage = e.Usage
	case Failed:
		return r.failed(b, e.Failure)
	case Over:
		return r.over(b)
	}
	return b
}

func (r *responsesVoice) last() *block { return &r.answer.blocks[len(r.answer.blocks)-1] }

func (r *responsesVoice) begin(b []byte) []byte {
	r.begun = true
	for _, typ := range []string{"response.created", "response.in_progress"} {
		b = r.event(b, typ, func(w *writer) { w.response(r.o, &r.answer, "in_progress", true) })
	}
	return b
}

func (r *responsesVoice) blockBegin(b []byte, e *Event) []byte {
	if !r.begun {
		b = r.begin(b)
	}
	if len(r.answer.blocks) > 0 {
		r.kept += cap(r.last().text)
	}
	r.kept += perBlock + len(e.ID) + len(e.Name)
	own := *e
	own.ID, own.Name, own.Raw = bytes.Clone(e.ID), bytes.Clone(e.Name), nil
	r.answer.emit(own)
	r.open = true
	r.items++
	k := r.last()
	r.deltas(k)
	b = r.event(b, "response.output_item.added", func(w *writer) {
		w.intField("output_index", r.items-1)
		w.within("item", '{', '}', func() { w.item(r.o, k, r.items-1, "in_progress") })
	})
	switch k.kind {
	case Text:
		b = r.event(b, "response.content_part.added", func(w *writer) {
			r.place(w, "content_index")
			w.within("part", '{', '}', func() { w.part(k, []byte(`""`)) })
		})
	case Thinking:
		b = r.event(b, "response.reasoning_summary_part.added", func(w *writer) {
			r.place(w, "summary_index")
			w.rawField("part", `{"type":"summary_text","text":""}`)
		})
	}
	return b
}

// place writes where in the answer a piece stands.
func (r *responsesVoice) place(w *writer, index string) {
	w.field("item_id", r.itemID())
	w.intField("output_index", r.items-1)
	if index != "" {
		w.intField(index, 0)
	}
}

func (r *responsesVoice) itemID() string { return itemID(r.o, r.last(), r.items-1) }

// itemID is the id of the n-th item of an answer.
func itemID(o Reply, k *block, n int) string {
	prefix := "msg_"
	switch k.kind {
	case Thinking, Redacted:
		prefix = "rs_"
	case ToolCall:
		prefix = "fc_"
	}
	return prefix + o.ID + "_" + strconv.Itoa(n)
}

// deltaForms are what stands around a piece of text, by the kind of its block.
var deltaForms = map[PartKind]struct{ typ, index, end string }{
	Text:     {"response.output_text.delta", "content_index", `,"logprobs":[]}` + "\n\n"},
	Thinking: {"response.reasoning_summary_text.delta", "summary_index", "}\n\n"},
	ToolCall: {"response.function_call_arguments.delta", "", "}\n\n"},
}

// delta writes a piece of the block under way: what is the same for all of them was
// written when it began.
func (r *responsesVoice) delta(b []byte, e *Event) []byte {
	if r.last().kind == Redacted {
		return b
	}
	b = append(b, r.head...)
	b = strconv.AppendInt(b, int64(r.sequence), 10)
	r.sequence++
	b = append(append(b, r.where...), e.Text...)
	return append(b, r.tail...)
}

// deltas prepares the pieces of the block k, which begins.
func (r *responsesVoice) deltas(k *block) {
	f := deltaForms[k.kind]
	if k.refusal {
		f.typ, f.end = "response.refusal.delta", "}\n\n"
	}
	w := writer{append(append(append(r.head[:0], "event: "...), f.typ...), "\ndata: {"...)}
	w.field("type", f.typ)
	w.key("sequence_number")
	r.head = w.b
	w.b = append(r.where[:0], ' ') // so that no comma is left out
	r.place(&w, f.index)
	w.key("delta")
	w.b[0] = ','
	r.where, r.tail = w.b, f.end
}

func (r *responsesVoice) blockEnd(b []byte) []byte {
	if !r.open {
		return b
	}
	r.open = false
	k := r.last()
	if r.ends() > fewBytes { // or it is copied as it grows
		b = slices.Grow(b, r.ends())
	}
	switch {
	case k.kind == ToolCall:
		b = r.event(b, "response.function_call_arguments.done", func(w *writer) {
			r.place(w, "")
			w.toolName(r.o, k.name)
			w.field("arguments", k.input())
		})
	case k.kind == Thinking:
		b = r.event(b, "response.reasoning_summary_text.done", func(w *writer) {
			r.place(w, "summary_index")
			w.bytesField("text", k.text)
		})
		b = r.event(b, "response.reasoning_summary_part.done", func(w *writer) {
			r.place(w, "summary_index")
			w.within("part", '{', '}', func() {
				w.field("type", "summary_text")
				w.bytesField("text", k.text)
			})
		})
	case k.kind == Text:
		typ, name := "response.output_text.done", "text"
		if k.refusal {
			typ, name = "response.refusal.done", "refusal"
		}
		b = r.event(b, typ, func(w *writer) {
			r.place(w, "content_index")
			w.bytesField(name, k.text)
			if !k.refusal {
				w.rawField("logprobs", "[]")
			}
		})
		b = r.event(b, "response.content_part.done", func(w *writer) {
			r.place(w, "content_index")
			w.within("part", '{', '}', func() { w.part(k, k.text) })
		})
	}
	return r.event(b, "response.output_item.done", func(w *writer) {
		w.intField("output_index", r.items-1)
		w.within("item", '{', '}', func() { w.item(r.o, k, r.items-1, "completed") })
	})
}

func (r *responsesVoice) failed(b []byte, f *Failure) []byte {
	return r.event(b, "error", func(w *writer) {
		w.field("code", "upstream_disconnected")
		w.field("message", f.Message)
		w.rawField("param", "null")
		w.within("error", '{', '}', func() {
			w.field("message", f.Message)
			w.field("type", "upstream_error")
			w.field("code", "upstream_disconnected")
		})
	})
}

func (r *responsesVoice) over(b []byte) []byte {
	if !r.begun {
		b = r.begin(b)
	}
	b = r.blockEnd(b)
	status := responseStatus(&r.answer)
	return r.event(b, "response."+status, func(w *writer) { w.response(r.o, &r.answer, status, false) })
}

func responseStatus(a *answer) string {
	if a.finish == FinishLength || a.finish == FinishFilter {
		return "incomplete"
	}
	return "completed"
}

// response writes the field that holds the whole answer, or, as it begins, none of
// it.
func (w *writer) response(o Reply, a *answer, status string, begins bool) {
	w.within("response", '{', '}', func() { w.responseFields(o, a, status, begins) })
}

func (w *writer) responseFields(o Reply, a *answer, status string, begins bool) {
	w.field("id", "resp_"+o.ID)
	w.field("object", "response")
	w.intField("created_at", int(o.Created))
	w.field("status", status)
	w.rawField("error", "null")
	reason := map[Finish]string{FinishLength: "max_output_tokens", FinishFilter: "content_filter"}[a.finish]
	if reason != "" {
		w.within("incomplete_details", '{', '}', func() { w.field("reason", reason) })
	} else {
		w.rawField("incomplete_details", "null")
	}
	w.field("model", o.Model)
	w.within("output", '[', ']', func() {
		if begins {
			return
		}
		for i := range a.blocks {
			each := "completed"
			if i == len(a.blocks)-1 {
				each = status // of an answer that was cut, the last item is
			}
			w.object(func() { w.item(o, &a.blocks[i], i, each) })
		}
	})
	w.asked(o)
	w.rawField("previous_response_id", "null")
	w.rawField("store", "false")
	if begins {
		w.rawField("usage", "null")
		return
	}
	u := a.usage
	w.within("usage", '{', '}', func() {
		w.intField("input_tokens", u.Prompt)
		w.within("input_tokens_details", '{', '}', func() { w.intField("cached_tokens", u.Cached) })
		w.intField("output_tokens", u.Completion)
		w.within("output_tokens_details", '{', '}', func() { w.intField("reasoning_tokens", u.Reasoning) })
		w.intField("total_tokens", u.Prompt+u.Completion)
	})
}

// responseAgain is what OpenAI's responses say again of their request, with what they
// say where it has none; "" = nothing.
var responseAgain = []Param{
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"metadata", "{}"},
	{"parallel_tool_calls", "true"},
	{"prompt_cache_key", ""},
	{"reasoning", ""},
	{"safety_identifier", ""},
	{"temperature", "null"},
	{"text", ""},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_logprobs", ""},
	{"top_p", "null"},
	{"truncation", ""},
	{"user", ""},
}

// asked writes what an answer says again of its request.
func (w *writer) asked(o Reply) {
	for _, p := range responseAgain {
		for _, said := range o.Asked {
			if said.Name == p.Name {
				p = said
			}
		}
		if p.Value != "" {
			w.rawField(p.Name, p.Value)
		}
	}
}

// toolName writes the name of a tool, and its namespace if it has one.
func (w *writer) toolName(o Reply, name []byte) {
	if len(o.Spaces) > 0 {
		whole := openai.Unquote(name)
		for _, space := range o.Spaces {
			if rest, ok := strings.CutPrefix(whole, space); ok && strings.HasPrefix(rest, spaceMark) {
				w.field("namespace", space)
				w.field("name", rest[len(spaceMark):])
				return
			}
		}
	}
	w.bytesField("name", name)
}

// item writes the fields of the n-th item of the answer.
func (w *writer) item(o Reply, k *block, n int, status string) {
	w.field("id", itemID(o, k, n))
	switch k.kind {
	case ToolCall:
		w.field("type", "function_call")
		w.field("status", status)
		w.bytesField("call_id", o.id(k.id, "call_", strconv.Itoa(n)))
		w.toolName(o, k.name)
		if status == "in_progress" {
			w.field("arguments", "")
		} else {
			w.field("arguments", k.input())
		}
	case Thinking, Redacted:
		w.field("type", "reasoning")
		w.within("summary", '[', ']', func() {
			if k.kind == Thinking && !isEmpty(k.text) {
				w.object(func() {
					w.field("type", "summary_text")
					w.bytesField("text", k.text)
				})
			}
		})
		if k.signature != nil {
			w.field("encrypted_content", claudeMark+openai.Unquote(k.signature))
		}
	default:
		w.field("type", "message")
		w.field("status", status)
		w.field("role", "assistant")
		w.within("content", '[', ']', func() {
			if status != "in_progress" {
				w.object(func() { w.part(k, k.text) })
			}
		})
	}
}

// part writes the fields of a part of a message.
func (w *writer) part(k *block, text []byte) {
	if k.refusal {
		w.field("type", "refusal")
		w.bytesField("refusal", text)
		return
	}
	w.field("type", "output_text")
	w.bytesField("text", text)
	w.rawField("annotations", "[]")
	w.rawField("logprobs", "[]")
}

// responsesWhole writes a whole response.
func responsesWhole(o Reply, a *answer) []byte {
	if a.failure != nil {
		return a.failure.chat()
	}
	w := writer{}
	w.object(func() { w.responseFields(o, a, responseStatus(a), false) })
	return w.b
}
