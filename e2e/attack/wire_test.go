package attack

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// hello is a small request of the tenant "other".
const hello = `{"model":"other","max_tokens":2,"messages":[{"role":"user","content":"hello"}]}`

// post is a request in HTTP/1.1, whose connection is closed behind it. headers
// end in CRLF each.
func post(key, headers, body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n%s", key, len(body), headers, body)
}

// raw sends text and returns all that comes back until the connection is closed
// or nothing has come for two seconds.
func raw(t testing.TB, addr, text string) string {
	t.Helper()
	c := must.Get(net.Dial("tcp", addr))(t)
	defer c.Close()
	go io.WriteString(c, text)
	var all bytes.Buffer
	buf := make([]byte, 32<<10)
	for {
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := c.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
		if all.Len() > 1<<20 {
			t.Fatal("more than 1 MiB came back")
		}
	}
}

// status is the first status of an answer; 0 = none.
func status(answer string) (n int) {
	fmt.Sscanf(answer, "HTTP/1.1 %d", &n)
	return n
}

// descriptors is how many files a process has open.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	return len(list)
}

// resident is how much memory a process has, in bytes.
func resident(t testing.TB, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	var size, pages int64
	fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize())
}

// peak is the most memory that a process has had so far, in bytes.
func peak(t testing.TB, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int64
	fmt.Sscan(rest, &kib)
	return kib << 10
}
