package profiles

import "context"

// Store keeps the sums of all replicas. Every implementation passes
// profiles/storetest.
type Store interface {
	// Push adds the deltas of one replica's fold number seq, which starts at 1
	// and grows by one. A (replica, seq) that was already added changes
	// nothing and is no error, so a Push whose answer was lost can be sent
	// again.
	Push(ctx context.Context, replica string, seq uint64, deltas []Delta) error

	// Load returns the sums of the targets that have any.
	Load(ctx context.Context, targets []Target) (map[Target]Sums, error)
}
