package sim

import (
	"hash/fnv"
	"io"
)

// blockCache is the prefix cache of an engine. It keeps the KV of whole blocks
// of tokens, by a hash that stands for the block and for all before it. A block
// that a running sequence uses stays; of the others the one that was used least
// recently makes room first, and of one sequence its end before its beginning.
//
// It is no kinder than real ones: nothing is kept of a block that is not full, the
// last token of a prompt is always computed, and of two sequences that begin at
// once with the same prompt both compute it.
type blockCache struct {
	size   int // tokens in a block; 0 = there is no cache
	blocks map[uint64]*block
	idle   list[*block] // used by nobody, least recently used first
	counts CacheTruth
}

// CacheTruth is what a prefix cache did. All are tokens.
type CacheTruth struct {
	Prompt  int `json:"prompt_tokens"`  // of the sequences that got a slot
	Cached  int `json:"cached_tokens"`  // and of these found in the cache
	Held    int `json:"held_tokens"`    // in the cache at the moment
	Evicted int `json:"evicted_tokens"` // that made room for others
}

// block is one that is in the cache.
type block struct {
	hash          uint64
	users         int
	links[*block] // in the idle list, while nobody uses it
}

// find returns how many of the blocks of s are there, and has s use them.
func (c *blockCache) find(s *Sequence) int {
	most := (s.prompt - 1) / c.size
	for len(s.held) < min(most, len(s.hashes)) {
		b := c.blocks[s.hashes[len(s.held)]]
		if b == nil {
			break
		}
		c.use(b)
		s.held = append(s.held, b)
	}
	return len(s.held)
}

// use notes one more user of b.
func (c *blockCache) use(b *block) {
	if b.users == 0 {
		c.idle.remove(b)
	}
	b.users++
}

// leave ends the use of all blocks of s.
func (c *blockCache) leave(s *Sequence) {
	for i := len(s.held) - 1; i >= 0; i-- { // the end is forgotten first
		b := s.held[i]
		if b.users--; b.users == 0 {
			c.idle.push(b)
		}
	}
	s.held = nil
}

// grow puts those blocks of s into the cache that are full, its first tokens
// being computed, and returns how many tokens went from s to the cache.
func (c *blockCache) grow(s *Sequence, tokens int) int {
	moved := 0
	for len(s.held) < min(tokens/c.size, len(s.hashes)) {
		hash := s.hashes[len(s.held)]
		b := c.blocks[hash]
		if b == nil {
			b = &block{hash: hash, users: 1}
			c.blocks[hash] = b
		} else { // somebody else computed it meanwhile, and one of both is enough
			c.use(b)
		}
		s.held = append(s.held, b)
		moved += c.size
	}
	return moved
}

// held is how many tokens are in the cache.
func (c *blockCache) held() int { return len(c.blocks) * c.size }

// evict makes so many tokens free, as far as nobody uses them.
func (c *blockCache) evict(tokens int) {
	for ; tokens > 0 && c.idle.first != nil; tokens -= c.size {
		b := c.idle.first
		c.idle.remove(b)
		delete(c.blocks, b.hash)
		c.counts.Evicted += c.size
	}
}

// blockHashes are the hashes of the whole blocks of so many bytes of text, each of
// its block and of all before it.
func blockHashes(text string, bytes int) []uint64 {
	list := make([]uint64, 0, len(text)/bytes)
	h := fnv.New64a()
	for ; len(text) >= bytes; text = text[bytes:] {
		_, _ = io.WriteString(h, text[:bytes])
		list = append(list, h.Sum64())
	}
	return list
}
