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
}

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
