package prefix

import (
	"time"

	"github.com/pacer-dev/pacer/router"
)

// A session is a chain of its name alone: where it went before is kept beside the
// prompts, and told to the other replicas as they are. It says nothing of what is cached.

// Visited notes that the session which c is of goes to t now.
func (x *Index) Visited(now time.Time, t router.Target, c *Chain) {
	h := x.cache(t)
	if h == nil || c.Empty() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.touch(now, c, 0)
	h.tell(now, c.last, 0)
}

// Knows reports whether the session which c is of went to t before.
func (x *Index) Knows(t router.Target, c *Chain) bool {
	h := x.cache(t)
	if h == nil || c.Empty() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.depth(c) == len(c.blocks) {
		return true
	}
	to, _ := h.heard.deepest(c, 0)
	return to > 0
}
