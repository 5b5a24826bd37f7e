package translate

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
)

// Chats of Mistral's form are like OpenAI's, but refuse each field that is not their
// own. They call the seed random_seed, and have documents, sound and thoughts as parts
// of their own. A call of a tool has an id of nine letters and digits. Behind results
// of tools the model speaks next, and where it is to go on with its last words these
// are marked as a prefix.

// mistralFields are the fields that chats have at Mistral's alone.
var mistralFields = []string{"safe_prompt", "prompt_mode", "guardrails", "min_tokens", "repetition_penalty"}

// mistralMark begins a signature of Mistral's where it stands in place of one of
// Anthropic's.
const mistralMark = "mistral:"

// mistralBridge is what the model says between the results of its tools and the next
// words of the user: the API has refused a user there.
const mistralBridge = "I have the results."

// owns writes a field of the client's as it is, if the target is the one that has it.
func (w *requestWriter) owns(p *Param) bool {
	own := w.t.Mistral && w.t.Dialect == Chat && w.r.dialect == Chat && p.Value != "" && slices.Contains(mistralFields, p.Name)
	if own {
		w.own = append(w.own, *p)
	}
	return own
}

// mistralParams are the features that chats have at Mistral's.
func mistralParams() [features]string {
	known := chatParams
	known[TopK], known[Seed], known[User] = "top_k", "random_seed", ""
	return known
}

// callID is the id of a call as the target of a chat takes it.
func (w *requestWriter) callID(id string) string {
	if !w.t.Mistral {
		return id
	}
	return mistralID(id)
}

// mistralID is id as Mistral takes it: another one for the same call, if it has to be.
func mistralID(id string) string {
	const (
		size   = 9
		digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	)
	if len(id) == size && strings.Trim(id, digits) == "" {
		return id
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	sum, b := h.Sum64(), [size]byte{}
	for i := range b {
		b[i] = digits[sum%uint64(len(digits))]
		sum /= uint64(len(digits))
	}
	return string(b[:])
}

// mistralPart writes a document or sound, and reports whether p is one that can be
// told.
func (w *requestWriter) mistralPart(p *Part) bool {
	switch {
	case !w.t.Mistral:
		return false
	case p.Kind == Audio && cmp.Or(p.Data, p.URL) != "":
		w.object(func() {
			w.field("type", "input_audio")
			w.field("input_audio", cmp.Or(p.Data, p.URL))
		})
	case p.Kind == File && cmp.Or(p.Data, p.URL) != "":
		w.object(func() {
			w.field("type", "document_url")
			w.field("document_url", p.address())
			w.optional("document_name", p.Name)
		})
	default:
		return false
	}
	return true
}

// mistralContent writes what the model said, with the thoughts that Mistral signed, and
// reports whether there are any: others are not believed.
func (w *requestWriter) mistralContent(parts []Part, text string) bool {
	signed := func(p Part) bool { return p.Kind == Thinking && strings.HasPrefix(p.Signature, mistralMark) }
	if !w.t.Mistral || !slices.ContainsFunc(parts, signed) {
		return false
	}
	w.within("content", '[', ']', func() {
		for _, p := range parts {
			if !signed(p) {
				continue
			}
			w.object(func() {
				w.field("type", "thinking")
				w.within("thinking", '[', ']', func() { w.textPart(p.Text) })
				w.field("signature", strings.TrimPrefix(p.Signature, mistralMark))
			})
		}
		if text != "" {
			w.textPart(text)
		}
	})
	return true
}

// textPart writes a text as a part.
func (w *writer) textPart(text string) {
	w.object(func() {
		w.field("type", "text")
		w.field("text", text)
	})
}

// bridge lets the model speak between the results of tools among parts and what the
// user says next.
func (w *requestWriter) bridge(parts []Part) {
	if w.t.Mistral && slices.ContainsFunc(parts, func(p Part) bool { return p.Kind == ToolResult }) {
		w.object(func() {
			w.field("role", "assistant")
			w.field("content", mistralBridge)
		})
	}
}

// prefix marks the model's words as those that it is to go on with, if nothing follows
// them.
func (w *requestWriter) prefix(last bool, calls int) {
	if w.t.Mistral && last && calls == 0 {
		w.boolField("prefix", true)
	}
}

// claudes reports whether p is a thought that Anthropic has signed: it believes no other.
func (p *Part) claudes() bool {
	return p.Kind == Thinking && p.Signature != "" && !strings.HasPrefix(p.Signature, geminiMark) && !strings.HasPrefix(p.Signature, mistralMark)
}
