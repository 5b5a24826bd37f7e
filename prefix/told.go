package prefix

import (
	"encoding/binary"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// Replicas tell each other which prompts were prefilled where: of each the hash of its last
// block, which stands for all of it, and how long the answer was. The next turn of a
// conversation has that block within, at the end of a message; so whichever replica it
// comes to knows where the rest of it is. What was sent is told for tellFor, so that an exchange
// that fails loses nothing; of a target that gets more than mostTold in that time, the newest.
// With it goes whether the cache was seen to keep prompts: who never sent one there could not
// count on what others did, would send none, and so would never know.
const (
	tellFor  = time.Second
	mostTold = 256

	openings = 2 // tools and system

	toldBytes = 12 // a hash, and the tokens of the answer

	// aboutCache stands for a hash where a replica says what it has seen of the cache itself:
	// that it keeps prompts, or that it may not. Who does not know of that takes it for a prompt,
	// and finds none by it.
	aboutCache = 0
	keeps      = 1
	doubts     = 2

	// heardShare is how many blocks a target has for each one that others told.
	heardShare = 8
)

// told is one prompt that was sent, or whose answer has come.
type told struct {
	hash   uint64
	answer int32
	at     time.Time
}

// heard is what others told of one cache: by the last block of a prompt. The oldest make
// room. The zero value has heard nothing.
type heard struct {
	nodes map[uint64]node
	order []uint64 // a ring once it is full
	at    int      // where the oldest is, then
}

// hear notes a prompt that another replica sent.
func (h *cache) hear(now time.Time, hash uint64, answer int32) {
	if n, known := h.heard.nodes[hash]; known {
		n.answer = max(n.answer, answer)
		h.heard.nodes[hash] = n
		return
	}
	o := &h.heard
	if o.nodes == nil {
		o.nodes = map[uint64]node{}
	}
	if most := max(h.most/heardShare, 1); len(o.order) < most {
		o.order = append(o.order, hash)
	} else {
		o.at %= len(o.order)
		delete(o.nodes, o.order[o.at])
		o.order[o.at] = hash
		o.at++
	}
	o.nodes[hash] = node{hash: hash, answer: answer, computed: h.computed, used: now.UnixNano()}
}

// deepest is up to which block of c others told of, beyond the first depth; 0 = none.
// Only the ends of messages are asked for: prompts end there.
func (o *heard) deepest(c *Chain, depth int) (to int, n node) {
	if len(o.nodes) == 0 {
		return 0, node{}
	}
	for i := len(c.parts) - 1; i >= 0 && int(c.parts[i]) >= depth && c.parts[i] > 0; i-- {
		if n, ok := o.nodes[c.blocks[c.parts[i]-1].hash]; ok {
			return int(c.parts[i]), n
		}
	}
	return 0, node{}
}

// forget drops what was told before then.
func (o *heard) forget(then int64) {
	for hash, n := range o.nodes {
		if n.used < then {
			delete(o.nodes, hash)
		}
	}
	if len(o.nodes) == 0 {
		*o = heard{}
	}
}

// tell notes for the others that a prompt is there, or how long its answer was.
func (h *cache) tell(now time.Time, hash uint64, answer int32) {
	if len(h.told) >= mostTold {
		h.told = append(h.told[:0], h.told[len(h.told)-mostTold+1:]...)
	}
	h.told = append(h.told, told{hash, answer, now})
}

// says is what this replica has seen of the cache, for those that have seen nothing there.
// One of these has nothing to say: what a third one saw holds, whoever tells last.
func (h *cache) says() (word int32, ok bool) {
	_, least, known := h.worth.share()
	switch {
	case !known && h.faith.seen == 0:
		return 0, false
	case known && least >= trusted || !known && h.faith.hopes():
		return keeps, true
	}
	return doubts, true
}

func appendTold(text []byte, hash uint64, word int32) []byte {
	text = binary.LittleEndian.AppendUint64(text, hash)
	return binary.LittleEndian.AppendUint32(text, uint32(word))
}

// openings are the ends of the first parts of a prompt beyond the blocks that were sent
// before, and beyond what is here: others begin with the same tools and the same system
// prompt, and go on otherwise.
func (h *cache) openings(c *Chain, sent int, here uint32) (ends [openings]uint64) {
	for i, n := range c.parts[:min(len(c.parts), openings)] {
		if int(n) > sent && int(n) < len(c.blocks) && c.blocks[n-1].end > here {
			ends[i] = c.blocks[n-1].hash
		}
	}
	return ends
}

// tell tells of v once, when its prompt is prefilled: one that is given up before brings
// nothing. The cache is locked.
func (v *Visit) tell(now time.Time) {
	if v.told {
		return
	}
	v.told = true
	for _, hash := range v.news {
		if hash != 0 {
			v.cache.tell(now, hash, 0)
		}
	}
	v.cache.tell(now, v.last, 0)
}

// Tell is what the other replicas are to hear of what was sent of late, by target, in a
// form for Hear. Who is alone need not ask.
func (x *Index) Tell(now time.Time) map[router.Target][]byte {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := map[router.Target][]byte{}
	for t, h := range x.caches {
		h.mu.Lock()
		var text []byte
		for _, s := range h.told {
			if now.Sub(s.at) <= tellFor {
				text = appendTold(text, s.hash, s.answer)
			}
		}
		if text == nil {
			h.told = h.told[:0]
		} else {
			if word, ok := h.says(); ok {
				text = appendTold(text, aboutCache, word)
			}
			all[t] = text
		}
		h.mu.Unlock()
	}
	return all
}

// Hear takes what another replica told of a target, at now. Twice is as once. What is of
// no target, or is cut short, is left out.
func (x *Index) Hear(now time.Time, t router.Target, text []byte) {
	h := x.cache(t)
	if t.Separate = true; h == nil { // a report does not say so
		h = x.cache(t)
	}
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := 0; len(text) >= toldBytes && n <= mostTold; n++ {
		switch hash, word := binary.LittleEndian.Uint64(text), int32(min(binary.LittleEndian.Uint32(text[8:]), 1<<30)); hash {
		case aboutCache:
			h.faith.hear(now, word == keeps)
		default:
			h.hear(now, hash, word)
		}
		text = text[toldBytes:]
	}
}
