package learn

import (
	"context"
	"maps"
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
	asked map[profiles.Target]time.Time     // when somebody last wanted to know
	sums  map[profiles.Target]profiles.Sums // never handed out without a copy
	seqs  map[string]uint64                 // replica → last number added
	faded map[profiles.Target]time.Time     // when the slow copy of sums faded last
	swept time.Time                         // when it was last looked for what nobody asks for
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
	m.make()
	m.seqs[replica] = seq
	now := m.now()
	var dropped profiles.DroppedError
	for _, d := range deltas {
		s := m.sums[d.Target]
		if at, ok := m.faded[d.Target]; ok {
			s.Fade(now.Sub(at))
		}
		s.Add(d, halfLife)
		if err := s.Check(); err != nil {
			dropped.Add(d.Target, err)
			continue
		}
		m.sums[d.Target], m.faded[d.Target] = s, now
	}
	return dropped.OrNil()
}

// Adopt makes sums those of their targets, as profiles.Adopter says. The slow copy goes
// on fading from when the last evidence came in.
func (m *Memory) Adopt(ctx context.Context, sums map[profiles.Target]profiles.Sums, replace bool) (left []profiles.Target, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.make()
	for t, s := range sums {
		if _, has := m.sums[t]; has && !replace {
			left = append(left, t)
			continue
		}
		m.sums[t], m.faded[t] = s, m.now()
		if !s.Updated.IsZero() {
			m.faded[t] = s.Updated
		}
	}
	return left, nil
}

// All returns a copy of everything that is held.
func (m *Memory) All() map[profiles.Target]profiles.Sums {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.sums)
}

// make makes the maps. mu is held.
func (m *Memory) make() {
	if m.sums == nil {
		m.sums, m.seqs = map[profiles.Target]profiles.Sums{}, map[string]uint64{}
		m.faded, m.asked = map[profiles.Target]time.Time{}, map[profiles.Target]time.Time{}
	}
}

// Load returns the sums of those targets that have any.
func (m *Memory) Load(ctx context.Context, targets []profiles.Target) (map[profiles.Target]profiles.Sums, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	found := map[profiles.Target]profiles.Sums{}
	for _, t := range targets {
		if s, ok := m.sums[t]; ok {
			found[t] = s
			m.asked[t] = now
		}
	}
	m.forget(now)
	return found, nil
}

// memoryLife is how long a target is kept that nobody asks for: one that was
// taken out of the configuration, or of a fleet whose members come and go.
const memoryLife = 24 * time.Hour

// forget drops what nobody asked for in memoryLife. mu is held.
func (m *Memory) forget(now time.Time) {
	if now.Sub(m.swept) < time.Hour {
		return
	}
	m.swept = now
	for t := range m.sums {
		if asked, ok := m.asked[t]; !ok {
			m.asked[t] = now
		} else if now.Sub(asked) > memoryLife {
			delete(m.sums, t)
			delete(m.faded, t)
			delete(m.asked, t)
		}
	}
}

func (m *Memory) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}
