package providers

import (
	"math"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

// Usage is the token count in an answer.
type Usage struct {
	PromptTokens, CachedTokens, CompletionTokens, ReasoningTokens int

	AudioPromptTokens, AudioCompletionTokens int // those of sound
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
	// beginning of an event, which waits for its end. pass is valid until the
	// next call.
	Read(p []byte) (pass []byte, seen Seen)

	// End is called at EOF or abort and returns the bytes still held back, as far
	// as they are an event: what broke off within one goes nowhere.
	End() (pass []byte, seen Seen)

	// ErrorEvent is the event that tells the client, in the dialect of this
	// stream and numbered after what went by, that the backend died. It is nil
	// for an answer that is no stream.
	ErrorEvent(message string) []byte

	// Held is how many bytes it keeps between two calls. LetGo lets go of them,
	// as far as what is passed on allows it: the event or document that they
	// belong to is not looked at, like one that is too large.
	Held() int
	LetGo()
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
// asked for it, and what goes elsewhere.
type Strip uint8

// They may be added up. The zero value is all as it came.
const (
	StripEvent   Strip = 1 << iota // the event that carries usage and nothing else
	StripRunning                   // the usage in events that have choices too
	StripNull                      // the "usage":null in the events before it
	MovePrint                      // the event's system_fingerprint goes to the one before it, if that ends a choice
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
	switch d := endpoint.Of(path).Dialect; {
	case d.Chunks() && stream:
		return &streamMeter{strip: strip}
	case stream:
		return &eventMeter{dialect: d}
	case d.Chunks(), d == endpoint.Responses, d == endpoint.Messages:
		return &documentMeter{typed: !d.Chunks()}
	case d == endpoint.Speech:
		return soundMeter{}
	default:
		return &bulkMeter{anything: d == endpoint.Transcription}
	}
}

// usageMeter keeps the usage of an answer: its own if it has one, else what
// llama.cpp's timings say.
//
// llama.cpp counts each choice by itself. Of a stream it tells the counts one by
// one, as the choices end; of a document the first choice's alone, and those of
// the others are taken from how much text they have.
type usageMeter struct {
	usage   Usage
	own     bool // usage was in the answer
	choices int  // how many there are, as far as is known
	ended   int  // of these are counted
	counted int  // the completion tokens of those
	chunks  int  // of a stream, events with content
}

// take returns the usage in c, nil if there is none, or not yet of all choices.
func (m *usageMeter) take(c *openai.Chunk) *Usage {
	if c.Choices.Count > 0 {
		m.choices = max(m.choices, c.Choices.Index+1, c.Choices.Count)
	}
	switch {
	case c.HasUsage:
		if !m.own {
			m.own, m.ended, m.counted = true, 0, 0
		}
		m.usage = Usage(c.Usage)
	case c.HasTimings && !m.own:
		m.usage = Usage(c.Timings)
	default:
		return nil
	}
	switch {
	case m.choices < 2:
		return &m.usage
	case !c.OfOne():
		if c.UsageOnly { // whichever of them it counts, none came without tokens
			m.usage.CompletionTokens = max(m.usage.CompletionTokens, m.chunks)
		}
		return &m.usage
	}
	if c.Choices.Count > 1 {
		m.usage.CompletionTokens = ofAll(m.usage.CompletionTokens, c)
		return &m.usage
	}
	if !c.Choices.Finished && !c.UsageOnly { // it runs
		return nil
	}
	if m.ended < m.choices {
		m.ended++
		m.counted += m.usage.CompletionTokens
	}
	if m.usage.CompletionTokens = m.counted; m.ended < m.choices {
		return nil
	}
	return &m.usage
}

// ofAll returns how many tokens the choices of a document have, the first of
// which has so many. A short one says nothing of how long a token is.
func ofAll(first int, c *openai.Chunk) int {
	const short, bytesPerToken = 8, 4.0
	perToken := bytesPerToken
	if first >= short && c.Choices.FirstBytes > 0 {
		perToken = float64(c.Choices.FirstBytes) / float64(first)
	}
	rest := float64(c.Bytes-c.Choices.FirstBytes) / perToken
	return first + max(c.Choices.Count-1, int(math.Round(rest)))
}
