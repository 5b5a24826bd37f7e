package gateway

import (
	"math"
	"sync/atomic"
)

// budget bounds a sum over all requests: the bytes of bodies held. It is safe
// for concurrent use.
type budget struct {
	limit atomic.Int64
	used  atomic.Int64
}

// unbounded returns a budget without a limit.
func unbounded() *budget {
	b := &budget{}
	b.limit.Store(math.MaxInt64)
	return b
}

// take adds n if that stays within the limit.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit.Load() {
		b.used.Add(-n)
		return false
	}
	return true
}

// force adds n in any case: for what cannot be refused any more.
func (b *budget) force(n int64) { b.used.Add(n) }

// give takes n off again.
func (b *budget) give(n int64) { b.used.Add(-n) }

// budgets are those that one request draws on.
type budgets struct{ all, tenant *budget }

// take takes n bytes from both; the error says which of them is used up.
func (b budgets) take(n int64) error {
	if !b.tenant.take(n) {
		return errShareTaken
	}
	if !b.all.take(n) {
		b.tenant.give(n)
		return errOverloaded
	}
	return nil
}

// force adds n in any case: for what cannot be refused any more.
func (b budgets) force(n int64) {
	b.tenant.force(n)
	b.all.force(n)
}

// give takes n off again.
func (b budgets) give(n int64) { b.force(-n) }

// holding is what one request has taken of its budgets beside the body: bytes on
// the heap, until giveBack.
type holding struct {
	budgets budgets
	bytes   int64 // as the budgets count them
}

// take takes n bytes of the heap.
func (h *holding) take(n int64) error {
	err := h.budgets.take(onHeap * n)
	if err == nil {
		h.bytes += onHeap * n
	}
	return err
}

// adjust counts n bytes more, or less, which cannot be refused.
func (h *holding) adjust(n int64) {
	h.budgets.force(onHeap * n)
	h.bytes += onHeap * n
}

// giveBack gives back all that is held. Calls after the first do nothing.
func (h *holding) giveBack() {
	h.budgets.give(h.bytes)
	h.bytes = 0
}
