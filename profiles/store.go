package profiles

import (
	"context"
	"fmt"
)

// Store keeps the sums of all replicas. Every implementation passes
// profiles/storetest.
type Store interface {
	// Push adds the deltas of one replica's fold number seq, which starts at 1
	// and grows by one. A (replica, seq) that was already added changes
	// nothing and is no error, so a Push whose answer was lost can be sent
	// again.
	Push(ctx context.Context, replica string, seq uint64, deltas []Delta) error

	// Load returns the sums of the targets that have any. All pass Check.
	Load(ctx context.Context, targets []Target) (map[Target]Sums, error)
}

// An Adopter is a Store that takes over what was learned elsewhere: from a file, or from
// another store. Every implementation passes profiles/storetest.
type Adopter interface {
	Store

	// Adopt makes sums those of their targets. A target that has sums already
	// keeps them, and is returned, unless replace is true. What replicas push
	// meanwhile is added. After an error some may have been taken: call it again.
	Adopt(ctx context.Context, sums map[Target]Sums, replace bool) (left []Target, err error)
}

// DroppedError reports deltas that no streams can have given. They are not to be
// sent again.
type DroppedError struct {
	Target Target // the first of them
	More   int    // targets beside it
	Err    error  // what is wrong with the first
}

// Error names the first target and its sum.
func (e *DroppedError) Error() string {
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf(" (and %d more targets)", e.More)
	}
	return fmt.Sprintf("profiles: what was learned of %s %q%s is dropped: %v", e.Target.Backend, e.Target.Model, more, e.Err)
}

// Unwrap returns what is wrong with the first.
func (e *DroppedError) Unwrap() error { return e.Err }

// Add counts t among the dropped.
func (e *DroppedError) Add(t Target, err error) {
	if e.Err != nil {
		e.More++
		return
	}
	e.Target, e.Err = t, err
}

// OrNil is e as an error, nil when nothing was dropped.
func (e *DroppedError) OrNil() error {
	if e.Err == nil {
		return nil
	}
	return e
}
