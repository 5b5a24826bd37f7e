package translate

import (
	"strings"

	"github.com/tidwall/gjson"
)

// converseHearing reads answers of Bedrock's converse.
type converseHearing struct {
	passage
	begun bool
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
		h.announce(to)
	case "contentBlockStart":
		h.announce(to)
		if call := v.Get("start.toolUse"); call.IsObject() {
			h.begin(ToolCall, quoted(call.Get("toolUseId")), quoted(call.Get("name")), to)
		}
	case "contentBlockDelta":
		h.announce(to)
		h.delta(v.Get("delta"), to)
	case "contentBlockStop":
		h.close(to)
	case "messageStop":
		h.close(to)
		to.emit(Event{Kind: Ended, Finish: finished(converseFinish, v.Get("stopReason").Str)})
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

func (h *converseHearing) announce(to heard) {
	if !h.begun {
		h.begun = true
		to.emit(Event{Kind: Begin})
	}
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
			h.begin(Thinking, nil, nil, to)
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
	h.announce(to)
	content.ForEach(func(_, b gjson.Result) bool {
		if call := b.Get("toolUse"); call.IsObject() {
			h.begin(ToolCall, quoted(call.Get("toolUseId")), quoted(call.Get("name")), to)
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
	to.emit(Event{Kind: Ended, Finish: finished(converseFinish, v.Get("stopReason").Str)})
	to.emit(Event{Kind: Used, Usage: converseUsage(v.Get("usage"))})
	to.emit(Event{Kind: Over})
}

var converseFinish = map[string]Finish{
	"max_tokens": FinishLength, "model_context_window_exceeded": FinishLength, "tool_use": FinishTools, "stop_sequence": FinishSequence,
	"guardrail_intervened": FinishFilter, "content_filtered": FinishFilter,
}

// converseUsage reads what is counted: what came from a cache, or went to it,
// stands beside the rest of the prompt.
func converseUsage(v gjson.Result) (u Usage) {
	u.Cached, u.Written = count(v.Get("cacheReadInputTokens")), count(v.Get("cacheWriteInputTokens"))
	u.Prompt = min(count(v.Get("inputTokens"))+u.Cached+u.Written, 1<<31-1)
	u.Completion = count(v.Get("outputTokens"))
	return u
}
