package continuation

import (
	"strings"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// MaxText is how much text of an answer is kept, in bytes: some 64,000 tokens. What
// is longer is not continued.
const MaxText = 256 << 10

// Thread is one stream of a client, through all the engines that it comes from.
type Thread struct {
	request Request
	head    [len(names)]string // what the first chunk had there, as JSON; "" = nothing
	begun   bool               // a chunk went by: head is known
	role    bool               // who speaks was said
	text    []byte
	ended   bool   // why it ended was said
	unfit   string // why it can no longer be continued; "" = it can

	// Before the engine that it comes from now.
	times  int  // how often it was continued
	tokens int  // of the answer
	prompt int  // of the prompt, by the first one's count; 0 = not known
	whole  bool // all of the text is there, but for its end
	seam   string
}

// names are the members of a chunk that are the same in all of a stream.
var names = [...]string{"id", "created", "model", "system_fingerprint"}

// Begin returns the thread of the answer to q.
func Begin(q Request) *Thread { return &Thread{request: q} }

// Unfit is why the stream cannot be continued as it stands; "" = it can. Nothing of
// the next engine has to look at a stop that this text may have begun.
func (t *Thread) Unfit() string {
	switch {
	case t.unfit != "":
		return t.unfit
	case !t.ended && t.request.stopping(string(t.text)):
		return "its text ends in what may be the beginning of a stop"
	}
	return ""
}

// Text is how many bytes of text there are.
func (t *Thread) Text() int { return len(t.text) }

// Tokens are those of the answer that came from the engines before.
func (t *Thread) Tokens() int { return t.tokens }

// Times is how often it was continued.
func (t *Thread) Times() int { return t.times }

// Prompt is how many tokens the client's prompt has, where an engine counted so many
// with the text that it went on with.
func (t *Thread) Prompt(counted int) int {
	if t.prompt > 0 {
		return t.prompt
	}
	return max(counted-t.tokens, 0)
}

// GoOn has the stream go on elsewhere: tokens is how many the engine that died gave,
// and prompt how many it counted of the client's prompt, 0 = not known.
func (t *Thread) GoOn(tokens, prompt int) {
	if t.times == 0 {
		t.prompt = prompt
	}
	t.times++
	t.tokens += tokens
	t.whole = t.ended || t.request.over(t.tokens)
	t.seam = ""
	if t.request.chat { // templates cut white space off the end of a message
		text := string(t.text)
		t.seam = text[len(strings.TrimRight(text, " \t\r\n")):]
	}
}

// Edits are those of the body for the next engine; see Request.Edits.
func (t *Thread) Edits(way upstream.Continue, edits []openai.Splice) []openai.Splice {
	if t.times == 0 {
		return edits
	}
	return t.request.Edits(way, strings.TrimSuffix(string(t.text), t.seam), t.tokens, edits)
}

// Absorbs reports whether nothing more of text is to come from the next engine: it is
// all there but for its end, for which one token is asked.
func (t *Thread) Absorbs() bool { return t.whole }
