package attack

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Requests that are too large in one way or another are refused, and cost no
// memory to speak of.
func tooLarge(v *victim) {
	var member bytes.Buffer // of a file of many, as zcat reads them
	z := gzip.NewWriter(&member)
	z.Write(make([]byte, 4<<20))
	z.Close()
	bomb := strings.Repeat(member.String(), 64)
	before := resident(v, v.gateway.PID())
	var all sync.WaitGroup
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"1 MB in a header":          {post("other", "X-Large: "+strings.Repeat("l", 1<<20)+"\r\n", hello), 431},
		"1 MB of a path":            {"GET /" + strings.Repeat("p", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"100,000 headers":           {post("other", strings.Repeat("X: y\r\n", 100_000), hello), 431},
		"5,000 headers":             {post("other", strings.Repeat("X: y\r\n", 5_000), hello), 200},
		"a body that claims 100 GB": {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\nContent-Length: 100000000000\r\n\r\n" + strings.Repeat(" ", 2<<20), 413},
		"a gzip bomb":               {post("other", "Content-Encoding: gzip\r\n", bomb), 413},
		"JSON 100,000 deep":         {post("other", "", `{"model":"other","messages":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"}"), 400},
		"JSON 100,000 objects deep": {post("other", "", strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)), 400},
		"1 MB of a model's name":    {post("other", "", `{"model":"`+strings.Repeat("m", 1<<19)+`","messages":[]}`), 404},
	} {
		for range 8 {
			all.Go(func() {
				if got := raw(v, v.addr, c.text); status(got) != c.want || len(got) > 4096 {
					v.Errorf("%s: %d bytes that begin with %.300q, want a short %d", name, len(got), got, c.want)
				}
			})
		}
	}
	for _, key := range []string{"other", "wrong"} { // an endless body
		all.Go(func() {
			c := v.dial()
			defer c.Close()
			sent := 0
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n", key)
			chunk := "10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n"
			_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
			for ; sent < 1<<30; sent += len(chunk) {
				if _, err := io.WriteString(c, chunk); err != nil {
					break
				}
			}
			v.Logf("an endless body (key %s) ended after %d MiB", key, sent>>20)
			if sent > 64<<20 {
				v.Errorf("%d MiB of an endless body were taken (key %s)", sent>>20, key)
			}
		})
	}
	all.Wait()
	grown := resident(v, v.gateway.PID()) - before
	v.Logf("memory grew by %d MiB", grown>>20)
	if grown > 256<<20 {
		v.Errorf("memory grew by %d MiB", grown>>20)
	}
}
