// Package redistest starts a real redis-server for a test, on a socket of its
// own, and ends it with the test. The server can be killed, started again
// empty, and frozen. Nothing is shared between tests, and nothing listens on a
// network.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
)

// startTimeout bounds the start of a server, which takes some milliseconds.
const startTimeout = 20 * time.Second

// Server is one redis-server process. Its methods belong to the goroutine of
// the test.
type Server struct {
	// Addr is where clients find it: the path of a unix socket, which stays
	// the same over Restart.
	Addr string

	t    testing.TB
	o    Options
	dir  string
	args []string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  []string      // last lines, read after done
}

// Options says how a server differs from a plain one. The zero value is a plain one.
type Options struct {
	Program string   // the file that is run; "" = redis-server
	Within  []string // the command that runs it, as of another network namespace
}

// Start starts an empty server with args added to its command line. It skips
// the test when redis-server is not installed, and fails it when CI is set.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return Run(t, Options{}, args...)
}

// Run is Start of another server, or elsewhere.
func Run(t testing.TB, o Options, args ...string) *Server {
	t.Helper()
	if o.Program != "" {
		return start(t, o, args)
	}
	o.Program = "redis-server"
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server not installed: run make deps")
		}
		t.Skip("redis-server not installed: run make deps")
	}
	return start(t, o, args)
}

func start(t testing.TB, o Options, args []string) *Server {
	t.Helper()
	// A socket's path is short by law (108 bytes), which t.TempDir is not.
	dir := must.Get(os.MkdirTemp("", "redis"))(t)
	s := &Server{t: t, o: o, dir: dir, Addr: filepath.Join(dir, "s"), args: args}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	s.Restart()
	return s
}

// Restart starts the server again, empty unless its arguments make it keep its
// data. It kills it first if it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	args := append(append(slices.Clone(s.o.Within), s.o.Program), []string{
		"--port", "0", "--unixsocket", s.Addr, "--save", "", "--appendonly", "no", "--dir", s.dir, "--daemonize", "no",
	}...)
	args = append(args, s.args...)
	s.cmd = exec.Command(args[0], args[1:]...)
	out := must.Get(s.cmd.StdoutPipe())(s.t)
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("redis-server: %v", err)
	}
	ready := make(chan struct{})
	s.done, s.log = make(chan struct{}), nil
	go func(cmd *exec.Cmd, done chan struct{}) {
		defer close(done)
		told := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.log = append(s.log, lines.Text())
			if len(s.log) > 50 {
				s.log = s.log[1:]
			}
			if !told && strings.Contains(lines.Text(), "eady to accept connections") {
				told = true
				close(ready)
			}
		}
		_ = cmd.Wait() // killed, as it should be; an early end is told below
	}(s.cmd, s.done)
	select {
	case <-ready:
	case <-s.done:
		s.t.Fatalf("redis-server ended at once:\n%s", strings.Join(s.log, "\n"))
	case <-time.After(startTimeout):
		s.t.Fatalf("redis-server was not ready within %v", startTimeout)
	}
	s.ping()
}

// Kill ends the process at once, as a crash does: nothing is saved and no
// client is told. Killing twice is no error.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.Thaw() // a frozen process dies too, but its socket would answer until then
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// Client returns a client of s that is patient, and asks again a millisecond after a
// failure. It is closed with the test.
func (s *Server) Client(t testing.TB) *redisconn.Client {
	t.Helper()
	c := must.Get(redisconn.Open(redisconn.Options{
		Store:      config.Store{Addrs: []string{s.Addr}, Prefix: "pacer"},
		MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, IOTimeout: 20 * time.Second,
	}))(t)
	t.Cleanup(c.Close)
	return c
}

// Freeze stops the process without closing anything: connections open, and no
// answer comes.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	if err := s.cmd.Process.Signal(sig); err != nil && s.t.Context().Err() == nil {
		s.t.Errorf("redis-server: %v: %v", sig, err)
	}
}

// Do sends one command past the code under test and returns the reply, nil for
// what the server does not have.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, DisableIdentity: true})
	defer c.Close()
	reply, err := c.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.t.Fatalf("redis-server: %s: %v", fmt.Sprint(args...), err)
	}
	return reply
}

// ping makes sure that the server that said it was ready also answers; a
// server that wants a password has answered too.
func (s *Server) ping() {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, DisableIdentity: true})
	defer c.Close()
	err := c.Ping(context.Background()).Err()
	if err != nil && !redis.HasErrorPrefix(err, "NOAUTH") {
		s.t.Fatalf("redis-server answers PING with: %v", err)
	}
}

// FreePort is a port of the loopback address that nobody listens on, and that no
// other test of this process was given. It lies below those that the kernel gives to
// connections: else a test that listens later, or again after a kill, may find it
// taken by a connection of somebody else.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if _, given := ports.LoadOrStore(port, true); given {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("a hundred ports of the loopback address were taken")
	return ""
}

// ports are those that FreePort has given.
var ports sync.Map
