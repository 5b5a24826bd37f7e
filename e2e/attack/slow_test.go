package attack

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// 2,000 connections that say nothing, and 200 that send the head, or the body,
// of a request a byte at a time.
func idleAndSlow(v *victim) {
	for range 2000 {
		v.dial()
	}
	begun := time.Now()
	var slow sync.WaitGroup
	ends := make(chan string, 200)
	for i := range 200 {
		c := v.dial()
		text := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("s", 4096)
		if i%2 == 1 {
			io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\nContent-Length: 100000\r\n\r\n")
			text = strings.Repeat(" ", 4096)
		}
		slow.Go(func() { // until it is closed
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for j := 0; j < len(text); j++ {
				if _, err := io.WriteString(c, text[j:j+1]); err != nil {
					return
				}
				<-tick.C
			}
		})
		slow.Go(func() {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(c)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				v.Error("a slow client is still connected after a minute")
			}
			ends <- string(answer)
			c.Close()
		})
	}
	slow.Wait()
	close(ends)
	told := 0
	for answer := range ends {
		if strings.Contains(answer, "408 Request Timeout") {
			told++
		}
	}
	v.Logf("2,000 idle and 200 slow connections: the last slow one was closed after %v; %d were told 408", time.Since(begun).Round(time.Second), told)
	if told < 90 {
		v.Errorf("%d of 100 slow bodies were answered 408", told)
	}
	proctest.Until(v, "the idle connections are gone", func() bool { return descriptors(v, v.gateway.PID()) < 200 })
}
