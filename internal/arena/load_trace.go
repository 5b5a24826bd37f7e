package arena

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
)

// Trace is requests that were recorded, at their recorded intervals. It holds
// one of them at a time, whatever the length of the file.
type Trace struct {
	// File is how messages call it, and Open opens it at its start. Required.
	File string
	Open func() (io.ReadCloser, error)

	// Speed makes the intervals so many times shorter, and the rate so many
	// times higher: bursts stay, but are over sooner. 0 = 1.
	Speed float64

	// Until is when the trace ends, at its new speed. One that has ended before
	// starts again. 0 = at its own end.
	Until time.Duration

	err error // of the last reading
}

// Arrivals returns the requests, the first of them at 0. It may be read several
// times, but not at once: each reading opens the file, and ends early when
// something is wrong. Err tells.
func (t *Trace) Arrivals() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		t.err = nil
		speed := t.Speed
		if speed == 0 {
			speed = 1
		}
		var start time.Duration // of this round
		for {
			more := true
			r, err := t.round(func(a Arrival) bool {
				a.At = start + time.Duration(float64(a.At)/speed)
				more = (t.Until == 0 || a.At < t.Until) && yield(a)
				return more
			})
			switch {
			case err != nil:
				t.err = err
				return
			case !more || t.Until == 0:
				return
			case r.last == 0:
				t.err = fmt.Errorf("%s: all its requests come at once, so it cannot be repeated until %v; leave the duration out", t.File, t.Until)
				return
			}
			// The next round begins one mean interval after the last request.
			interval := r.last / time.Duration(r.requests-1)
			start += time.Duration(float64(r.last+max(interval, 1)) / speed)
		}
	}
}

// Err returns what went wrong in the last reading; nil if nothing.
func (t *Trace) Err() error { return t.err }

// round is one reading of the file to its end.
type round struct {
	requests int
	last     time.Duration // arrival of the last request; the first came at 0
}

// round reads the file once, unless yield wants no more.
func (t *Trace) round(yield func(Arrival) bool) (r round, err error) {
	f, err := t.Open()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	trace, err := loadgen.NewTrace(t.File, f)
	if err != nil {
		return r, err
	}
	var first time.Duration
	for {
		a, err := trace.Next()
		switch {
		case err == io.EOF && r.requests == 0:
			return r, &loadgen.TraceError{File: t.File, Line: 1, Message: "there is no request behind the header"}
		case err == io.EOF:
			return r, nil
		case err != nil:
			return r, err
		}
		if r.requests++; r.requests == 1 {
			first = a.At
		}
		r.last = a.At - first
		if !yield(Arrival{At: r.last, PromptTokens: a.PromptTokens, OutputTokens: a.OutputTokens}) {
			return r, nil
		}
	}
}
