package arena

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/prefix"
)

// Message is one of a conversation: messages of one ID are the same text.
type Message struct {
	ID     uint64
	Tokens int
}

// Turn is one of a conversation.
type Turn struct {
	Session  float64   // the same for all of the conversation, in [0, 1)
	Messages []Message // the prompt
	Answer   uint64    // the ID of the message that answers it
}

// session is a's, 0 for one that has none.
func (a *Arrival) session() float64 {
	if a.Turn == nil {
		return 0
	}
	return a.Turn.Session
}

// Talks are conversations: people who think between turns, agents who call a tool
// and come back at once, and prompts of one turn. Each begins with one of a few
// system prompts.
type Talks struct {
	Rate    float64 // conversations that begin per second, above 0
	Systems int     // how many system prompts there are; 0 = none
	System  int     // tokens of each
	Zipf    float64 // the k-th is asked for as often as k to minus this; 0 = all alike

	Turns    float64 // mean, geometric; 0 = 1
	Question Lengths // of a person, or of what a tool says
	Answer   Lengths
	Think    time.Duration // mean between an answer and the next turn
	Pace     float64       // tokens/s at which answers are thought to come, for when the next turn is

	Limit    int           // tokens from which on a conversation ends; 0 = 100,000
	Duration time.Duration // above 0
	Seed     uint64
}

// Arrivals returns the requests in the order of their time.
func (t Talks) Arrivals() iter.Seq[Arrival] {
	times, what := stream(t.Seed, streamArrivals), stream(t.Seed, streamPrompts)
	var all []Arrival
	for at := 0.0; ; {
		at += times.ExpFloat64() / t.Rate
		if !(at < t.Duration.Seconds()) {
			break
		}
		all = t.converse(all, what, at)
	}
	slices.SortStableFunc(all, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return slices.Values(all)
}

// converse appends one conversation.
func (t Talks) converse(all []Arrival, r *rand.Rand, at float64) []Arrival {
	id := r.Uint64() | 1
	session := float64(mixed64(id)>>11) / (1 << 53)
	var said []Message
	tokens := 0
	say := func(m Message) {
		said = append(said, m)
		tokens += m.Tokens
	}
	if t.Systems > 0 {
		say(Message{ID: uint64(2 * (1 + t.drawSystem(r))), Tokens: t.System})
	}
	for more := true; more && at < t.Duration.Seconds(); {
		say(Message{ID: mixed64(id + uint64(len(said))), Tokens: t.Question.draw(r)})
		answer := Message{ID: mixed64(id + uint64(len(said))), Tokens: t.Answer.draw(r)}
		all = append(all, Arrival{
			At: time.Duration(at * float64(time.Second)), PromptTokens: tokens, OutputTokens: answer.Tokens,
			Turn: &Turn{Session: session, Messages: slices.Clip(said), Answer: answer.ID},
		})
		say(answer)
		at += float64(answer.Tokens)/t.Pace + r.ExpFloat64()*t.Think.Seconds()
		more = t.Turns > 1 && r.Float64() < 1-1/t.Turns && tokens < cmp.Or(t.Limit, 100_000)
	}
	return all
}

// drawSystem draws a system prompt by its rank.
func (t Talks) drawSystem(r *rand.Rand) int {
	if t.Zipf == 0 {
		return r.IntN(t.Systems)
	}
	return int(rand.NewZipf(r, max(t.Zipf, 1.001), 1, uint64(t.Systems-1)).Uint64())
}

// mixed64 spreads x over all bits, as splitmix64 does.
func mixed64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// blocks are the hashes of the whole blocks of so many tokens of a's prompt and
// answer, as an engine has them.
func (a *Arrival) blocks(size int) []uint64 {
	list := make([]uint64, 0, (a.PromptTokens+a.OutputTokens)/size)
	hash, room := uint64(1), size
	add := func(m Message) {
		for at := 0; at < m.Tokens; {
			n := min(room, m.Tokens-at)
			hash = mixed64(hash ^ mixed64(m.ID+uint64(at)<<1) ^ uint64(n)<<50)
			at += n
			if room -= n; room == 0 {
				list, room = append(list, hash), size
			}
		}
	}
	for _, m := range a.Turn.Messages {
		add(m)
	}
	add(Message{ID: a.Turn.Answer, Tokens: a.OutputTokens})
	return list
}

const (
	bytesPerToken = 4
	chainTokens   = 64 // in a block of a chain
)

// chain makes c that of a's prompt, as a gateway has it.
func (a *Arrival) chain(c *prefix.Chain) {
	c.Begin()
	hash := uint64(1)
	for _, m := range a.Turn.Messages {
		for at := 0; at < m.Tokens; at += chainTokens {
			n := min(chainTokens, m.Tokens-at)
			hash = mixed64(hash ^ mixed64(m.ID+uint64(at)<<1) ^ uint64(n)<<50)
			c.Block(hash, n*bytesPerToken)
		}
		c.End()
	}
}

// Telling is what engines tell of what they had in their caches.
type Telling uint8

// Honest is the default.
const (
	Honest Telling = iota
	Silent         // cached_tokens is 0, always
	Lying          // cached_tokens is all of the prompt, always
)

// tells is what the usage of v says of its cache.
func (v *visit) tells() int {
	switch v.world.s.Telling {
	case Silent:
		return 0
	case Lying:
		return v.arrival.PromptTokens
	}
	return v.seat.sequence.Cached()
}

// sessionChain makes c that of a's session, as a gateway has it.
func (a *Arrival) sessionChain(c *prefix.Chain) {
	c.Begin("session")
	c.Block(math.Float64bits(a.Turn.Session), bytesPerToken)
	c.End()
}
