package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// An answer begins once, and one that is broken off stays so.
func TestADeliveryGoesOneWay(t *testing.T) {
	begin, abort := (*delivery).begin, (*delivery).abort
	for _, c := range []struct {
		name  string
		steps []func(*delivery)
		want  delivery
		bad   bool // the last step is impossible
	}{
		{"begun", []func(*delivery){begin}, begun, false},
		{"broken off", []func(*delivery){begin, abort}, aborted, false},
		{"nobody was there", []func(*delivery){abort}, aborted, false},
		{"begun twice", []func(*delivery){begin, begin}, begun, true},
		{"begun behind its end", []func(*delivery){abort, begin}, aborted, true},
		{"aborted twice", []func(*delivery){abort, abort}, aborted, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d delivery
			for i, step := range c.steps {
				wants := c.bad && i == len(c.steps)-1
				if got := panics(func() { step(&d) }); got != wants {
					t.Errorf("step %d panics: %v, want %v", i, got, wants)
				}
			}
			if d != c.want {
				t.Errorf("it is %v, want %v", d, c.want)
			}
		})
	}
}

func panics(f func()) (is bool) {
	defer func() { is = recover() != nil }()
	f()
	return false
}

// An error event must begin behind a blank line, whatever pieces went out.
func TestTheEndOfAnEventIsSeenInPieces(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		want   bool
	}{
		{nil, true},
		{[]string{"data: x\n\n"}, true},
		{[]string{"data: x\r\n\r\n"}, true},
		{[]string{"data: x\r\r"}, true},
		{[]string{"data: x\n", "\n"}, true},
		{[]string{"data: x", "\r", "\n", "\r", "\n"}, true},
		{[]string{"data: x\n"}, false},
		{[]string{"data: x\r\n"}, false},
		{[]string{"data: x\n\n", ":"}, false},
		{[]string{"d"}, false},
	} {
		d := downstream{}
		d.start(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), time.Minute)
		bytes := 0
		for _, p := range c.pieces {
			bytes += len(p)
			must.Get(d.write(time.Now(), []byte(p)))(t)
		}
		if got := d.atEventEnd(); got != c.want || d.bytes != int64(bytes) {
			t.Errorf("%q: at the end of an event %v, %d bytes; want %v, %d", c.pieces, got, d.bytes, c.want, bytes)
		}
	}
}

// slowClient takes pause for each write, which then fails with err.
type slowClient struct {
	discardWriter
	pause time.Duration
	err   error
}

func (c *slowClient) Write(p []byte) (int, error) {
	<-time.After(c.pause)
	if c.err != nil {
		return 0, c.err
	}
	return c.discardWriter.Write(p)
}

func (c *slowClient) SetWriteDeadline(time.Time) error { return nil }

func TestAClientThatBlocksOrLeavesIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name    string
		pause   time.Duration
		err     error
		blocked bool
		want    error
	}{
		{"at once", 0, nil, false, nil},
		{"on the limit", blockedWrite, nil, false, nil},
		{"beyond it", blockedWrite + 1, nil, true, nil},
		{"it takes nothing", time.Minute, os.ErrDeadlineExceeded, false, errClientSlow},
		{"it left", 0, errGarbage, false, errGarbage},
	} {
		bubble(t, c.name, func(t *testing.T) {
			d := downstream{}
			client := &slowClient{discardWriter: discardWriter{header: http.Header{}}, pause: c.pause, err: c.err}
			d.start(client, httptest.NewRequest(http.MethodPost, "/", nil), time.Minute)
			now := time.Now()
			wrote, err := d.write(now, []byte("x"))
			if !errors.Is(err, c.want) || c.want != nil && !errors.As(err, new(*goneError)) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if d.blocked != c.blocked || wrote.Sub(now) != c.pause {
				t.Errorf("blocked %v after %v, want %v after %v", d.blocked, wrote.Sub(now), c.blocked, c.pause)
			}
		})
	}
}
