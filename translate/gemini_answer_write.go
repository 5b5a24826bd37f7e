package translate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/openai"
)

// geminiVoice writes chunks of generateContent: each is an answer like a whole one.
// A call of a tool goes out when all of it is there, since its arguments are an
// object.
type geminiVoice struct {
	o      Reply
	id     []byte // quoted
	tail   []byte // of every chunk, behind its parts
	begun  bool   // something went out
	closed bool   // the last of it did

	name, callID, signature []byte // of the call under way, quoted
	args                    []byte // and what it is called with, as far as it came: a quoted string without its end
	calls                   int

	ended Finish
	usage Usage
}

func geminiStream(o Reply) voice { return &geminiVoice{o: o} }

// held implements keeper, of a call.
func (g *geminiVoice) held() int {
	return cap(g.args) + cap(g.name) + cap(g.callID) + cap(g.signature)
}

// ends implements keeper.
func (g *geminiVoice) ends() int { return g.held() }

// letGo implements keeper.
func (g *geminiVoice) letGo() (lost bool) {
	g.args, g.name, g.callID, g.signature = nil, nil, nil, nil
	return true
}

// open begins a chunk, and close ends it: as an event, or as an item of an array.
func (g *geminiVoice) open(b []byte) []byte {
	switch {
	case !g.o.Array:
		b = append(b, "data: "...)
	case g.begun:
		b = append(b, ",\r\n"...)
	default:
		b = append(b, '[')
	}
	g.begun = true
	return b
}

func (g *geminiVoice) close(b []byte) []byte {
	if g.o.Array {
		return b
	}
	return append(b, "\r\n\r\n"...)
}

// chunk writes a chunk with one part: prefix, text and suffix.
func (g *geminiVoice) chunk(b []byte, prefix string, text []byte, suffix string) []byte {
	if g.tail == nil {
		g.tail = append([]byte(`],"role":"model"},"index":0}],`), g.named()...)
	}
	b = append(g.open(b), `{"candidates":[{"content":{"parts":[`...)
	b = append(append(append(b, prefix...), text...), suffix...)
	return g.close(append(b, g.tail...))
}

// named is the end of a chunk: who answers, and its id.
func (g *geminiVoice) named() []byte {
	w := writer{}
	w.geminiNamed(g.o, g.id)
	return append(w.b, '}')
}

func (w *writer) geminiNamed(o Reply, id []byte) {
	w.field("modelVersion", o.Model)
	w.bytesField("responseId", o.id(id, "", ""))
}

func (g *geminiVoice) say(b []byte, e *Event) []byte {
	switch e.Kind {
	case Begin:
		g.id = bytes.Clone(e.ID)
	case BlockBegin:
		return g.blockBegin(b, e)
	case BlockDelta:
		switch e.Block {
		case ToolCall:
			g.args = append(g.args, inner(e.Text)...)
			return b
		case Redacted:
			return b // its beginning has all
		case Thinking:
			return g.chunk(b, `{"text":`, e.Text, `,"thought":true}`)
		}
		return g.chunk(b, `{"text":`, e.Text, "}")
	case BlockSigned:
		return g.chunk(b, `{"text":"","thought":true,"thoughtSignature":`, signedAs(claudeMark, e.Text), "}")
	case BlockEnd:
		if e.Block == ToolCall {
			return g.call(b)
		}
	case Chances:
		w := writer{append(g.open(b), `{"candidates":[{"index":0`...)}
		w.geminiChances(e.Raw)
		return g.close(append(append(w.b, "}],"...), g.named()...))
	case Ended:
		g.ended = e.Finish
	case Used:
		g.usage = e.Usage
	case Failed:
		return g.failed(b, e.Failure)
	case Over:
		return g.over(b)
	}
	return b
}

// signedAs is a quoted signature of another maker as it stands where Google has its
// own, which is bytes.
func signedAs(mark string, signature []byte) []byte {
	text := mark + openai.Unquote(signature)
	b := make([]byte, base64.StdEncoding.EncodedLen(len(text))+2)
	b[0], b[len(b)-1] = '"', '"'
	base64.StdEncoding.Encode(b[1:], []byte(text))
	return b
}

func (g *geminiVoice) blockBegin(b []byte, e *Event) []byte {
	switch e.Block {
	case Redacted:
		return g.chunk(b, `{"text":"","thought":true,"thoughtSignature":`, signedAs(redactedMark, e.Text), "}")
	case ToolCall:
		g.name, g.callID, g.signature = append(g.name[:0], e.Name...), append(g.callID[:0], e.ID...), append(g.signature[:0], e.Raw...)
		g.args = append(g.args[:0], '"')
	}
	return b
}

func (g *geminiVoice) call(b []byte) []byte {
	w := writer{}
	k := block{kind: ToolCall, name: g.name, text: append(g.args, '"')}
	if len(g.callID) > 0 {
		k.id = g.callID
	}
	if len(g.signature) > 0 {
		k.signature = g.signature
	}
	w.geminiPart(g.o, &k, &g.calls)
	if cap(g.args) > keptOut {
		g.args = nil
	}
	return g.chunk(b, "", oneLine(w.b), "")
}

// oneLine puts the JSON b on one line, as events need it: models write the arguments
// of their calls as they like.
func oneLine(b []byte) []byte {
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}

func (g *geminiVoice) failed(b []byte, f *Failure) []byte {
	if g.closed {
		return b
	}
	g.closed = true
	b = append(g.open(b), f.gemini()...)
	if g.o.Array {
		return append(b, "\n]"...)
	}
	return g.close(b)
}

func (g *geminiVoice) over(b []byte) []byte {
	if g.closed {
		return b
	}
	g.closed = true
	w := writer{g.open(b)}
	w.object(func() {
		w.within("candidates", '[', ']', func() {
			w.object(func() {
				w.rawField("content", `{"parts":[{"text":""}],"role":"model"}`)
				w.field("finishReason", geminiReason.of(g.ended))
				w.intField("index", 0)
			})
		})
		w.geminiCounted(g.usage)
		w.geminiNamed(g.o, g.id)
	})
	if g.o.Array {
		return append(w.b, "\n]"...)
	}
	return g.close(w.b)
}

var geminiReason = reasons{FinishStop: "STOP", FinishLength: "MAX_TOKENS", FinishFilter: "SAFETY"}

// geminiCounted writes what is counted: thoughts stand beside the rest of the answer.
func (w *writer) geminiCounted(u Usage) {
	w.within("usageMetadata", '{', '}', func() {
		w.intField("promptTokenCount", u.Prompt)
		w.intField("candidatesTokenCount", u.Completion-u.Reasoning)
		w.intField("totalTokenCount", u.Prompt+u.Completion)
		if u.Reasoning > 0 {
			w.intField("thoughtsTokenCount", u.Reasoning)
		}
		if u.Cached > 0 {
			w.intField("cachedContentTokenCount", u.Cached)
		}
	})
}

// geminiPart writes a block as one part, or as a thought and its signature.
func (w *writer) geminiPart(o Reply, b *block, calls *int) {
	w.object(func() {
		switch b.kind {
		case ToolCall:
			w.within("functionCall", '{', '}', func() {
				w.bytesField("id", o.id(b.id, "call_", strconv.Itoa(*calls)))
				*calls++
				w.bytesField("name", b.name)
				w.rawField("args", b.input())
			})
			if b.signature != nil {
				w.bytesField("thoughtSignature", b.signature)
			}
		case Redacted:
			w.field("text", "")
			w.boolField("thought", true)
			w.bytesField("thoughtSignature", signedAs(redactedMark, b.text))
		case Thinking:
			w.bytesField("text", b.text)
			w.boolField("thought", true)
			if b.signature != nil {
				w.bytesField("thoughtSignature", signedAs(claudeMark, b.signature))
			}
		default:
			w.bytesField("text", b.text)
		}
	})
}

// chanceList are the items of v, up to the first that names no token: what is nothing
// would be written with many times its bytes.
func chanceList(v gjson.Result) (list []gjson.Result) {
	v.ForEach(func(_, item gjson.Result) bool {
		named := item.Get("token").Exists()
		if named {
			list = append(list, item)
		}
		return named
	})
	return list
}

// geminiChances writes log probabilities that are items of chat's logprobs.content.
func (w *writer) geminiChances(items []byte) {
	list := chanceList(gjson.ParseBytes(append(append([]byte{'['}, items...), ']')))
	chance := func(v gjson.Result) {
		w.object(func() {
			w.rawField("token", cmp.Or(v.Get("token").Raw, `""`))
			w.rawField("logProbability", cmp.Or(v.Get("logprob").Raw, "0"))
		})
	}
	w.within("logprobsResult", '{', '}', func() {
		w.within("topCandidates", '[', ']', func() {
			for _, v := range list {
				w.object(func() {
					w.within("candidates", '[', ']', func() {
						for _, top := range chanceList(v.Get("top_logprobs")) {
							chance(top)
						}
					})
				})
			}
		})
		w.within("chosenCandidates", '[', ']', func() {
			for _, v := range list {
				chance(v)
			}
		})
	})
}

// gemini is the error as Google's clients read it.
func (f *Failure) gemini() []byte {
	status := cmp.Or(f.Status, http.StatusBadGateway)
	w := writer{}
	w.object(func() {
		w.within("error", '{', '}', func() {
			w.intField("code", status)
			w.field("message", f.Message)
			w.field("status", GoogleStatus(status))
		})
	})
	return w.b
}

// GoogleStatus is Google's word for a status of HTTP.
func GoogleStatus(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusMethodNotAllowed:
		return "UNIMPLEMENTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	case http.StatusServiceUnavailable, http.StatusBadGateway, 529:
		return "UNAVAILABLE"
	}
	if status < 500 {
		return "FAILED_PRECONDITION"
	}
	return "INTERNAL"
}

// geminiWhole writes a whole answer.
func geminiWhole(o Reply, a *answer) []byte {
	if a.failure != nil {
		return a.failure.gemini()
	}
	w := writer{}
	w.object(func() {
		w.within("candidates", '[', ']', func() {
			w.object(func() {
				w.within("content", '{', '}', func() {
					w.within("parts", '[', ']', func() {
						calls := 0
						for i := range a.blocks {
							w.geminiPart(o, &a.blocks[i], &calls)
						}
						if len(a.blocks) == 0 {
							w.raw(`{"text":""}`)
						}
					})
					w.field("role", "model")
				})
				w.field("finishReason", geminiReason.of(a.finish))
				w.intField("index", 0)
				if a.chances != nil {
					w.geminiChances(a.chances)
				}
			})
		})
		w.geminiCounted(a.usage)
		w.geminiNamed(o, a.id)
	})
	return w.b
}
