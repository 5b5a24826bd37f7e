package gateway

import (
	"context"
	"sync"
)

// maxAfterwards is how many exchanges wait to be counted: a few kilobytes and
// milliseconds each.
const maxAfterwards = 64

// afterwards does, one at a time, what takes longer than a client that has its
// answer should wait for. The zero value takes nothing until run runs.
//
// Lock order: mu is a leaf.
type afterwards struct {
	mu   sync.Mutex
	open bool
	jobs []func()
	wake chan struct{} // holds a token after jobs came
}

// do takes job, or reports that it cannot: too many wait, or nobody works.
func (a *afterwards) do(job func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open || len(a.jobs) == maxAfterwards {
		return false
	}
	a.jobs = append(a.jobs, job)
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return true
}

// run works until ctx ends and what was taken is done.
func (a *afterwards) run(ctx context.Context) {
	a.mu.Lock()
	a.open, a.wake = true, make(chan struct{}, 1)
	a.mu.Unlock()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-a.wake:
			a.work()
		}
	}
	a.mu.Lock()
	a.open = false
	a.mu.Unlock()
	a.work()
}

// work does the jobs that wait.
func (a *afterwards) work() {
	for {
		a.mu.Lock()
		if len(a.jobs) == 0 {
			a.jobs = nil
			a.mu.Unlock()
			return
		}
		job := a.jobs[0]
		a.jobs = a.jobs[1:]
		a.mu.Unlock()
		job()
	}
}
