package gateway

import (
	"math"
	"sync"
)

const (
	// latePercentile is which share of first bytes is not late.
	latePercentile = 0.95

	// lateStep is by how much the estimate moves, in logarithms: some twenty
	// first bytes in a hundred that are late double it.
	lateStep = 0.1

	// mostLate bounds the estimate, in times of what was predicted.
	mostLate = 100.0
)

// firstByteQuantile follows how many times the predicted time a backend's first
// bytes take: their 95th percentile, at least lateFactor. A step of stochastic
// approximation for each goes up by 95 when it is above and down by 5 when it is
// below, so that the two balance at the percentile. A first byte that was not
// waited for to the end counts as above, so no more than one request in twenty
// waits for too long in the long run, whatever the predictions are worth.
//
// The zero value starts at lateFactor. It is safe for concurrent use.
type firstByteQuantile struct {
	mu  sync.Mutex
	log float64 // ln(estimate / lateFactor)
}

// factor is the estimate.
func (q *firstByteQuantile) factor() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return lateFactor * math.Exp(q.log)
}

// note takes a first byte that took ratio times the predicted time; +Inf = it
// had not come when it was given up.
func (q *firstByteQuantile) note(ratio float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	step := -lateStep * (1 - latePercentile)
	if math.Log(ratio/lateFactor) > q.log {
		step = lateStep * latePercentile
	}
	q.log = min(max(q.log+step, 0), math.Log(mostLate/lateFactor))
}
