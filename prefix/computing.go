package prefix

import "time"

// computing is a prompt that an engine prefills: its first block that was not there,
// and how many were. Until its first token comes nobody else finds them.
type computing struct {
	hash  uint64
	depth int
	sent  time.Time
}

const (
	// mostComputing is how many prompts are kept of those that an engine prefills, and
	// computingFor how long one is taken to be prefilled of which nothing is heard.
	mostComputing = 64
	computingFor  = time.Minute
)

// compute notes that the blocks of c beyond those that were sent before are prefilled
// now. It returns the hash of the first, 0 = there are none, and whether it is this
// prompt that brings them, and none before it.
func (h *cache) compute(now time.Time, c *Chain, depth int) (first uint64, brings bool) {
	if p := h.under(now, c, depth); p != nil {
		return p.hash, false // it computes what one before it did not, or has not yet
	}
	if depth >= len(c.blocks) {
		return 0, false
	}
	if len(h.computing) >= mostComputing {
		h.computing = append(h.computing[:0], h.computing[1:]...)
	}
	h.computing = append(h.computing, computing{c.blocks[depth].hash, depth, now})
	return c.blocks[depth].hash, true
}

// abandon forgets what v was to bring, and nobody has asked for since: it ended before
// anything was seen of it, and nobody else computes it.
func (h *cache) abandon(v *Visit) {
	if !v.brings {
		return
	}
	h.computedFrom(v.first)
	for at := h.nodes[v.first]; at != 0 && h.list[at].used == v.sent.UnixNano(); {
		next := h.list[at].older // touched before it, so the block behind it
		h.drop(at)
		at = next
	}
}

// computedFrom notes that what begins with the block of that hash is prefilled.
func (h *cache) computedFrom(hash uint64) {
	for i := range h.computing {
		if h.computing[i].hash == hash {
			h.computing = append(h.computing[:i], h.computing[i+1:]...)
			return
		}
	}
}

// prefilled is how many of the first blocks of c are there, of so many that were sent.
func (h *cache) prefilled(now time.Time, c *Chain, sent int) int {
	if p := h.under(now, c, sent); p != nil {
		return p.depth
	}
	return sent
}

// under is the prompt that is computed from the first of so many blocks of c on; nil =
// none is.
func (h *cache) under(now time.Time, c *Chain, sent int) (least *computing) {
	for i := range h.computing {
		if p := &h.computing[i]; p.depth < sent && c.blocks[p.depth].hash == p.hash && now.Sub(p.sent) < computingFor {
			least, sent = p, p.depth
		}
	}
	return least
}
