package providers

import (
	"strings"

	"github.com/pacer-dev/pacer/internal/openai"
)

// Usage is the token count in an answer.
type Usage struct {
	PromptTokens, CachedTokens, CompletionTokens, ReasoningTokens int
}

// Seen is what came by in one Read of a Meter.
type Seen struct {
	Chunks    int    // events that carry content of any kind
	Bytes     int    // bytes of that content
	Reasoning bool   // some of it was reasoning
	Usage     *Usage // last one seen, nil if none; valid until the next Read
	Running   bool   // Usage came with choices: more may follow
	Tokens    int    // the completion tokens that the last usage within one of Chunks counts, 0 = there was none
	Done      bool   // the dialect's last event
	Error     bool   // the backend reported an error within the stream
	Bad       bool   // something that is not the dialect: garbage
	Moved     bool   // an event came, or a piece of one: comments and blank lines are none
}

// Meter looks on at one answer. It belongs to the goroutine of the relay. Read
// of a chunk with one event allocates nothing.
//
// An event counts when its blank line is there. However the same bytes are cut
// into reads, the sums of what was seen and the bytes passed on are the same.
type Meter interface {
	// Read takes the bytes that arrived and returns those to pass on: all of
	// them, at once, except the usage that Pacer alone asked for, and the
	// beginning of an event that could still have it. pass is valid until the
	// next call.
	Read(p []byte) (pass []byte, seen Seen)

	// End is called at EOF or abort and returns the bytes still held back.
	End() (pass []byte, seen Seen)

	// ErrorEvent is the event that tells the client, in the dialect of this
	// stream and numbered after what went by, that the backend died. It is nil
	// for an answer that is no stream.
	ErrorEvent(message string) []byte

	// Held is how many bytes it keeps between two calls. Shed lets go of them,
	// as far as what is passed on allows it: the event or document that they
	// belong to is not looked at, like one that is too large.
	Held() int
	Shed()
}

// TextKeeper is a Meter that can keep the beginning of the text that it sees,
// to be counted by a tokenizer where no usage comes.
type TextKeeper interface {
	// KeepText is called before the first Read: keep up to most bytes.
	KeepText(most int)

	// Text is what was kept, as UTF-8; none once there is a usage.
	Text() []byte
}

// keptText is what a TextKeeper keeps. The zero value keeps nothing.
type keptText struct {
	most int
	kept []byte
}

// KeepText implements TextKeeper.
func (k *keptText) KeepText(most int) { k.most = most }

// Text implements TextKeeper.
func (k *keptText) Text() []byte { return k.kept }

// drop gives the text up: there is a usage.
func (k *keptText) drop() { *k = keptText{} }

// Strip says what of the usage in a stream is taken out, because Pacer alone
// asked for it.
type Strip uint8

// They may be added up. The zero value is all as it came.
const (
	StripEvent   Strip = 1 << iota // the event that carries usage and nothing else
	StripRunning                   // the usage in events that have choices too
	StripNull                      // the "usage":null in the events before it
)

// NewMeter returns the meter for an answer to path, which is below the base URL
// ("/chat/completions"). stream is whether the answer is a stream of events.
// strip is what is taken out of one of chat.completions or completions; in
// other dialects nothing is asked for and nothing taken out.
//
// Of a document that was generated at most 4 MiB are kept, to be read at its
// end. Of others (embeddings, images, sound …) nothing is kept, however large
// they are, and they have no chunks.
func (b *Backend) NewMeter(path string, stream bool, strip Strip) Meter {
	switch d := dialectOf(path); {
	case d == chat && stream:
		return &streamMeter{strip: strip, nulls: strings.HasPrefix(path, "/completions") && !b.zeros(path) && strip&StripNull == 0}
	case stream:
		return &eventMeter{dialect: d}
	case d == chat, d == responses, d == messages:
		return &documentMeter{typed: d != chat}
	case d == speech:
		return soundMeter{}
	default:
		return &bulkMeter{anything: d == transcription}
	}
}

// usageMeter keeps the usage of an answer: its own if it has one, else what
// llama.cpp's timings say.
type usageMeter struct {
	usage Usage
	own   bool // usage was in the answer
}

// take returns the usage in c, nil if there is none.
func (m *usageMeter) take(c *openai.Chunk) *Usage {
	switch {
	case c.HasUsage:
		m.usage, m.own = Usage(c.Usage), true
	case c.HasTimings && !m.own:
		m.usage = Usage(c.Timings)
	default:
		return nil
	}
	return &m.usage
}
