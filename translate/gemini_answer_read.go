package translate

import (
	"github.com/tidwall/gjson"
)

// geminiHearing reads answers of generateContent.
type geminiHearing struct {
	passage
	begun, called bool
	usage         Usage
}

func hearGemini() hearing { return &geminiHearing{} }

func (h *geminiHearing) payload(f frame, to heard) {
	if len(f.data) == 0 {
		return
	}
	v, ok := parse(f.data)
	if !ok {
		to.bad()
		return
	}
	h.read(v, to)
}

func (h *geminiHearing) document(v gjson.Result, to heard) {
	if !v.Get("candidates").IsArray() && !v.Get("promptFeedback").Exists() && !v.Get("error").Exists() {
		to.bad()
		return
	}
	h.read(v, to)
}

// read reads a chunk, which is an answer like a whole one.
func (h *geminiHearing) read(v gjson.Result, to heard) {
	if v.Get("error").Exists() {
		to.emit(Event{Kind: Failed, Failure: failureOf(v)})
		to.emit(Event{Kind: Over})
		return
	}
	var id, model, candidates, usage, feedback gjson.Result
	pick(v, member{"responseId", &id}, member{"modelVersion", &model}, member{"candidates", &candidates}, member{"usageMetadata", &usage}, member{"promptFeedback", &feedback})
	candidate := candidates.Get("0")
	if !h.begun {
		h.begun = true
		to.emit(Event{Kind: Begin, ID: quoted(id), Name: quoted(model)})
	}
	if usage.IsObject() {
		h.used(usage, to)
	}
	candidate.Get("content.parts").ForEach(func(_, p gjson.Result) bool {
		h.part(p, to)
		return true
	})
	if chances := geminiChances(candidate.Get("logprobsResult")); len(chances) > 0 {
		to.emit(Event{Kind: Chances, Raw: chances})
	}
	reason := candidate.Get("finishReason").Str
	if reason == "" && feedback.Get("blockReason").Str != "" {
		reason = "PROHIBITED_CONTENT"
	}
	if reason == "" || reason == "FINISH_REASON_UNSPECIFIED" {
		return
	}
	h.close(to)
	to.emit(Event{Kind: Ended, Finish: h.finish(reason)})
	to.emit(Event{Kind: Over})
}

func (h *geminiHearing) used(v gjson.Result, to heard) {
	h.usage = geminiUsage(v)
	to.emit(Event{Kind: Used, Usage: h.usage, Raw: raw(v)})
}

func (h *geminiHearing) part(v gjson.Result, to heard) {
	var text, thought, call, signature gjson.Result
	pick(v, member{"text", &text}, member{"thought", &thought}, member{"functionCall", &call}, member{"thoughtSignature", &signature})
	switch {
	case call.IsObject():
		h.close(to)
		h.called = true
		to.emit(Event{Kind: BlockBegin, Block: ToolCall, ID: quoted(call.Get("id")), Name: quoted(call.Get("name")), Raw: quoted(signature)})
		if args := call.Get("args"); args.IsObject() {
			to.emit(Event{Kind: BlockDelta, Block: ToolCall, Text: quote(args.Raw)})
		}
		to.emit(Event{Kind: BlockEnd, Block: ToolCall})
	case thought.Bool():
		h.piece(Thinking, text, to)
	default:
		h.piece(Text, text, to)
	}
}

var geminiFinish = map[string]Finish{
	"MAX_TOKENS": FinishLength,
	"SAFETY":     FinishFilter, "RECITATION": FinishFilter, "BLOCKLIST": FinishFilter, "PROHIBITED_CONTENT": FinishFilter, "SPII": FinishFilter,
	"IMAGE_SAFETY": FinishFilter, "IMAGE_PROHIBITED_CONTENT": FinishFilter, "LANGUAGE": FinishFilter,
}

func (h *geminiHearing) finish(reason string) Finish {
	if f := finished(geminiFinish, reason); f != FinishStop || !h.called {
		return f
	}
	return FinishTools
}

// geminiUsage reads what is counted: thoughts stand beside the rest of the answer.
func geminiUsage(v gjson.Result) (u Usage) {
	eachCount(raw(v), func(parent, name []byte, n int) {
		if parent != nil {
			return
		}
		switch string(name) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			u.Prompt += n
		case "cachedContentTokenCount":
			u.Cached = n
		case "candidatesTokenCount":
			u.Completion += n
		case "thoughtsTokenCount":
			u.Reasoning = n
			u.Completion += n
		}
	})
	u.Prompt, u.Completion = min(u.Prompt, 1<<31-1), min(u.Completion, 1<<31-1)
	u.Cached = min(u.Cached, u.Prompt)
	return u
}

// geminiChances are the log probabilities as chat has them.
func geminiChances(v gjson.Result) []byte {
	chosen := v.Get("chosenCandidates")
	if !chosen.IsArray() {
		return nil
	}
	list := chanceList(chosen)
	var top []gjson.Result // no more than there are of those
	v.Get("topCandidates").ForEach(func(_, item gjson.Result) bool {
		top = append(top, item)
		return len(top) < len(list)
	})
	w := writer{}
	for i, c := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, '{')
		w.chance(c)
		w.within("top_logprobs", '[', ']', func() {
			if i >= len(top) {
				return
			}
			for _, t := range chanceList(top[i].Get("candidates")) {
				w.object(func() { w.chance(t) })
			}
		})
		w.close('}')
	}
	return w.b
}

func (w *writer) chance(v gjson.Result) {
	w.field("token", v.Get("token").Str)
	p := v.Get("logProbability")
	if p.Type != gjson.Number {
		p.Raw = "-9999"
	}
	w.rawField("logprob", p.Raw)
	w.rawField("bytes", "null")
}
