package arena

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router/peers"
)

// errLost is what a gateway gets instead of an answer while Redis is lost.
var errLost = errors.New("arena: redis is lost")

// link is how a gateway reaches what they share: the store of curves, and the loads
// that they tell each other.
type link struct{ *gateway }

// expiry is how old another's load may be: share.Expiry where loads are told as
// often as in a gateway.
func (w *world) expiry() time.Duration { return 4 * w.s.ShareDelay }

// lost reports whether the gateway does not reach it.
func (l link) lost() bool { return l.world.lost || l.cut }

// tell publishes the load of a gateway.
func (l link) tell(replica string, load peers.Report) error {
	if l.lost() {
		return errLost
	}
	l.world.board.put(l.world.now, replica, load)
	return nil
}

// Push is the store's, unless it is out of reach.
func (l link) Push(ctx context.Context, replica string, seq uint64, deltas []profiles.Delta) error {
	if l.lost() {
		return errLost
	}
	if err := l.world.store.Push(ctx, replica, seq, deltas); err != nil {
		panic(err) // nobody learns here what cannot be
	}
	return nil
}

// Load is the store's, unless it is out of reach.
func (l link) Load(ctx context.Context, targets []profiles.Target) (map[profiles.Target]profiles.Sums, error) {
	if l.lost() {
		return nil, errLost
	}
	return l.world.store.Load(ctx, targets)
}
