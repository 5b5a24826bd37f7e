package translate

import (
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/openai"
)

// MaxDocument is how large an answer may be that is one document, in bytes: it is
// read as a whole.
const MaxDocument = 16 << 20

const (
	// mostBlocks is how many blocks an answer may have that is translated. Each is written
	// with many times the bytes that it came in.
	mostBlocks = 10_000

	// longestID is how long an id may be that is passed on, in bytes, and longestModel the
	// name of a model that a stream says: some dialects repeat both with every piece.
	longestID, longestModel = 512, 512

	// longestCallID is how long that of a call may be, which is said once: LiteLLM has
	// Google's signature of the call in it, and wants it back.
	longestCallID = 32 << 10
)

// cut is the first n bytes of text, less what they have of a character that is cut in two.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// Document translates one whole answer; a plain one goes on as it is. The error says
// what is wrong with it; an answer that is an error of the target in itself is one
// with Look.Error.
func Document(from, to Name, o Reply, text []byte) (out []byte, look Look, err error) {
	v, ok := parse(text)
	if !ok {
		return nil, Look{Bad: true}, &Refusal{Message: "The answer is not one JSON object."}
	}
	a := &answer{}
	table[from].hear().document(v, a)
	if a.failed || !a.begun {
		return nil, Look{Bad: true}, &Refusal{Message: "The answer is none of this API."}
	}
	look = a.look()
	if o.Plain {
		return text, look, nil
	}
	return table[to].whole(o, a), look, nil
}

// look is what a is worth.
func (a *answer) look() Look {
	look := Look{Done: true, Error: a.failure != nil}
	for i := range a.blocks {
		b := &a.blocks[i]
		if b.kind == Redacted {
			continue
		}
		look.Bytes += openai.TextLen(b.name) + openai.TextLen(b.text)
		look.Reasoning = look.Reasoning || b.kind == Thinking && !isEmpty(b.text)
	}
	if look.Bytes > 0 {
		look.Chunks = 1
	}
	if a.usage != (Usage{}) {
		look.Usage = &a.usage
	}
	return look
}

// answer is a whole answer.
type answer struct {
	id, model []byte
	blocks    []block
	finish    Finish
	stop      []byte
	usage     Usage
	chances   []byte // items of chat's logprobs.content, with commas between
	failure   *Failure
	begun     bool
	failed    bool // it cannot be read
}

// block is a part of a whole answer; its strings are quoted.
type block struct {
	kind      PartKind
	id, name  []byte
	text      []byte
	signature []byte
	refusal   bool
}

func (a *answer) bad() { a.failed = true }

func (a *answer) emit(e Event) {
	e.named()
	switch e.Kind {
	case Begin:
		a.begun, a.id, a.model = true, e.ID, e.Name
	case BlockBegin:
		if len(a.blocks) == mostBlocks {
			a.failed = true
			return
		}
		a.blocks = append(a.blocks, block{kind: e.Block, id: e.ID, name: e.Name, text: []byte(`""`), refusal: e.Refusal, signature: e.Raw})
	case BlockDelta:
		b := &a.blocks[len(a.blocks)-1]
		b.text = append(append(b.text[:len(b.text)-1], inner(e.Text)...), '"')
	case BlockSigned:
		a.blocks[len(a.blocks)-1].signature = e.Text
	case Chances:
		a.chances = append(a.chances, e.Raw...)
	case Ended:
		a.finish, a.stop = e.Finish, e.Stop
	case Used:
		a.usage = e.Usage
	case Failed:
		a.failure, a.begun = e.Failure, true
	}
}

// joined is the text of all blocks of a kind, quoted; nil = there is none.
func (a *answer) joined(kind PartKind, refusal bool) []byte {
	var all []byte
	for i := range a.blocks {
		if b := &a.blocks[i]; b.kind == kind && b.refusal == refusal {
			if all == nil {
				all = []byte{'"'}
			}
			all = append(all, inner(b.text)...)
		}
	}
	if all == nil {
		return nil
	}
	return append(all, '"')
}

// calls reports whether a tool is called.
func (a *answer) calls() bool {
	return slices.ContainsFunc(a.blocks, func(b block) bool { return b.kind == ToolCall })
}

// input is the JSON object that a tool is called with.
func (b *block) input() string {
	if s := openai.Unquote(b.text); isObject(s) {
		return s
	}
	return "{}"
}
