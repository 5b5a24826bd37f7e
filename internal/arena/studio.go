package arena

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

const (
	// sitting is for how long a level is shown: windows of 5 s enough for a bin
	// to tell its own error. leastSteps is what it takes of a slow engine.
	sitting    = 40 * time.Second
	leastSteps = 120

	// window is that of profiles: what one row of its fit is of.
	window = 5 * time.Second

	// glance is about how much time passes between two reads of a stream. A
	// curve does not care how many tokens come at once.
	glance = 0.2

	// little is the prompt load of every other window, as a share of the usual
	// one. With the same load at every token of a level nobody could tell what
	// a prompt costs.
	little = 0.6

	// shortest is the shortest answer that is evidence.
	shortest = 6

	firstTokens = 60
)

// studio shows a book what an engine does at one level of concurrency after
// the other: exact steps, without noise, in virtual time of its own.
type studio struct {
	engine *engine
	book   *profiles.Book
	target profiles.Target
	clock  time.Time
	folded time.Time
	sums   profiles.Sums
}

// seat is one of the users of a level, who asks again as soon as he is
// answered.
type seat struct {
	stream *profiles.Stream
	tokens int
}

// loads are the prompt tokens beside each token, in windows of little and in
// those between, so that on average it is what n users bring.
func (s *studio) loads(n int) (low, high float64) {
	e := s.engine
	usual := float64(n) * e.mix.rho()
	low = little * usual
	// Windows are equally long, so the one with fewer steps has to have the
	// more: (high − usual)/T(high) = (usual − low)/T(low).
	want := (usual - low) / e.tokenSeconds(n, low)
	high = usual
	for top := usual; want > 0; {
		top *= 2
		if (top-usual)/e.tokenSeconds(n, top) < want && top < 1e9 {
			continue
		}
		for bottom := usual; top-bottom > 1e-6*top; {
			if high = (bottom + top) / 2; (high-usual)/e.tokenSeconds(n, high) < want {
				bottom = high
			} else {
				top = high
			}
		}
		break
	}
	return low, high
}

// watch shows n users.
func (s *studio) watch(n int) {
	e := s.engine
	answer := max(int(e.mix.answer+0.5), shortest)
	low, high := s.loads(n)
	occupancy := profiles.NewOccupancy(s.clock)
	occupancy.Set(s.clock, n)
	seats := make([]seat, n)
	for i := range seats {
		s.sit(&seats[i], occupancy)
	}
	began, steps := s.clock, 0.0
	for s.clock.Sub(began) < sitting || steps < leastSteps {
		load := low
		at := s.clock.Sub(epoch)
		if at/window%2 == 1 {
			load = high
		}
		token := e.tokenSeconds(n, load) // the reads keep to their window
		left := (window - at%window).Seconds()
		k := max(int(min(glance, left)/token), 1)
		k = min(k, max(answer/8, 1))
		before := s.clock
		s.clock = s.clock.Add(time.Duration(float64(k) * token * float64(time.Second)))
		steps += float64(k)
		s.prefill(before, occupancy, float64(k)*load)
		for i := range seats {
			s.read(&seats[i], k, answer, occupancy)
		}
		if s.clock.Sub(s.folded) >= time.Second {
			s.fold()
		}
	}
	for i := range seats {
		seats[i].stream.Close(s.clock, false)
	}
	s.rest()
}

// sit opens the stream of a user whose first token comes now.
func (s *studio) sit(u *seat, occupancy *profiles.Occupancy) {
	u.stream, u.tokens = s.book.Open(s.target, profiles.Open{Sent: s.clock, Occupancy: occupancy, Sequences: 1}), 1
	u.stream.Read(s.clock, 1)
}

// read hands a user k tokens, and lets the next one sit down when that is his
// answer.
func (s *studio) read(u *seat, k, answer int, occupancy *profiles.Occupancy) {
	u.stream.Read(s.clock, k)
	if u.tokens += k; u.tokens < answer {
		return
	}
	u.stream.Usage(profiles.Usage{CompletionTokens: u.tokens})
	u.stream.Close(s.clock, true)
	s.sit(u, occupancy)
}

// prefill books prompts of so many tokens, prefilled since from beside those
// who sit here.
func (s *studio) prefill(from time.Time, occupancy *profiles.Occupancy, tokens float64) {
	if tokens < 1 {
		return
	}
	p := s.book.Open(s.target, profiles.Open{Sent: from, Occupancy: occupancy, PromptTokens: int(tokens + 0.5), Sequences: 1})
	p.Read(s.clock, 1)
	p.Close(s.clock, false)
}

// answerFirst shows how long first tokens take: the rest of a step under way,
// and one with the prompt in it.
func (s *studio) answerFirst() {
	e := s.engine
	occupancy := profiles.NewOccupancy(s.clock)
	busy := max(e.trueUsers(e.floor())/2, 1)
	for i := range firstTokens {
		prompt := e.mix.lengths[i*len(e.mix.lengths)/firstTokens].prompt
		p := s.book.Open(s.target, profiles.Open{
			Sent: s.clock, Occupancy: occupancy, PromptTokens: prompt, Sequences: 1, Ahead: profiles.Ahead{Known: true},
		})
		took := e.stepSeconds(busy, 0)/2 + e.stepSeconds(busy, float64(prompt))
		s.clock = s.clock.Add(time.Duration(took * float64(time.Second)))
		occupancy.Set(s.clock, 1)
		p.Read(s.clock, 1)
		for range shortest { // as many as make it evidence
			s.clock = s.clock.Add(time.Duration(e.tokenSeconds(1, 0) * float64(time.Second)))
			p.Read(s.clock, 1)
		}
		p.Usage(profiles.Usage{PromptTokens: prompt, CompletionTokens: 1 + shortest})
		p.Close(s.clock, false)
		occupancy.Set(s.clock, 0)
	}
	s.rest()
}

// rest ends the windows of a level.
func (s *studio) rest() {
	s.clock = epoch.Add((s.clock.Sub(epoch)/(2*window) + 2) * 2 * window)
	s.fold()
}

func (s *studio) fold() {
	s.folded = s.clock
	for _, d := range s.book.Fold(s.clock) {
		s.sums.Add(d, 0)
	}
}
