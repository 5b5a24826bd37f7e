package gateway

import (
	"encoding/binary"
	"hash/maphash"
)

// fingerprinted is how much of a body tells one request from another: the models
// of two requests, and mostly their prompts, differ before.
const fingerprinted = 64 << 10

// key is the same for a request that its client sends again, by which the
// router knows that it comes back as it was told. Only this process knows what
// it says.
func (x *exchange) key() uint64 {
	if !x.end.Decodes {
		return 0
	}
	body := x.body.bytes()
	var h maphash.Hash
	h.SetSeed(x.g.seed)
	h.WriteString(x.tenant.name)
	h.WriteString(x.path)
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(body)))
	h.Write(size[:])
	h.Write(body[:min(len(body), fingerprinted)])
	return max(h.Sum64(), 1)
}
