package learn

import (
	"context"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// defaultHalfLife is that of profiles.Options.
const defaultHalfLife = 600 * time.Second

// Memory is the Store inside this process. The zero value is empty and ready;
// it is safe for concurrent use.
type Memory struct {
	// HalfLife is that of the Book. Default: 600s. It is not changed after
	// the first use.
	HalfLife time.Duration

	// Now is the clock by which the slow copy fades. Default: time.Now. It is
	// not changed after the first use.
	Now func() time.Time

	mu    sync.Mutex                        // guards the fields below; a leaf
	sums  map[profiles.Target]profiles.Sums // never handed out without a copy
	seqs  map[string]uint64                 // replica → last number added
	faded map[profiles.Target]time.Time     // when the slow copy of sums faded last
}

// Push adds deltas, once per replica and seq.
func (m *Memory) Push(ctx context.Context, replica string, seq uint64, deltas []profiles.Delta) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	halfLife := m.HalfLife
	if halfLife <= 0 {
		halfLife = defaultHalfLife
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seqs[replica] >= seq {
		return nil
	}
	if m.sums == nil {
		m.sums, m.seqs, m.faded = map[profiles.Target]profiles.Sums{}, map[string]uint64{}, map[profiles.Target]time.Time{}
	}
	m.seqs[replica] = seq
	now := time.Now()
	if m.Now != nil {
		now = m.Now()
	}
	for _, d := range deltas {
		s := m.sums[d.Target]
		if at, ok := m.faded[d.Target]; ok {
			s.Fade(now.Sub(at))
		}
		m.faded[d.Target] = now
		s.Add(d, halfLife)
		m.sums[d.Target] = s
	}
	return nil
}

// Load returns the sums of those targets that have any.
func (m *Memory) Load(ctx context.Context, targets []profiles.Target) (map[profiles.Target]profiles.Sums, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[profiles.Target]profiles.Sums{}
	for _, t := range targets {
		if s, ok := m.sums[t]; ok {
			found[t] = s
		}
	}
	return found, nil
}
