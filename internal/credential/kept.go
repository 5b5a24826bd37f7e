package credential

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// kept is a source that makes a value by some means and keeps it.
type kept struct {
	what string // that it makes, in errors
	make func(ctx context.Context) (Value, error)

	// turn is taken by who makes a value.
	turn chan struct{}
	last atomic.Pointer[made]
}

// made is how a value was made, or was not.
type made struct {
	value   Value
	before  Value // the one before: answers to it may still come
	at      time.Time
	err     error // the last attempt failed; value is the one before, if there is one
	tried   time.Time
	refused bool // the backend did not take it
}

func newKept(what string, make_ func(ctx context.Context) (Value, error)) *kept {
	return &kept{what: what, make: make_, turn: make(chan struct{}, 1)}
}

// Get implements Source.
func (k *kept) Get(ctx context.Context) (Value, error) {
	now := time.Now()
	m := k.last.Load()
	good := m.good(now)
	if good && !m.due(now) {
		return m.value, nil
	}
	if good { // one makes the next, the others go on
		select {
		case k.turn <- struct{}{}:
		default:
			return m.value, nil
		}
	} else {
		select {
		case k.turn <- struct{}{}:
		case <-ctx.Done():
			return Value{}, k.late(ctx)
		}
	}
	defer func() { <-k.turn }()
	return k.renew(ctx)
}

// renew makes a value, unless somebody else has meanwhile. The turn is taken.
func (k *kept) renew(ctx context.Context) (Value, error) {
	now := time.Now()
	was := k.last.Load()
	switch {
	case was.good(now) && !was.due(now):
		return was.value, nil
	case was != nil && was.err != nil && now.Sub(was.tried) < againAfter && now.Sub(was.tried) >= 0:
		if was.good(now) {
			return was.value, nil
		}
		return Value{}, was.err
	}
	next := &made{at: now, tried: now}
	v, err := k.make(ctx)
	if err == nil && v.AWS == nil {
		err = usable(v.Secret)
	}
	if err == nil && !v.Expires.IsZero() && !v.Expires.After(now) {
		err = fmt.Errorf("has expired at %s", v.Expires.UTC().Format(time.RFC3339))
	}
	if err != nil && ctx.Err() != nil { // who asked has gone: that says nothing
		return Value{}, k.late(ctx)
	}
	if err != nil {
		next.err = fmt.Errorf("%s: %w", k.what, err)
		if was != nil {
			next.value, next.before, next.at, next.refused = was.value, was.before, was.at, was.refused
		}
		k.last.Store(next)
		if was.good(now) {
			return was.value, nil
		}
		return Value{}, next.err
	}
	if next.value = v; was != nil {
		next.before = was.value
	}
	k.last.Store(next)
	if ctx.Err() != nil { // it is for the next one: the backend is not asked any more, and not to blame
		return Value{}, k.late(ctx)
	}
	return v, nil
}

// late says that there was nothing until who asked went.
func (k *kept) late(ctx context.Context) error {
	return fmt.Errorf("%s: nothing so far: %w", k.what, context.Cause(ctx))
}

// good reports whether there is a value that can be sent.
func (m *made) good(now time.Time) bool {
	return m != nil && (m.value.Secret != "" || m.value.AWS != nil) && !m.refused && (m.value.Expires.IsZero() || now.Before(m.value.Expires))
}

// due reports whether it is time for the next value.
func (m *made) due(now time.Time) bool {
	if m.value.Expires.IsZero() {
		return false
	}
	left := min(time.Duration(early*float64(m.value.Expires.Sub(m.at))), earlyMost)
	return !now.Before(m.value.Expires.Add(-left))
}

// Refused implements Source.
func (k *kept) Refused(v Value) bool {
	m := k.last.Load()
	if m == nil || m.value.Secret != v.Secret || m.value.AWS != v.AWS {
		return true // there is another one already
	}
	if time.Since(m.at) < againAfter {
		return false // it was just made
	}
	next := *m
	next.refused = true
	k.last.CompareAndSwap(m, &next)
	return true
}

// Secrets implements Source.
func (k *kept) Secrets() []string {
	if m := k.last.Load(); m != nil {
		return append(secretsOf(m.value), secretsOf(m.before)...)
	}
	return nil
}
