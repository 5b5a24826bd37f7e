package attack

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A reader of the log that stands still: a terminal that is frozen, a collector
// that hangs, a disk behind it that does not answer. Each refusal is a line, and
// there are more than the pipe and the queue hold.
func logStandsStill(v *victim) {
	v.gateway.HoldLog()
	for end := time.Now().Add(time.Minute); v.metric("pacer_log_dropped_total ") == 0; {
		if v.refusals(); v.Failed() || time.Now().After(end) {
			v.Fatal("no line is lost although none is read")
		}
	}
	v.refusals()
}

// A reader of the log that dies takes nobody with it.
func logDies(v *victim) {
	v.gateway.CloseLog()
	v.refusals()
	v.gateway.Signal(syscall.SIGPIPE)
	v.refusals()
	if v.metric("pacer_log_dropped_total ") == 0 {
		v.Error("no line is lost although none can be written")
	}
}

// refusals asks for 4,000 things that are not served, and all must be refused.
func (v *victim) refusals() {
	v.Helper()
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer c.CloseIdleConnections()
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for range 500 {
				resp, err := c.Get(v.gateway.Ready["data"] + "/nothing/" + strings.Repeat("x", 200))
				if err != nil {
					v.Errorf("a refusal: %v", err)
					return
				}
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusNotFound {
					v.Errorf("a refusal: status %d, %v", resp.StatusCode, err)
					return
				}
			}
		})
	}
	users.Wait()
}
