package gateway

import (
	"errors"
	"net/http"
	"os"
	"time"
)

// blockedWrite is how long a write may take before the client counts as
// one that blocks.
const blockedWrite = 20 * time.Millisecond

// delivery is how far the answer has come on its way to the client.
type delivery uint8

const (
	pending delivery = iota // nothing went out
	begun                   // its head did
	aborted                 // it must not end as if it were whole
)

// String returns pending, begun or aborted.
func (d delivery) String() string { return [...]string{"pending", "begun", "aborted"}[d] }

// begin notes that the head goes out, which it does once.
func (d *delivery) begin() {
	if *d != pending {
		panic("gateway: an answer that is " + d.String() + " cannot begin")
	}
	*d = begun
}

// abort notes that whoever reads the answer must see that it is none.
func (d *delivery) abort() {
	if *d == aborted {
		panic("gateway: an answer is aborted once")
	}
	*d = aborted
}

// downstream is the client's side of an exchange: the answer as it goes out. It
// belongs to the goroutine of the exchange.
//
// What each chunk touches comes first: while thousands of streams wait it is in no cache.
type downstream struct {
	blocked  bool // the client does not take what comes: nothing is evidence of the backend's speed
	delivery delivery
	tail     [4]byte // the last bytes of the body
	bytes    int64   // of it
	w        http.ResponseWriter
	control  http.ResponseController
	deadline writeDeadline
	status   int
}

// start is called once, before any other method. limit is how long the client
// may take for a write.
func (d *downstream) start(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	d.w, d.control = w, *http.NewResponseController(w)
	d.deadline.start(&d.control, r, limit)
}

// resume goes on with another way to the client, of which nothing was written yet.
func (d *downstream) resume(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	d.deadline = writeDeadline{}
	d.start(w, r, limit)
}

// begin sends the head, which came at now.
func (d *downstream) begin(now time.Time, status int) {
	d.delivery.begin()
	d.status = status
	d.deadline.begin(now)
	d.w.WriteHeader(status)
	d.deadline.end()
}

// refuse sends a whole answer that is an error.
func (d *downstream) refuse(a answer, r *http.Request) {
	d.delivery.begin()
	d.deadline.last(time.Now())
	d.bytes += int64(a.write(d.w, r))
}

// write sends p, which came at now, and flushes it. It returns when that was
// done.
func (d *downstream) write(now time.Time, p []byte) (wrote time.Time, err error) {
	if len(p) == 0 {
		return now, nil
	}
	err = d.writePieces(now, p)
	if err == nil {
		err = d.control.Flush()
	}
	d.deadline.end()
	wrote = time.Now()
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errClientSlow
		}
		return wrote, &goneError{err: err}
	}
	d.keepTail(p)
	d.took(now, wrote)
	return wrote, nil
}

// writePieces writes p, each relayBuffer of it with a time of its own: a document of
// megabytes may take a slow client longer than one write may.
func (d *downstream) writePieces(now time.Time, p []byte) error {
	for {
		d.deadline.begin(now)
		n, err := d.w.Write(p[:min(len(p), relayBuffer)])
		d.bytes += int64(n)
		if p = p[n:]; err != nil || len(p) == 0 {
			return err
		}
		now = time.Now()
	}
}

// passed notes that p is written, by somebody else.
func (d *downstream) passed(p []byte) {
	d.bytes += int64(len(p))
	d.keepTail(p)
}

// took notes that the client has taken by wrote what came at now.
func (d *downstream) took(now, wrote time.Time) {
	if wrote.Sub(now) > blockedWrite {
		d.blocked = true
	}
}

// waited notes that nothing was there to read from ready to now.
func (d *downstream) waited(ready, now time.Time) {
	if d.blocked && now.Sub(ready) >= waitedRead {
		d.blocked = false
	}
}

// keepTail remembers the last bytes that went out.
func (d *downstream) keepTail(p []byte) {
	if len(p) >= len(d.tail) {
		copy(d.tail[:], p[len(p)-len(d.tail):])
		return
	}
	copy(d.tail[:], d.tail[len(p):])
	copy(d.tail[len(d.tail)-len(p):], p)
}

// atEventEnd reports whether the last bytes were the blank line that ends an
// event, or nothing has gone out.
func (d *downstream) atEventEnd() bool {
	a, b, y, z := d.tail[0], d.tail[1], d.tail[2], d.tail[3]
	return z == 0 || y == '\n' && z == '\n' || y == '\r' && z == '\r' || a == '\r' && b == '\n' && y == '\r' && z == '\n'
}
