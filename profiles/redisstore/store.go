package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/share"
)

//go:embed lua/push.lua
var pushSource string

//go:embed lua/seed.lua
var seedSource string

//go:embed lua/drop.lua
var dropSource string

//go:embed lua/trim.lua
var trimSource string

// A value of a sum, or its name, is no longer than longestValue bytes, and a target has no
// more than mostFields of them.
const (
	longestValue = 128
	mostFields   = 10_000
)

const (
	// perTrip is how many targets go into one round trip: the server has
	// 250 ms for each, and takes half a millisecond for a target with 20 bins.
	perTrip = 64

	// seqLife is how long the number of a replica's last delta is kept: a
	// delta whose answer was lost may be sent again for as long.
	seqLife = 24 * time.Hour
)

// Options configures a Store. The zero value of every optional field means the
// default named in its comment.
type Options struct {
	// Conn is where the sums are. Required.
	Conn *redisconn.Client

	// HalfLife is that of the Book. Default: 600s.
	HalfLife time.Duration

	// Life is how long the sums of a target outlive the last delta.
	// Default: 7 days.
	Life time.Duration

	// Timeout bounds a Push and a Load, however many trips they take and
	// whatever their caller allows. Default: 1s.
	Timeout time.Duration

	// Log is told of sums that were dropped because no replica can have written
	// them, once in ten minutes. Default: nobody.
	Log *slog.Logger
}

// Store keeps sums in Redis. It is safe for concurrent use.
type Store struct {
	o                      Options
	push, seed, drop, trim *redis.Script

	// unread is whether the last read failed: maybe because of what it would have read.
	unread atomic.Bool

	mu sync.Mutex // guards known; a leaf
	// known is what this replica knows the server to hold: what it puts back
	// when the server has lost it.
	known map[profiles.Target]hash

	healed share.Seldom // sums were dropped
}

var _ profiles.Adopter = (*Store)(nil)

// New returns a store over c with the default options.
func New(c *redisconn.Client) *Store { return Open(Options{Conn: c}) }

// Open returns a store. It panics when Conn is missing.
func Open(o Options) *Store {
	if o.Conn == nil {
		panic("redisstore: Options.Conn is missing")
	}
	if o.HalfLife <= 0 {
		o.HalfLife = 600 * time.Second
	}
	if o.Life <= 0 {
		o.Life = 7 * 24 * time.Hour
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{
		o:     o,
		push:  redis.NewScript(rulesInLua() + pushSource),
		seed:  redis.NewScript(seedSource),
		drop:  redis.NewScript(dropSource),
		trim:  redis.NewScript(trimSource),
		known: map[profiles.Target]hash{},
	}
}

// RefusedError reports targets whose sums are in a layout that this version
// does not know, or in a key that is none of ours. They are left alone;
// everything else was done.
type RefusedError struct {
	targets []profiles.Target
	found   string // what the first has instead
}

// Error names the first target and what stands there.
func (e *RefusedError) Error() string {
	t := e.targets[0]
	more := ""
	if n := len(e.targets) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more targets)", n)
	}
	return fmt.Sprintf("redisstore: %s %q%s: left alone, because the key does not hold sums of version %s: %s", t.Backend, t.Model, more, layoutVersion, e.found)
}

// Refused returns the targets.
func (e *RefusedError) Refused() []profiles.Target { return e.targets }

func (e *RefusedError) add(t profiles.Target, found string) {
	if len(e.targets) == 0 {
		e.found = found
	}
	e.targets = append(e.targets, t)
}

// orNil is e as an error, nil when nothing was refused.
func (e *RefusedError) orNil() error {
	if len(e.targets) == 0 {
		return nil
	}
	return e
}

// Push adds the deltas, each once, however often they are sent. An error other
// than a *RefusedError or a *profiles.DroppedError, or both joined, may leave
// some of them added: send all again, under the same seq.
func (s *Store) Push(ctx context.Context, replica string, seq uint64, deltas []profiles.Delta) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var refused RefusedError
	var dropped profiles.DroppedError
	for trip := range slices.Chunk(deltas, perTrip) {
		calls := make([]redisconn.Call, len(trip))
		for i := range trip {
			calls[i] = s.pushCall(replica, seq, &trip[i])
		}
		replies, err := s.o.Conn.Run(ctx, s.push, calls...)
		if err != nil {
			return fmt.Errorf("redisstore: push: %w", err)
		}
		for i, reply := range replies {
			rest, found, err := readReply(reply)
			var impossible *profiles.ImpossibleError
			switch {
			case errors.As(err, &impossible):
				dropped.Add(trip[i].Target, impossible)
			case err != nil:
				return fmt.Errorf("redisstore: push of %s %q: %w", trip[i].Target.Backend, trip[i].Target.Model, err)
			case found != "":
				refused.add(trip[i].Target, found)
			case len(rest) == 3 && rest[1] == "added":
				s.added(&trip[i], rest[0])
				if rest[2] != "" {
					s.tell(trip[i].Target, rest[2])
				}
			}
		}
	}
	switch {
	case refused.orNil() == nil:
		return dropped.OrNil()
	case dropped.OrNil() == nil:
		return &refused
	}
	return errors.Join(&refused, &dropped)
}

// tell says that the sums of t were dropped because of what was found there.
func (s *Store) tell(t profiles.Target, found string) {
	s.healed.Warn(s.o.Log, time.Now(), "sums in Redis that no gateway can have measured: they are dropped, and what is known here is put back",
		"backend", t.Backend, "model", t.Model, "found", found)
}

// added notes that the server now has d, for the case that it loses it before the
// next Load. A hash with another birth is not the one that was loaded: there
// only the delta is, and Load will put back the rest.
func (s *Store) added(d *profiles.Delta, birth string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.known[d.Target]; ok && birth == h.birth {
		h.sums.Add(*d, s.o.HalfLife)
		s.known[d.Target] = h
	}
}

// Load returns the sums of the targets that have any. With a *RefusedError the
// sums of the others are returned.
func (s *Store) Load(ctx context.Context, targets []profiles.Target) (map[profiles.Target]profiles.Sums, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var refused RefusedError
	all := map[profiles.Target]profiles.Sums{}
	for trip := range slices.Chunk(targets, perTrip) {
		stored, err := s.read(ctx, trip, &refused)
		if err == nil {
			err = s.restore(ctx, trip, stored, &refused)
		}
		if err != nil {
			return nil, fmt.Errorf("redisstore: load: %w", err)
		}
		s.mu.Lock()
		for t, h := range stored {
			s.known[t] = h
			all[t] = h.sums
		}
		s.mu.Unlock()
	}
	s.forget(targets)
	return all, refused.orNil()
}

// maxForeign is how many targets that nobody asks for any more are known all the
// same: engines that are discovered come and go.
const maxForeign = 256

// forget drops what is known beside targets if that has become much.
func (s *Store) forget(targets []profiles.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) <= len(targets)+maxForeign {
		return
	}
	asked := make(map[profiles.Target]bool, len(targets))
	for _, t := range targets {
		asked[t] = true
	}
	maps.DeleteFunc(s.known, func(t profiles.Target, _ hash) bool { return !asked[t] })
}

// read returns what the server holds for targets.
func (s *Store) read(ctx context.Context, targets []profiles.Target, refused *RefusedError) (map[profiles.Target]hash, error) {
	if s.unread.Load() {
		if err := s.cut(ctx, targets); err != nil {
			return nil, err
		}
	}
	replies := make([]*redis.MapStringStringCmd, len(targets))
	err := s.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, t := range targets {
				replies[i] = p.HGetAll(ctx, s.sumsKey(t))
			}
			return nil
		})
		if redisconn.AboutCommand(err) {
			return nil // told below, for the target that it is about
		}
		return err
	})
	s.unread.Store(err != nil)
	if err != nil {
		return nil, err
	}
	stored := map[profiles.Target]hash{}
	var calls []redisconn.Call
	for i, r := range replies {
		t := targets[i]
		fields, err := r.Result()
		switch {
		case redisconn.AboutCommand(err):
			refused.add(t, err.Error())
		case err != nil:
			return nil, err
		case len(fields) > 0:
			h, found, err := readHash(fields)
			switch {
			case found != "":
				refused.add(t, found)
			case err != nil:
				s.tell(t, err.Error())
				calls = append(calls, redisconn.Call{Keys: []string{s.sumsKey(t)}, Args: []any{layoutVersion, h.birth}})
			default:
				stored[t] = h
			}
		}
	}
	if len(calls) == 0 {
		return stored, nil
	}
	// What was dropped is missing from stored, as if the server had lost it.
	_, err = s.o.Conn.Run(ctx, s.drop, calls...)
	return stored, err
}

// cut has the server cut what is too long to be read in time.
func (s *Store) cut(ctx context.Context, targets []profiles.Target) error {
	calls := make([]redisconn.Call, len(targets))
	for i, t := range targets {
		calls[i] = redisconn.Call{Keys: []string{s.sumsKey(t)}, Args: []any{layoutVersion, longestValue, mostFields}}
	}
	_, err := s.o.Conn.Run(ctx, s.trim, calls...)
	return err
}

// restore puts back what the server has lost of targets since this replica
// loaded it, unless another has done so, and brings stored up to date.
func (s *Store) restore(ctx context.Context, targets []profiles.Target, stored map[profiles.Target]hash, refused *RefusedError) error {
	var lost []profiles.Target
	var calls []redisconn.Call
	s.mu.Lock()
	for _, t := range targets {
		k, had := s.known[t]
		if had && k.sums.Check() != nil { // adding up what was pushed may have made it so
			delete(s.known, t)
			had = false
		}
		if h, has := stored[t]; had && (!has || h.birth != k.birth) && !slices.Contains(refused.targets, t) {
			lost = append(lost, t)
			calls = append(calls, s.seedCall(t, k.sums, seedLost))
		}
	}
	s.mu.Unlock()
	if len(lost) == 0 {
		return nil
	}
	replies, err := s.o.Conn.Run(ctx, s.seed, calls...)
	if err != nil {
		return err
	}
	for i, reply := range replies {
		fields, found, err := readReply(reply)
		if err != nil {
			return fmt.Errorf("putting back %s %q: %w", lost[i].Backend, lost[i].Model, err)
		}
		if found == "" {
			h, other, err := readHash(pairs(fields))
			if found = other; found == "" && err == nil { // what cannot be is dropped by the next Load
				stored[lost[i]] = h
			}
		}
		if found != "" {
			refused.add(lost[i], found)
		}
	}
	return nil
}

// Adopt makes sums those of their targets, as profiles.Adopter says. Gateways that run
// take them for what another has put back after a loss, so they do not put theirs on top.
func (s *Store) Adopt(ctx context.Context, sums map[profiles.Target]profiles.Sums, replace bool) (left []profiles.Target, err error) {
	var refused RefusedError
	for trip := range slices.Chunk(slices.Collect(maps.Keys(sums)), perTrip) {
		kept, err := s.adopt(ctx, trip, sums, replace, &refused)
		if err != nil {
			return left, fmt.Errorf("redisstore: adopt: %w", err)
		}
		left = append(left, kept...)
	}
	return left, refused.orNil()
}

// adopt is one trip of Adopt. Each target is looked at and written in one step, so that
// no replica can put back what is replaced, or push between the two.
func (s *Store) adopt(ctx context.Context, trip []profiles.Target, sums map[profiles.Target]profiles.Sums, replace bool, refused *RefusedError) (left []profiles.Target, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if _, err := s.read(ctx, trip, new(RefusedError)); err != nil { // drops what cannot be: it is not worth keeping
		return nil, err
	}
	how := seedKeep
	if replace {
		how = seedReplace
	}
	calls := make([]redisconn.Call, len(trip))
	for i, t := range trip {
		calls[i] = s.seedCall(t, sums[t], how)
	}
	replies, err := s.o.Conn.Run(ctx, s.seed, calls...)
	if err != nil {
		return nil, err
	}
	for i, reply := range replies {
		rest, found, err := readReply(reply)
		switch {
		case err != nil:
			return left, fmt.Errorf("%s %q: %w", trip[i].Backend, trip[i].Model, err)
		case found != "":
			refused.add(trip[i], found)
		case rest == nil:
			left = append(left, trip[i])
		}
	}
	return left, nil
}

var errReply = errors.New("an answer that is none of the script's")

// newBirth returns a name that no other hash has.
func newBirth() string { return rand.Text() }
