package prefix

import (
	"encoding/binary"
	"math/bits"
)

const (
	// blockBytes is how much of a part is one block: some 64 tokens. Engines cache
	// blocks of 16 to 128.
	blockBytes = 256

	// maxBlocks bounds a chain. What lies behind it counts as cached nowhere: 2 MiB
	// of text are some 500,000 tokens.
	maxBlocks = 8192
)

// Chain is what of a prompt can be cached: the hashes of its blocks, each of which
// stands for all before it too. Parts end where a message ends, so that a prompt
// which goes on from another one has all of its blocks. The zero value is empty. It
// keeps its memory when it is used again.
type Chain struct {
	blocks []block
	parts  []int32 // how many blocks there are up to the end of each part
	last   uint64  // hash of the newest block, or of the salt
	bytes  int     // of all parts, also of those beyond maxBlocks
}

type block struct {
	hash uint64
	end  uint32 // bytes up to its end, from the beginning of the prompt
}

// Begin empties c. Prompts of another salt have no block in common.
func (c *Chain) Begin(salt ...string) {
	c.blocks, c.parts, c.bytes = c.blocks[:0], c.parts[:0], 0
	c.last = mix(0, 0)
	for _, s := range salt {
		c.last = hash(c.last, []byte(s))
	}
}

// Add appends a part of the prompt: a message, or what stands before them all.
func (c *Chain) Add(part []byte) {
	for len(part) > 0 && len(c.blocks) < maxBlocks {
		n := min(blockBytes, len(part))
		c.Block(hash(c.last, part[:n]), n)
		part = part[n:]
	}
	c.bytes += len(part)
	c.End()
}

// End says that a message ends here, for who knows its blocks otherwise.
func (c *Chain) End() { c.parts = append(c.parts, int32(len(c.blocks))) }

// Block appends one block by its hash, for who knows it otherwise.
func (c *Chain) Block(hash uint64, bytes int) {
	c.bytes += bytes
	if len(c.blocks) < maxBlocks {
		c.last = hash
		c.blocks = append(c.blocks, block{hash: hash, end: uint32(min(c.bytes, 1<<31))})
	}
}

// Empty reports whether nothing of the prompt can be cached.
func (c *Chain) Empty() bool { return len(c.blocks) == 0 }

// tokens is how many of so many tokens the bytes from one offset to another are.
func (c *Chain) tokens(tokens int, from, to uint32) float64 {
	return float64(to-from) / float64(c.bytes) * float64(tokens)
}

// Odd numbers with as many ones as zeros, drawn at random.
const (
	oddA = 0x8f3ca95b1d6e4d27
	oddB = 0x6a09c5d3b47e1e8b
)

// mix multiplies a and b, and folds the product.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^oddA, b^oddB)
	return hi ^ lo
}

// hash is that of p behind what before stands for. It is the same in every
// process, so that replicas can tell each other.
func hash(before uint64, p []byte) uint64 {
	h := mix(before, uint64(len(p)))
	if len(p) >= 32 { // two at a time, so that one need not wait for the other
		g := h
		for ; len(p) >= 32; p = p[32:] {
			h = mix(h^binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:]))
			g = mix(g^binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:]))
		}
		h = mix(h, g)
	}
	for ; len(p) >= 16; p = p[16:] {
		h = mix(h^binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:]))
	}
	if len(p) >= 8 {
		h = mix(h, binary.LittleEndian.Uint64(p))
		p = p[8:]
	}
	var rest uint64
	for i, b := range p {
		rest |= uint64(b) << (8 * i)
	}
	return mix(h, rest)
}
