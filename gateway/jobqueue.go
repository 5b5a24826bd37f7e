package gateway

import (
	"context"
	"sync"
)

// maxJobs is how many jobs wait at most. One is an exchange to be counted: a few kilobytes and
// milliseconds each.
const maxJobs = 64

// jobQueue does, one at a time, what takes longer than a client that has its
// answer should wait for: background work of bounded length. The zero value takes nothing until run runs.
//
// Lock order: mu is a leaf.
type jobQueue struct {
	mu   sync.Mutex
	open bool
	jobs []func()
	wake chan struct{} // holds a token after jobs came
}

// do takes job, or reports that it cannot: too many wait, or nobody works.
func (q *jobQueue) do(job func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open || len(q.jobs) == maxJobs {
		return false
	}
	q.jobs = append(q.jobs, job)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// run works until ctx ends and what was taken is done.
func (q *jobQueue) run(ctx context.Context) {
	q.mu.Lock()
	q.open, q.wake = true, make(chan struct{}, 1)
	q.mu.Unlock()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-q.wake:
			q.work()
		}
	}
	q.mu.Lock()
	q.open = false
	q.mu.Unlock()
	q.work()
}

// work does the jobs that wait.
func (q *jobQueue) work() {
	for {
		q.mu.Lock()
		if len(q.jobs) == 0 {
			q.jobs = nil
			q.mu.Unlock()
			return
		}
		job := q.jobs[0]
		q.jobs = q.jobs[1:]
		q.mu.Unlock()
		job()
	}
}
