package learn

import (
	"errors"
	"log/slog"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// link is whether the exchange with the store works. It logs when that
// changes, and not otherwise.
type link struct {
	log   *slog.Logger
	known bool // there was an exchange
	up    bool
	since time.Time // of the failure, while down

	dropped time.Time // when it was last said that a delta was dropped; zero = never
}

// dropEvery is how often it is said that deltas are dropped: who makes one that
// cannot be makes another each second.
const dropEvery = 10 * time.Minute

func (k *link) see(now time.Time, err error) {
	up := err == nil
	switch {
	case !up && (k.up || !k.known):
		k.since = now
		k.log.Warn("curves are not shared: learning goes on here", "error", err)
	case up && !k.up && k.known:
		k.log.Info("curves are shared again", "out_for", now.Sub(k.since))
	}
	k.known, k.up = true, up
}

// refused is what an error of a Store may be: these targets are not taken, now
// or later, and everything else was done.
type refused interface {
	error
	Refused() []profiles.Target
}

// refusedOf returns the targets that err says are refused, nil when err is
// none or says that nothing was done.
func refusedOf(err error) map[profiles.Target]bool {
	var r refused
	if !errors.As(err, &r) {
		return nil
	}
	set := map[profiles.Target]bool{}
	for _, t := range r.Refused() {
		set[t] = true
	}
	return set
}

// done reports whether a Push that returned err did all that it ever will.
func done(err error) bool {
	return err == nil || refusedOf(err) != nil || onlyDropped(err)
}

// onlyDropped reports whether err is that deltas were dropped, and nothing else.
func onlyDropped(err error) bool {
	var dropped *profiles.DroppedError
	return errors.As(err, &dropped) && refusedOf(err) == nil
}

// drop says what err tells of deltas that were dropped.
func (k *link) drop(now time.Time, err error) {
	var dropped *profiles.DroppedError
	if errors.As(err, &dropped) && (k.dropped.IsZero() || now.Sub(k.dropped) >= dropEvery) {
		k.dropped = now
		k.log.Warn("what was learned here cannot be: it is dropped", "error", dropped)
	}
}
