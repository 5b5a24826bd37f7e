package gateway

import (
	"net/http"
	"time"
)

// bodyRate is the slowest upload that is waited for, in bytes/s: a client
// that sends a byte now and then must not hold a buffer for ever.
const bodyRate = 4 << 10

// uploadDeadline bounds how long a client may take to send its body: each wait
// for more bytes, and all of it by bodyRate.
type uploadDeadline struct {
	control *http.ResponseController
	start   time.Time
	idle    time.Duration // longest wait for the next bytes
}

// next allows for the next read when got bytes are there.
func (d *uploadDeadline) next(got int64) {
	_ = d.control.SetReadDeadline(slowest(d.start, d.idle, got)) // a connection without deadlines has none
}

// end takes the deadline off: from here on the server itself reads ahead, to
// see the client hang up.
func (d *uploadDeadline) end() { _ = d.control.SetReadDeadline(time.Time{}) }
