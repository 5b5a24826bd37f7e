package arena

import (
	"math/rand/v2"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/sim"
)

// studio shows a book one level of concurrency after the other.
type studio struct {
	engine *engine
	book   *profiles.Book
	target profiles.Target
	random *rand.Rand
	clock  time.Time
	folded time.Time
	sums   profiles.Sums

	occupancy *profiles.Occupancy
	decoding  int
	prompts   int // tokens that wait for their prefill
	present   int
}

// sitter is one user of a level. One without a stream is not watched.
type sitter struct {
	prompt, tokens int
	first          bool
	stream         *profiles.Stream
}

// watch shows the book n users for trueSteps steps.
func (s *studio) watch(n int) {
	e := s.engine.newCopy()
	s.occupancy = profiles.NewOccupancy(s.clock)
	s.decoding, s.prompts, s.present = 0, 0, 0
	s.folded = s.clock
	var open []*sitter
	sit := func(young, watched bool) {
		l := s.engine.mix.lengths[s.random.IntN(len(s.engine.mix.lengths))]
		u := &sitter{prompt: l.prompt, tokens: l.answer, first: true}
		if young { // in the midst of an answer, so that not all end at once
			u.tokens = 1 + s.random.IntN(l.answer)
		}
		if watched {
			u.stream = s.book.Open(s.target, profiles.Open{
				Sent: s.clock, Occupancy: s.occupancy, PromptTokens: u.prompt, Sequences: 1,
				Ahead: profiles.Ahead{Known: true, PromptTokens: s.prompts, Sequences: s.present},
			})
		}
		s.present++
		s.prompts += u.prompt
		if _, err := e.Submit(u.prompt, u.tokens, u); err != nil {
			s.present--
			s.prompts -= u.prompt
			return
		}
		open = append(open, u)
	}
	for range n {
		sit(true, false)
	}
	e.Step(s.clock)
	for step := range untrueSteps + trueSteps {
		due, busy := e.Next()
		if !busy {
			break // nothing fits into this engine
		}
		s.clock = due
		ended := s.hand(e.Step(due))
		for range ended {
			sit(false, step >= untrueSteps)
		}
		if _, busy := e.Next(); !busy {
			e.Step(s.clock)
		}
		if s.clock.Sub(s.folded) >= time.Second {
			s.fold()
		}
	}
	for _, u := range open {
		if u.stream != nil {
			u.stream.Close(s.clock, false)
		}
	}
	s.clock = s.clock.Add(20 * time.Second) // the windows of this level end here
	s.fold()
}

// hand books what a step made, and returns how many answers it ended.
func (s *studio) hand(step sim.Step) int {
	ended := 0
	for _, out := range step.Outputs {
		u := out.Sequence.Tag.(*sitter)
		if out.First {
			s.decoding++
			s.prompts -= u.prompt
			s.occupancy.Set(s.clock, s.decoding)
		}
		if u.stream != nil {
			u.stream.Read(s.clock, 1)
		}
		if !out.Last {
			continue
		}
		ended++
		s.decoding--
		s.present--
		if u.stream != nil {
			u.stream.Usage(profiles.Usage{PromptTokens: u.prompt, CompletionTokens: u.tokens})
			u.stream.Close(s.clock, true)
			u.stream = nil
		}
		s.occupancy.Set(s.clock, s.decoding)
	}
	return ended
}

func (s *studio) fold() {
	s.folded = s.clock
	for _, d := range s.book.Fold(s.clock) {
		s.sums.Add(d, 0)
	}
}
