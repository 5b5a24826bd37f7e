package prefix

import (
	"sync"
	"time"
)

// nodeBytes is what a block takes in memory, its place in the map included.
const nodeBytes = 72

// cache is what one target is thought to have. Its blocks are in a ring, by when
// they were used last; of one prompt the end counts as older than the beginning, so
// whatever is left of a prompt is its beginning.
type cache struct {
	mu    sync.Mutex // guards all; a leaf
	most  int        // blocks
	nodes map[uint64]int32
	list  []node // list[0] is the ring's end: its newer is the oldest, its older the newest
	free  int32  // first of those that are not in use; 0 = none

	computed float64 // tokens, since ever: what lies unused ages by it
	keeping  keeping
	worth    worth
	misses   int       // in a row, of all that was to be there
	missed   time.Time // when the first of them was sent
	counts   Counts
	told     []told // what the other replicas are to hear, oldest first
	heard    heard  // and what was heard of them

	computing []computing // prompts that were sent, and have no first token yet
	faith     faith
	returned  int64 // when the engine came back; what was used last before is in doubt. 0 = nothing is
}

type node struct {
	hash         uint64
	newer, older int32
	answer       int32   // tokens of the answer to a prompt that ended here; 0 = none that comes back
	computed     float64 // as of its last use
	used         int64   // its time, in nanoseconds
}

func newCache(most int) *cache {
	return &cache{most: max(most, 1), nodes: map[uint64]int32{}, list: make([]node, 1)}
}

// depth is how many blocks of c are there. Whatever is left is a beginning, so it
// is found by halving.
func (h *cache) depth(c *Chain) int {
	if _, ok := h.nodes[c.blocks[0].hash]; !ok {
		return 0
	}
	low, high := 1, len(c.blocks)
	for low < high {
		middle := (low + high + 1) / 2
		if _, ok := h.nodes[c.blocks[middle-1].hash]; ok {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// maxStretches is how many stretches of a prompt are told apart.
const maxStretches = 6

// stretch is blocks of one prompt that were used last at the same time.
type stretch struct {
	from, to uint32 // bytes
	age      age
	doubted  bool // the engine was out of service since: it may have been started anew
}

// match is what a cache has of a prompt.
type match struct {
	stretches [maxStretches + 1]stretch // and one that others told of
	count     int
	known     int    // blocks, before the first that is in doubt
	soon      uint32 // bytes up to where it is there once a prompt that is computed is
	answer    int32  // tokens of the answer to what it ends with
}

// end is up to where the prompt is there.
func (m *match) end() uint32 {
	if m.count == 0 {
		return 0
	}
	return m.stretches[m.count-1].to
}

// justNow is up to which octave of idle time something was used just now: two seconds.
const justNow = 1

// shared is how many of the tokens somebody has sent there just now.
func (m *match) shared(c *Chain, tokens int) (n float64) {
	for i := range m.count {
		s := &m.stretches[i]
		if s.age.time > justNow {
			break
		}
		n += c.tokens(tokens, s.from, s.to)
	}
	return n
}

// match looks for the stretches of c. Those beyond the last that is told apart go
// with it, as old as they are.
func (h *cache) match(now time.Time, c *Chain) (m match) {
	if c.Empty() {
		return m
	}
	h.faith.expire(now)
	sent := h.depth(c)
	depth := h.prefilled(now, c, sent)
	if depth < sent {
		m.soon = c.blocks[sent-1].end
	}
	m.known = len(c.blocks)
	for from := 0; from < depth; {
		first := &h.list[h.nodes[c.blocks[from].hash]]
		to := depth
		if m.count < maxStretches-1 {
			to = h.sameUse(c, from, depth, first.used)
		} else {
			first = &h.list[h.nodes[c.blocks[depth-1].hash]]
		}
		s := &m.stretches[m.count]
		m.count++
		s.to = c.blocks[to-1].end
		if from > 0 {
			s.from = c.blocks[from-1].end
		}
		s.age = ageOf(h.computed-first.computed, now.Sub(time.Unix(0, first.used)))
		if s.doubted = first.used < h.returned; s.doubted {
			m.known = min(m.known, from)
		}
		from = to
	}
	if depth > 0 {
		m.answer = h.list[h.nodes[c.blocks[depth-1].hash]].answer
	}
	if to, n := h.heard.deepest(c, depth); to > 0 {
		s := stretch{age: ageOf(h.computed-n.computed, now.Sub(time.Unix(0, n.used))), doubted: n.used < h.returned}
		m.hear(c.blocks[to-1].end, n.answer, s)
	}
	return m
}

// hear adds what others told is there, s up to so many bytes, with the answer to it.
func (m *match) hear(end uint32, answer int32, s stretch) {
	if end > m.end() {
		s.from, s.to = m.end(), end
		m.stretches[m.count] = s
		m.count++
		m.answer = answer
		return
	}
	m.answer = max(m.answer, answer)
}

// sameUse is up to which block those from from on were used last at the same time.
func (h *cache) sameUse(c *Chain, from, to int, used int64) int {
	low, high := from+1, to
	for low < high {
		middle := (low + high + 1) / 2
		if h.list[h.nodes[c.blocks[middle-1].hash]].used == used {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// touch notes that all of c is used now, and that the tokens computed were not
// there.
func (h *cache) touch(now time.Time, c *Chain, computed float64) {
	h.computed += computed
	used := now.UnixNano()
	for i := len(c.blocks) - 1; i >= 0; i-- {
		hash := c.blocks[i].hash
		at, known := h.nodes[hash]
		if known {
			h.unlink(at)
		} else {
			at = h.add(hash)
		}
		n := &h.list[at]
		n.computed, n.used = h.computed, used
		h.link(at)
	}
	for len(h.nodes) > h.most {
		h.drop(h.list[0].newer)
	}
}

// add takes a node for hash.
func (h *cache) add(hash uint64) int32 {
	at := h.free
	if at != 0 {
		h.free = h.list[at].newer
	} else {
		at = int32(len(h.list))
		h.list = append(h.list, node{})
	}
	h.list[at] = node{hash: hash}
	h.nodes[hash] = at
	return at
}

// drop forgets a block.
func (h *cache) drop(at int32) {
	h.unlink(at)
	delete(h.nodes, h.list[at].hash)
	h.list[at] = node{newer: h.free}
	h.free = at
}

// link makes the node the newest.
func (h *cache) link(at int32) {
	newest := h.list[0].older
	h.list[at].older, h.list[at].newer = newest, 0
	h.list[newest].newer = at
	h.list[0].older = at
}

func (h *cache) unlink(at int32) {
	older, newer := h.list[at].older, h.list[at].newer
	h.list[older].newer, h.list[newer].older = newer, older
}

// forget drops what was used last before then. That it was gone says nothing of what
// the cache keeps from now on.
func (h *cache) forget(then int64) {
	h.faith.good, h.faith.bad = 0, 0
	for at := h.list[0].newer; at != 0 && h.list[at].used < then; at = h.list[0].newer {
		h.drop(at)
	}
	h.heard.forget(then)
}
