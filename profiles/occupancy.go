package profiles

import "time"

// Occupancy is the record of n, the sequences decoding on one backend
// incarnation, over the last while. The router, which owns n, writes it with
// Set; streams read it to learn at which n the time since their last tokens
// was spent. It is safe for concurrent use; Load is one atomic load.
type Occupancy struct{}

// NewOccupancy returns a record that starts at n = 0.
func NewOccupancy(now time.Time) *Occupancy { panic("unwritten") }

// Set records that n changed at now. A now before the last change counts as
// the last change.
func (o *Occupancy) Set(now time.Time, n int) { panic("unwritten") }

// Load returns n and a version that grows with every change.
func (o *Occupancy) Load() (version uint32, n int) { panic("unwritten") }
