package gateway

import (
	"encoding/binary"
	"hash/maphash"
)

// fingerprinted is how much of a body tells one request from another: the models
// of two requests, and mostly their prompts, differ before.
const fingerprinted = 64 << 10

// fingerprint is the same for a request that its client sends again, by which the
// router knows that it comes back as it was told. Only the process with this seed
// knows what it says. 0 = the answer is not decoded, and nobody is told to come
// back.
func (r *request) fingerprint(seed maphash.Seed, tenant string) uint64 {
	if !r.end.Decodes {
		return 0
	}
	body := r.body.bytes()
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(tenant)
	h.WriteString(r.path)
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(body)))
	h.Write(size[:])
	h.Write(body[:min(len(body), fingerprinted)])
	return max(h.Sum64(), 1)
}
