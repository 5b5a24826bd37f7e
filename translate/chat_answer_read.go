package translate

import (
	"bytes"
	"cmp"

	"github.com/tidwall/gjson"
)

// chatHearing reads chat completions.
type chatHearing struct {
	passage
	begun   bool
	refusal bool
	call    int    // the index of the tool call that is open
	callID  []byte // and its id, quoted
	called  int    // how many there were
	usage   Usage
}

func hearChat() hearing { return &chatHearing{call: -1} }

func (h *chatHearing) payload(f frame, to heard) {
	switch {
	case len(f.data) == 0:
		return
	case string(f.data) == "[DONE]":
		h.close(to)
		to.emit(Event{Kind: Over})
		return
	}
	v, ok := parse(f.data)
	if !ok {
		to.bad()
		return
	}
	h.read(v, "delta", to, string(f.name) == "error")
}

func (h *chatHearing) document(v gjson.Result, to heard) {
	h.read(v, "message", to, false)
	h.close(to)
	to.emit(Event{Kind: Over})
}

// read reads a chunk, or a whole answer: what they say stands under within.
func (h *chatHearing) read(v gjson.Result, within string, to heard, failed bool) {
	var id, model, choices, choice, usage, failure, object gjson.Result // object: of an error of Mistral's, and of older engines
	pick(v, member{"id", &id}, member{"model", &model}, member{"choices", &choices}, member{"usage", &usage}, member{"error", &failure}, member{"object", &object})
	choices.ForEach(func(_, v gjson.Result) bool {
		choice = v
		return false
	})
	if failure.Exists() && failure.Type != gjson.Null || failed || object.Str == "error" {
		to.emit(Event{Kind: Failed, Failure: failureOf(v)})
		return
	}
	if !h.begun && choice.Exists() {
		h.begun = true
		to.emit(Event{Kind: Begin, ID: quoted(id), Name: quoted(model)})
	}
	if usage.IsObject() { // before the content that it counts
		h.used(usage, to)
	}
	if !choice.Exists() {
		return
	}
	var said, chances, finish, stop gjson.Result // stop: vLLM says which of the stop sequences it was
	pick(choice, member{within, &said}, member{"logprobs", &chances}, member{"finish_reason", &finish}, member{"stop_reason", &stop})
	h.said(said, to)
	if list := chances.Get("content"); list.IsArray() && len(list.Raw) > 2 {
		to.emit(Event{Kind: Chances, Raw: bytes.TrimSpace(inner(raw(list)))})
	}
	if finish.Type == gjson.String {
		h.close(to)
		if finish.Str == "error" { // Mistral's
			to.emit(Event{Kind: Failed, Failure: &Failure{Message: "The backend ended its answer with an error."}})
			return
		}
		ended := Event{Kind: Ended, Finish: h.finish(finish.Str)}
		if ended.Finish == FinishStop && stop.Type == gjson.String {
			ended.Finish, ended.Stop = FinishSequence, raw(stop)
		}
		to.emit(ended)
	}
}

func (h *chatHearing) used(v gjson.Result, to heard) {
	h.usage = chatUsage(v)
	to.emit(Event{Kind: Used, Usage: h.usage, Raw: raw(v)})
}

// said reads a delta, or a whole message: in the order in which it was thought,
// whatever that of the fields.
func (h *chatHearing) said(v gjson.Result, to heard) {
	var thought, text, refusal, calls gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "reasoning_content", "reasoning": // some servers write both
			if v.Type == gjson.String {
				thought = v
			}
		case "content":
			text = v
		case "refusal":
			refusal = v
		case "tool_calls":
			calls = v
		}
		return true
	})
	if thought.Type == gjson.String && len(thought.Raw) > 2 {
		h.text(Thinking, false, raw(thought), to)
	}
	if text.IsArray() { // Mistral's, of a model that thinks
		h.parts(text, false, to)
	} else if text.Type == gjson.String && len(text.Raw) > 2 {
		h.text(Text, false, raw(text), to)
	}
	if refusal.Type == gjson.String && len(refusal.Raw) > 2 {
		h.text(Text, true, raw(refusal), to)
	}
	i := 0
	if !calls.Exists() {
		return
	}
	calls.ForEach(func(_, v gjson.Result) bool {
		if v.IsObject() {
			h.toolCall(i, v, to)
			i++
		}
		return true
	})
}

// parts reads what is said in parts: texts, and thoughts that are made of texts.
func (h *chatHearing) parts(v gjson.Result, thought bool, to heard) {
	v.ForEach(func(_, p gjson.Result) bool {
		switch text := p.Get("text"); p.Get("type").Str {
		case "text":
			if text.Type != gjson.String || len(text.Raw) <= 2 {
				break
			}
			kind := Text
			if thought {
				kind = Thinking
			}
			h.text(kind, false, raw(text), to)
		case "thinking":
			if !thought {
				h.parts(p.Get("thinking"), true, to)
				h.signed(p.Get("signature"), to)
			}
		}
		return true
	})
}

// signed reads the signature of a thought of Mistral's.
func (h *chatHearing) signed(v gjson.Result, to heard) {
	if v.Type == gjson.String && v.Str != "" {
		h.begin(Thinking, false, to)
		to.emit(Event{Kind: BlockSigned, Block: Thinking, Text: quote(mistralMark + v.Str)})
	}
}

// begin begins a block, if it is another than that which is open.
func (h *chatHearing) begin(kind PartKind, refusal bool, to heard) {
	if !h.open || h.kind != kind || h.refusal != refusal {
		h.close(to)
		h.open, h.kind, h.refusal = true, kind, refusal
		to.emit(Event{Kind: BlockBegin, Block: kind, Refusal: refusal})
	}
}

func (h *chatHearing) text(kind PartKind, refusal bool, text []byte, to heard) {
	h.begin(kind, refusal, to)
	to.emit(Event{Kind: BlockDelta, Block: kind, Text: text, Refusal: refusal})
}

// toolCall reads a call, or a piece of one: the i-th of its chunk.
func (h *chatHearing) toolCall(i int, v gjson.Result, to heard) {
	var index, id, f gjson.Result
	pick(v, member{"index", &index}, member{"id", &id}, member{"function", &f})
	if index.Type == gjson.Number {
		i = int(index.Num)
	} else if h.open && h.kind == ToolCall && id.Str == "" {
		i = h.call
	}
	var name, args gjson.Result
	pick(f, member{"name", &name}, member{"arguments", &args})
	// Some servers number all calls of an answer 0: another id and a name are another
	// call.
	another := name.Str != "" && id.Str != "" && id.Raw != string(h.callID)
	if !h.open || h.kind != ToolCall || h.call != i || another {
		if name.Str == "" {
			to.emit(Event{Kind: Failed, Failure: &Failure{Message: "The backend went back to a call of a tool that it had ended."}})
			return
		}
		h.close(to)
		h.open, h.kind, h.call, h.refusal = true, ToolCall, i, false
		h.callID = append(h.callID[:0], id.Raw...)
		h.called++
		signature := quoted(v.Get("extra_content.google.thought_signature"))
		to.emit(Event{Kind: BlockBegin, Block: ToolCall, ID: quoted(id), Name: quoted(name), Raw: signature})
	}
	switch {
	case args.Type == gjson.String && len(args.Raw) > 2:
		to.emit(Event{Kind: BlockDelta, Block: ToolCall, Text: raw(args)})
	case args.IsObject(): // as some engines write it
		to.emit(Event{Kind: BlockDelta, Block: ToolCall, Text: quote(args.Raw)})
	}
}

var chatFinish = map[string]Finish{
	"length": FinishLength, "model_length": FinishLength, // Mistral's is that of what the model holds
	"tool_calls": FinishTools, "function_call": FinishTools, "content_filter": FinishFilter,
}

func (h *chatHearing) finish(reason string) Finish {
	if f := finished(chatFinish, reason); f != FinishStop || h.called == 0 {
		return f
	}
	return FinishTools // of a tool that had to be called, OpenAI says stop
}

func chatUsage(v gjson.Result) (u Usage) {
	eachCount(raw(v), func(parent, name []byte, n int) {
		switch string(parent) {
		case "":
			switch string(name) {
			case "prompt_tokens":
				u.Prompt = n
			case "completion_tokens":
				u.Completion = n
			case "prompt_cache_hit_tokens": // DeepSeek
				u.Cached = max(u.Cached, n)
			}
		case "prompt_tokens_details":
			if string(name) == "cached_tokens" {
				u.Cached = max(u.Cached, n)
			}
		case "completion_tokens_details":
			if string(name) == "reasoning_tokens" {
				u.Reasoning = n
			}
		}
	})
	u.Cached, u.Reasoning = min(u.Cached, u.Prompt), min(u.Reasoning, u.Completion)
	return u
}

// failureOf reads what an object says of an error, of whatever dialect.
func failureOf(v gjson.Result) *Failure {
	e := v.Get("error")
	if e.Type == gjson.String {
		return &Failure{Message: e.Str}
	}
	if !e.IsObject() {
		e = v
	}
	f := &Failure{Type: cmp.Or(e.Get("type").Str, e.Get("status").Str), Message: cmp.Or(e.Get("message").Str, "The backend reported an error.")}
	if code := e.Get("code"); code.Type == gjson.Number && code.Num >= 400 && code.Num < 600 {
		f.Status = int(code.Num)
	}
	return f
}
