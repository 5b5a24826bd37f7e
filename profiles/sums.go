package profiles

import "time"

// Sums is everything known about one target: nothing but sums, so that
// replicas merge by addition. The zero value is empty.
type Sums struct {
	// Updated is when evidence last came in. Merging keeps the later one.
	Updated time.Time
	// The owner of this package defines bins, normal equations and totals here.
}

// Delta is what one target gathered between two folds. Adding it to Sums
// first halves every group of sums per HalfLife of the occupied time that the
// delta itself carries for that group: no clock is needed, and the order of
// merging does not matter to first order.
type Delta struct {
	Target Target
	Sums   Sums
}

// Add merges d into s, with the forgetting described at Delta.
func (s *Sums) Add(d Delta, halfLife time.Duration) { panic("unwritten") }

// Group is a set of fields that are forgotten together.
type Group struct {
	Occupied float64 // seconds; the group's older content counts 2^(−Occupied/halfLife)
	Fields   []Field
}

// Field is one sum under its stored name.
type Field struct {
	Name  string // short, stable, unique within Sums: "b12.y"
	Value float64
}

// Groups writes s as named fields, leaving out zeros; SumsFrom reads them
// back and ignores names it does not know. They are the stored form.
func (s *Sums) Groups() []Group { panic("unwritten") }

// SumsFrom is the inverse of Groups.
func SumsFrom(fields map[string]float64, updated time.Time) Sums { panic("unwritten") }
