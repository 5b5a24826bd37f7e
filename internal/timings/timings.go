// Package timings holds what users saw of an engine's answers, to the
// microsecond: as a compact file that can be replayed where the engine is not,
// and as the speed that they got at each number of users.
package timings

import (
	"slices"
	"time"
)

// Answer is what a user saw of one request. Times are since the first request
// of its run.
type Answer struct {
	Part  string        // of the run, such as a sweep before it; no comma
	Sent  time.Duration // when the request went out
	Ended time.Duration // when the answer was whole

	Guess     int // tokens of the prompt, by the bytes of the request
	Prompt    int // the same, by the engine's count
	Tokens    int // of the answer, by the engine's count
	FirstText int // bytes of text that the first arrival held
	Text      int // and all of them

	Arrivals []Arrival // of content, one after the other
}

// Arrival is what one read of the network brought.
type Arrival struct {
	At     time.Duration
	Chunks int // events with text
	Total  int // tokens of the answer so far, by the engine's count; 0 = it did not say
}

// First is when the first content came.
func (a *Answer) First() time.Duration { return a.Arrivals[0].At }

// Last is when the last content came.
func (a *Answer) Last() time.Duration { return a.Arrivals[len(a.Arrivals)-1].At }

// Counted reports whether the engine counted at every arrival.
func (a *Answer) Counted() bool {
	return !slices.ContainsFunc(a.Arrivals, func(r Arrival) bool { return r.Total == 0 })
}

// Chunks is how many events with text the answer had.
func (a *Answer) Chunks() (n int) {
	for _, r := range a.Arrivals {
		n += r.Chunks
	}
	return n
}

// After is how many tokens came after the first arrival: by the engine's count
// where it counted, else by the share of the chunks.
func (a *Answer) After() float64 {
	if a.Counted() {
		return float64(a.Arrivals[len(a.Arrivals)-1].Total - a.Arrivals[0].Total)
	}
	return float64(a.Tokens) * (1 - float64(a.Arrivals[0].Chunks)/float64(a.Chunks()))
}
