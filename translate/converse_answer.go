package translate

import (
	"strings"

	"github.com/tidwall/gjson"
)

// converseHearing reads answers of Bedrock's converse.
type converseHearing struct {
	begun, open bool
	kind        PartKind
}

func hearConverse() hearing { return &converseHearing{} }

func (h *converseHearing) payload(f frame, to heard) {
	v, ok := parse(f.data)
	if !ok {
		to.bad()
		return
	}
	switch string(f.name) {
	case "messageStart":
		h.begin(to)
	case "contentBlockStart":
		h.begin(to)
		if call := v.Get("start.toolUse"); call.IsObject() {
			h.start(ToolCall, quoted(call.Get("toolUseId")), quoted(call.Get("name")), to)
		}
	case "contentBlockDelta":
		h.begin(to)
		h.delta(v.Get("delta"), to)
	case "contentBlockStop":
		h.close(to)
	case "messageStop":
		h.close(to)
		to.emit(Event{Kind: Ended, Finish: converseFinish(v.Get("stopReason").Str)})
	case "metadata":
		to.emit(Event{Kind: Used, Usage: converseUsage(v.Get("usage"))})
		to.emit(Event{Kind: Over})
	default:
		if name := string(f.name); strings.HasSuffix(name, "Exception") {
			failure := failureOf(v)
			failure.Type, failure.Status = name, converseStatus[name]
			to.emit(Event{Kind: Failed, Failure: failure})
			to.emit(Event{Kind: Over})
		}
	}
}

// converseStatus is the status of an exception within a stream.
var converseStatus = map[string]int{
	"throttlingException": 429, "validationException": 400, "serviceUnavailableException": 503, "modelStreamErrorException": 502, "internalServerException": 500,
}

// used is never called: what is counted comes alone.
func (h *converseHearing) used(gjson.Result, heard) {}

func (h *converseHearing) begin(to heard) {
	if !h.begun {
		h.begun = true
		to.emit(Event{Kind: Begin})
	}
}

func (h *converseHearing) start(kind PartKind, id, name []byte, to heard) {
	h.close(to)
	h.open, h.kind = true, kind
	to.emit(Event{Kind: BlockBegin, Block: kind, ID: id, Name: name})
}

func (h *converseHearing) close(to heard) {
	if h.open {
		h.open = false
		to.emit(Event{Kind: BlockEnd, Block: h.kind})
	}
}

// piece adds text to the block of a kind, which needs no announcement.
func (h *converseHearing) piece(kind PartKind, v gjson.Result, to heard) {
	if v.Type != gjson.String || len(v.Raw) <= 2 {
		return
	}
	if !h.open || h.kind != kind {
		h.start(kind, nil, nil, to)
	}
	to.emit(Event{Kind: BlockDelta, Block: kind, Text: raw(v)})
}

func (h *converseHearing) delta(v gjson.Result, to heard) {
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "text":
			h.piece(Text, v, to)
		case "toolUse":
			if h.open && h.kind == ToolCall {
				h.piece(ToolCall, v.Get("input"), to)
			}
		case "reasoningContent":
			h.reasoning(v, to)
		}
		return true
	})
}

func (h *converseHearing) reasoning(v gjson.Result, to heard) {
	h.piece(Thinking, v.Get("text"), to)
	if s := v.Get("signature"); s.Str != "" {
		if !h.open || h.kind != Thinking {
			h.start(Thinking, nil, nil, to)
		}
		to.emit(Event{Kind: BlockSigned, Block: Thinking, Text: raw(s)})
	}
	if r := v.Get("redactedContent"); r.Str != "" {
		h.close(to)
		to.emit(Event{Kind: BlockBegin, Block: Redacted, Text: raw(r)})
		to.emit(Event{Kind: BlockDelta, Block: Redacted, Text: raw(r)})
		to.emit(Event{Kind: BlockEnd, Block: Redacted})
	}
}

func (h *converseHearing) document(v gjson.Result, to heard) {
	content := v.Get("output.message.content")
	if !content.IsArray() {
		to.bad()
		return
	}
	h.begin(to)
	content.ForEach(func(_, b gjson.Result) bool {
		if call := b.Get("toolUse"); call.IsObject() {
			h.start(ToolCall, quoted(call.Get("toolUseId")), quoted(call.Get("name")), to)
			if in := call.Get("input"); in.IsObject() {
				to.emit(Event{Kind: BlockDelta, Block: ToolCall, Text: quote(in.Raw)})
			}
		} else if r := b.Get("reasoningContent"); r.IsObject() {
			if text := r.Get("reasoningText"); text.IsObject() {
				r = text
			}
			h.reasoning(r, to)
		} else {
			h.piece(Text, b.Get("text"), to)
		}
		h.close(to)
		return true
	})
	to.emit(Event{Kind: Ended, Finish: converseFinish(v.Get("stopReason").Str)})
	to.emit(Event{Kind: Used, Usage: converseUsage(v.Get("usage"))})
	to.emit(Event{Kind: Over})
}

func converseFinish(reason string) Finish {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return FinishLength
	case "tool_use":
		return FinishTools
	case "stop_sequence":
		return FinishSequence
	case "guardrail_intervened", "content_filtered":
		return FinishFilter
	}
	return FinishStop
}

// converseUsage reads what is counted: what came from a cache, or went to it,
// stands beside the rest of the prompt.
func converseUsage(v gjson.Result) (u Usage) {
	u.Cached, u.Written = count(v.Get("cacheReadInputTokens")), count(v.Get("cacheWriteInputTokens"))
	u.Prompt = min(count(v.Get("inputTokens"))+u.Cached+u.Written, 1<<31-1)
	u.Completion = count(v.Get("outputTokens"))
	return u
}
