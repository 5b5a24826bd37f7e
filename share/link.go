package share

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Options configures a Link. The zero value of every optional field means the
// default named in its comment.
type Options struct {
	// Replicas is how many share the backends while nobody has told. Default: 1.
	Replicas int

	// Expiry is how long what the others said last is good for once nothing more
	// is heard. Default: Expiry.
	Expiry time.Duration

	// Log is told when the replica is alone, and when it is shared again. Required.
	Log *slog.Logger
}

// Link is the verdict of a running gateway. It is safe for concurrent use.
type Link struct {
	log *slog.Logger

	mu    sync.Mutex // guards the fields below; a leaf
	judge Judge
	since time.Time // of being alone
}

// NewLink checks o.
func NewLink(o Options) (*Link, error) {
	if o.Log == nil {
		return nil, errors.New("share: Log is missing")
	}
	if o.Expiry <= 0 {
		o.Expiry = Expiry
	}
	return &Link{log: o.Log, judge: NewJudge(o.Replicas, o.Expiry)}, nil
}

// State returns the verdict as of the last exchange of loads.
func (l *Link) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.judge.State()
}

// See takes the result of one exchange of loads, as Judge.See does.
func (l *Link) See(now time.Time, others int, err error) State {
	l.mu.Lock()
	before := l.judge.State()
	state := l.judge.See(now, others, err)
	turned := state.Alone != before.Alone
	if turned && state.Alone {
		l.since = now
	}
	out := now.Sub(l.since)
	l.mu.Unlock()

	switch {
	case turned && state.Alone:
		l.log.Warn("alone: nothing is shared with other replicas, each goes on with what it knows", "cause", "store_down", "replicas", state.Replicas, "error", err)
	case turned:
		l.log.Info("shared: replicas know of each other again", "cause", "store_down", "replicas", state.Replicas, "alone_for", out.Round(time.Millisecond).String())
	}
	return state
}
