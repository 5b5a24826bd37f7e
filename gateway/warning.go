package gateway

import (
	"sync/atomic"
	"time"
)

// warning is something to be said in the log once a minute, however often it
// happens. The zero value is ready; it is safe for concurrent use.
type warning struct{ said atomic.Int64 } // unix seconds

// due reports whether it is to be said, and takes it for said then.
func (w *warning) due(now time.Time) bool {
	at, last := now.Unix(), w.said.Load()
	return at-last >= 60 && w.said.CompareAndSwap(last, at)
}
