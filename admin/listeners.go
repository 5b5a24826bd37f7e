package admin

import "sync/atomic"

// listeners counts open pages, at most maxListeners.
type listeners struct{ open atomic.Int32 }

// enter reports whether there is room for one more; then leave must follow.
func (l *listeners) enter() bool {
	if l.open.Add(1) <= maxListeners {
		return true
	}
	l.open.Add(-1)
	return false
}

func (l *listeners) leave() { l.open.Add(-1) }
