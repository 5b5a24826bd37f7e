package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Lease is one request's place on one backend incarnation, taken with the
// decision and given back exactly once by Done. FirstToken and Done take the
// router's lock; Progress takes none and is for the hot path.
type Lease struct{}

// Target is where the request goes.
func (l *Lease) Target() Target { panic("unwritten") }

// Floor is the floor that counts for this stream, 0 if none.
func (l *Lease) Floor() float64 { panic("unwritten") }

// Occupancy is the record of n of the backend incarnation; Load its n now.
func (l *Lease) Occupancy() *profiles.Occupancy { panic("unwritten") }

// FirstToken moves the lease from waiting to decoding.
func (l *Lease) FirstToken(now time.Time) { panic("unwritten") }

// Progress says how many tokens the stream got after its first chunk, the last
// of them at now. The floor guard reads it. Two atomic stores, no lock.
func (l *Lease) Progress(now time.Time, tokens float64) { panic("unwritten") }

// Done gives the place back, with the tokens the request put out, and returns
// the tickets that may go now. Calls after the first do nothing and return nil.
func (l *Lease) Done(now time.Time, outputTokens float64) []Grant { panic("unwritten") }
