package bench

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

var instructions = flag.Bool("instructions", false, "count the instructions of a request and of a chunk, with Valgrind")

// Instructions are the figure that noise cannot move: how many a proxy's own code
// runs for one more request, and for one more chunk of a stream. Those of the kernel
// are not among them. Both are slopes, so starting costs nothing.
func TestInstructions(t *testing.T) {
	if !*instructions {
		t.Skip("counting takes minutes: go test -v -run TestInstructions ./e2e/bench -args -instructions")
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("valgrind is not installed, and nothing else counts instructions everywhere")
	}
	at := newPlace(t, wiring{}, usualTPS)
	pacer := proctest.Binary(t)
	if *against != "" {
		pacer = *against
	}
	control := must.Get(filepath.Abs(os.Args[0]))(t)
	f := func() *counted {
		return count(t, []string{roleVariable + "=control"}, control, at.url(), at.cert)
	}
	p := func() *counted {
		return count(t, nil, pacer, "serve", "-c", proctest.Write(t, at.configuration(at.fleet, "")))
	}
	for _, c := range []struct {
		name        string
		fewer, more int
		send        func(t *testing.T, addr string, n int)
	}{
		{"request", 200, 1200, func(t *testing.T, addr string, n int) {
			for range n {
				ask(t, addr, &load{})
			}
		}},
		{"chunk", 1000, 6000, func(t *testing.T, addr string, n int) { // each in a read of its own
			ask(t, addr, &load{chunks: n, every: 2 * time.Millisecond})
		}},
	} {
		slope := func(start func() *counted) float64 {
			of := func(n int) int64 {
				proxy := start()
				c.send(t, proxy.addr, n)
				return proxy.end(t)
			}
			return float64(of(c.more)-of(c.fewer)) / float64(c.more-c.fewer)
		}
		control, own := slope(f), slope(p)
		t.Logf("instructions for a %s: F %.0f, Pacer %.0f, %.2f of F", c.name, control, own, own/control)
	}
}

// counted is a process whose instructions are counted.
type counted struct {
	cmd  *exec.Cmd
	addr string
	log  string // what Valgrind writes
}

var (
	readyLine  = regexp.MustCompile(`ready (?:data=http://)?(\S+)`)
	countsLine = regexp.MustCompile(`I\s+refs:\s+([\d,]+)`)
)

// count starts program, and returns once it says where it listens.
func count(t *testing.T, env []string, program string, args ...string) *counted {
	t.Helper()
	c := &counted{log: filepath.Join(t.TempDir(), "valgrind.log")}
	c.cmd = exec.Command("valgrind", append([]string{
		"--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--log-file=" + c.log, program,
	}, args...)...)
	// A signal that Go sends itself ends other tools of Valgrind's.
	c.cmd.Env = append(os.Environ(), append(env, "GODEBUG=asyncpreemptoff=1")...)
	out, in, err := os.Pipe()
	must.Do(t, err)
	c.cmd.Stdout, c.cmd.Stderr = in, in
	must.Do(t, c.cmd.Start())
	in.Close()
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait(); out.Close() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			c.addr = m[1]
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return c
		}
	}
	t.Fatalf("%s never listened", program)
	return nil
}

// end ends the process and returns how many instructions it ran.
func (c *counted) end(t *testing.T) int64 {
	t.Helper()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.cmd.Wait() // F ends by the signal
	b := must.Get(os.ReadFile(c.log))(t)
	m := countsLine.FindSubmatch(b)
	if m == nil {
		t.Fatalf("Valgrind counted nothing: %s", b)
	}
	n := must.Get(strconv.ParseInt(strings.ReplaceAll(string(m[1]), ",", ""), 10, 64))(t)
	return n
}

// ask sends one request, and reads all of its answer.
func ask(t *testing.T, addr string, l *load) {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(newRequest(l, "")))))
	must.Do(t, err)
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", addr
	resp, err := http.DefaultClient.Do(r)
	must.Do(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if got := strings.Count(string(b), chunkHead); err != nil || resp.StatusCode != http.StatusOK || got != l.chunks {
		t.Fatal(fmt.Errorf("status %d, %d chunks of %d: %v", resp.StatusCode, got, l.chunks, err))
	}
}
