package gateway

import (
	"sync"
	"time"
)

const (
	// retryShare is how many further sends one request pays for: a fleet in
	// trouble is not sent more than a tenth on top.
	retryShare = 0.1

	// retryFloor is how many sends there are without any traffic that paid for
	// them, and retryRefill how many of those come back in a second: a lone
	// failure still moves on.
	retryFloor  = 10
	retryRefill = 1

	// retrySaved is how many sends quiet times may save up: as many streams may
	// lose their backend at once.
	retrySaved = 100
)

// retryBudget bounds by how much failing over multiplies the load. The zero
// value is full to its floor; it is safe for concurrent use.
type retryBudget struct {
	mu    sync.Mutex // guards what follows
	saved float64    // sends, less retryFloor: below 0 while the floor is in use
	last  time.Time
}

// earn adds what one request pays.
func (b *retryBudget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+retryShare, retrySaved-retryFloor)
}

// take takes one further send, if there is one.
func (b *retryBudget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := now.Sub(b.last); d > 0 {
		if b.saved < 0 {
			b.saved = min(0, b.saved+d.Seconds()*retryRefill)
		}
		b.last = now
	}
	if b.saved+retryFloor < 1 {
		return false
	}
	b.saved--
	return true
}

// takeSpare takes one further send if requests have paid for it: nothing of the
// floor, which is for those whose backend failed.
func (b *retryBudget) takeSpare() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saved < 1 {
		return false
	}
	b.saved--
	return true
}

// give puts a send back that was not used.
func (b *retryBudget) give() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved++
}
