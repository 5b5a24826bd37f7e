package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// Options bounds a Queue. The zero value means the defaults.
type Options struct {
	// Bytes and Lines bound what waits; as much again may be with the writer.
	// Default: 1 MiB and 4096.
	Bytes, Lines int

	// Lost returns the line which says that so many lines were lost. nil = it is
	// not said.
	Lost func(lines uint64) []byte
}

const (
	defaultBytes = 1 << 20
	defaultLines = 4096

	// reserve is the part of the queue that the lines of requests leave to
	// others: one in reserve.
	reserve = 4
)

// Queue is an io.Writer that never waits and never fails. It is safe for
// concurrent use.
type Queue struct {
	out     io.Writer
	options Options
	ended   chan struct{} // closed when Run returns

	mu      sync.Mutex // guards what follows; a leaf
	some    sync.Cond  // something to do for Run
	pending []byte     // lines that wait
	lines   int        // in pending
	gap     int        // lines dropped since Run last took
	dropped uint64     // lines, in all
	closed  bool
}

// New returns a queue before out. It holds what comes until Run runs.
func New(out io.Writer, o Options) *Queue {
	if o.Bytes <= 0 {
		o.Bytes = defaultBytes
	}
	if o.Lines <= 0 {
		o.Lines = defaultLines
	}
	q := &Queue{out: out, options: o, ended: make(chan struct{})}
	q.some.L = &q.mu
	return q
}

// Write takes lines that may have the whole queue. It implements io.Writer.
func (q *Queue) Write(lines []byte) (int, error) { return q.put(lines, 0) }

// Requests returns the writer for the lines of requests, which are lost first.
func (q *Queue) Requests() io.Writer { return requests{q} }

type requests struct{ *Queue }

// Write implements io.Writer.
func (r requests) Write(lines []byte) (int, error) { return r.put(lines, 1) }

// put queues lines, or drops them if that would leave less than kept parts of
// the queue.
func (q *Queue) put(lines []byte, kept int) (int, error) {
	n := bytes.Count(lines, []byte{'\n'})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.pending)+len(lines) > q.options.Bytes-kept*q.options.Bytes/reserve || q.lines+n > q.options.Lines-kept*q.options.Lines/reserve {
		q.gap += n
		q.dropped += uint64(n)
		return len(lines), nil
	}
	q.pending = append(q.pending, lines...)
	q.lines += n
	q.some.Signal()
	return len(lines), nil
}

// Dropped is how many lines were lost so far: for want of room, or because they
// could not be written. On nil it is 0.
func (q *Queue) Dropped() uint64 {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Run writes what is queued, until Close is called and all is written. An out
// that fails loses what it was given, and is tried again with the next lines.
func (q *Queue) Run() {
	defer close(q.ended)
	var batch []byte
	var unsaid uint64 // lines lost
	torn := false     // the last line that went out has no end
	for {
		var gap int
		var ok bool
		if batch, gap, ok = q.take(batch); !ok {
			return
		}
		unsaid += uint64(gap)
		n, err := 0, error(nil)
		if torn {
			_, err = q.out.Write([]byte{'\n'})
			torn = err != nil
		}
		if err == nil {
			n, err = q.out.Write(batch)
		}
		if n > 0 {
			torn = batch[n-1] != '\n'
		}
		if err != nil {
			unsaid += q.lose(batch[n:])
			continue
		}
		if unsaid > 0 && q.options.Lost != nil {
			if _, err := q.out.Write(q.options.Lost(unsaid)); err != nil {
				continue // said behind the next lines
			}
		}
		unsaid = 0
	}
}

// take waits for lines and returns them with how many were dropped behind them;
// false = there will be none. spare is memory to queue in next.
func (q *Queue) take(spare []byte) (batch []byte, gap int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pending) == 0 {
		if q.closed {
			return nil, 0, false
		}
		q.some.Wait()
	}
	batch, gap = q.pending, q.gap
	q.pending, q.lines, q.gap = spare[:0], 0, 0
	return batch, gap, true
}

// lose counts lines that could not be written, the broken one among them.
func (q *Queue) lose(lines []byte) uint64 {
	n := uint64(bytes.Count(lines, []byte{'\n'}))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped += n
	return n
}

// Close lets nothing in any more and waits until Run has written the rest, for
// limit at most: a write that hangs does not end before its reader, or the
// process.
func (q *Queue) Close(limit time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.some.Signal()
	q.mu.Unlock()
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case <-q.ended:
	case <-over.C:
	}
}
