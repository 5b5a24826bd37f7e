// Package proctest builds the program and runs it as a process, for tests that
// look at it from outside. Processes end with their test.
package proctest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// patience bounds everything that a process is waited for.
const patience = 3 * time.Minute

// Process is one running program. Its methods may be called from the goroutine
// of the test alone, but for Log.
type Process struct {
	// Ready has the fields of the ready line: data and admin of a gateway, url
	// and model of an engine.
	Ready map[string]string

	t     testing.TB
	cmd   *exec.Cmd
	log   io.ReadCloser    // our end of its stderr
	state *os.ProcessState // when ended is closed

	ended   chan struct{}
	readAll chan struct{} // closed at the end of log
	held    atomic.Bool   // nobody reads log

	reading sync.Mutex // held while lines are taken from log; HoldLog keeps it

	mu     sync.Mutex
	stderr bytes.Buffer
}

var readyField = regexp.MustCompile(`(\w+)=(\S+)|(http://\S+)`)

// Options says how a process differs from one that is run by hand. The zero
// value is such a one.
type Options struct {
	Env     []string // added to the environment
	Files   int      // descriptors it may have open, soft and hard; 0 = as many as the test may
	Program string   // the file that is run; "" = the program as it is here
}

// Start runs the program with env added to the environment, and waits for its
// ready line.
func Start(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	return Run(t, Options{Env: env}, args...)
}

// Run runs the program and waits for its ready line.
func Run(t testing.TB, o Options, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, Ready: map[string]string{}, ended: make(chan struct{}), readAll: make(chan struct{})}
	program := o.Program
	if program == "" {
		program = Binary(t)
	}
	p.cmd = exec.Command(program, args...)
	if o.Files > 0 { // only a shell can set limits between fork and exec
		p.cmd = exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, o.Files), program}, args...)...)
	}
	p.cmd.Env = append(os.Environ(), o.Env...)
	p.log = must.Get(p.cmd.StderrPipe())(t)
	must.Do(t, p.cmd.Start())
	lines := make(chan string, 1)
	go p.read(lines)
	go p.wait()
	t.Cleanup(func() { p.Stop(syscall.SIGKILL) })
	select {
	case line := <-lines:
		for _, m := range readyField.FindAllStringSubmatch(line, -1) {
			if m[3] != "" {
				p.Ready["url"] = m[3]
			} else {
				p.Ready[m[1]] = m[2]
			}
		}
	case <-p.ended:
		t.Fatalf("%v ended before it was ready:\n%s", args, p.Log())
	case <-time.After(patience):
		t.Fatalf("%v was not ready within %v:\n%s", args, patience, p.Log())
	}
	return p
}

// Gateway starts a gateway with a configuration.
func Gateway(t testing.TB, yaml string) *Process {
	t.Helper()
	return Start(t, nil, "serve", "-c", Write(t, yaml))
}

// Engine starts a simulated engine with flags added to its command line.
func Engine(t testing.TB, flags ...string) *Process {
	t.Helper()
	return Start(t, nil, append([]string{"sim", "--listen", "127.0.0.1:0"}, flags...)...)
}

func (p *Process) read(ready chan<- string) {
	defer p.log.Close()
	defer close(p.readAll)
	lines := bufio.NewScanner(p.log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.reading.Lock()
		p.mu.Lock()
		fmt.Fprintln(&p.stderr, lines.Text())
		p.mu.Unlock()
		p.reading.Unlock()
		if strings.Contains(lines.Text(), ": ready ") {
			ready <- lines.Text()
		}
	}
}

// wait notes how the process ended, and that its last line was read.
func (p *Process) wait() {
	p.state, _ = p.cmd.Process.Wait()
	if !p.held.Load() {
		<-p.readAll
	}
	close(p.ended)
}

// HoldLog leaves stderr unread, as a reader of the log that stands still does,
// until the function that it returns is called or the test ends.
func (p *Process) HoldLog() (readOn func()) {
	p.reading.Lock()
	p.held.Store(true)
	readOn = sync.OnceFunc(func() {
		p.held.Store(false)
		p.reading.Unlock()
	})
	p.t.Cleanup(readOn)
	return readOn
}

// CloseLog ends the reader of stderr, as one that dies does.
func (p *Process) CloseLog() { p.log.Close() }

// Log is what the process has written to stderr.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// Stop sends a signal and returns the exit code.
func (p *Process) Stop(s syscall.Signal) int {
	p.cmd.Process.Signal(s)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.cmd.Process.Kill()
		p.t.Errorf("did not end within %v of %v:\n%s", patience, s, p.Log())
		<-p.ended
	}
	return p.state.ExitCode()
}
