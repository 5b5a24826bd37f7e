package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// heard listens as systemd does and returns what it is told next.
func heard(t *testing.T, path string) func() string {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skip("no sockets of datagrams here: ", err)
	}
	t.Cleanup(func() { socket.Close() })
	return func() string {
		t.Helper()
		buf := make([]byte, 4096)
		_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
		n := must.Get(socket.Read(buf))(t)
		return string(buf[:n])
	}
}

func TestWhatSystemdIsTold(t *testing.T) {
	for name, path := range map[string]string{
		"a path":   filepath.Join(t.TempDir(), "notify"),
		"abstract": "@pacer-test-" + strconv.Itoa(os.Getpid()),
	} {
		t.Run(name, func(t *testing.T) {
			next := heard(t, path)
			env := map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())}
			s, err := supervisedBy(func(name string) string { return env[name] })
			must.Do(t, err)
			s.ready()
			if got := next(); got != "READY=1\nSTATUS=serving" {
				t.Errorf("ready: %q", got)
			}
			before := monotonic()
			s.reloading()
			usec, ok := strings.CutPrefix(next(), "RELOADING=1\nMONOTONIC_USEC=")
			if at, err := strconv.ParseInt(usec, 10, 64); !ok || err != nil || at < before.Microseconds() || at > monotonic().Microseconds() {
				t.Errorf("reloading at %q (%v), want the monotonic clock", usec, err)
			}
			s.stopping(37 * time.Second)
			if got := next(); got != "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=37000000" {
				t.Errorf("stopping: %q", got)
			}

			ctx, stop := context.WithCancel(t.Context())
			asked, ended := make(chan struct{}), make(chan error)
			go func() { ended <- s.watch(ctx, func() { asked <- struct{}{} }) }()
			for range 3 {
				<-asked // a program that hangs would not come this far
				if got := next(); got != "WATCHDOG=1" {
					t.Errorf("watchdog: %q", got)
				}
			}
			stop()
			for {
				select {
				case <-asked: // its tick may have come first
					continue
				case err = <-ended:
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

func TestWhoIsNotSupervised(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		wrong bool
	}{
		{map[string]string{"WATCHDOG_USEC": "1000"}, false},
		{map[string]string{"NOTIFY_SOCKET": "relative"}, true},
		{map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "nobody")}, true},
	} {
		s, err := supervisedBy(func(name string) string { return c.env[name] })
		if s != nil || (err != nil) != c.wrong {
			t.Errorf("%v: %v (%v), want none, an error: %v", c.env, s, err, c.wrong)
		}
		s.ready() // and nobody hears it
	}
	path := filepath.Join(t.TempDir(), "notify")
	heard(t, path)
	for name, env := range map[string]map[string]string{
		"no watchdog":           {},
		"another's watchdog":    {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
		"a watchdog of no time": {"WATCHDOG_USEC": "0"},
	} {
		env["NOTIFY_SOCKET"] = path
		s, err := supervisedBy(func(name string) string { return env[name] })
		if err != nil || s.every != 0 {
			t.Errorf("%s: a sign of life every %v (%v), want none", name, s.every, err)
		}
	}
}

// A supervisor that stands still, its socket full, does not hold up the end.
func TestASupervisorThatStandsStill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	heard(t, path) // and never reads
	s, err := supervisedBy(func(name string) string { return map[string]string{"NOTIFY_SOCKET": path}[name] })
	must.Do(t, err)
	defer s.socket.Close()
	_ = s.socket.SetWriteDeadline(time.Now().Add(time.Second))
	for err == nil { // until there is no room
		_, err = s.socket.Write([]byte("WATCHDOG=1"))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	_ = s.socket.SetWriteDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		s.stopping(time.Minute)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("what the supervisor does not take is waited for")
	}
}
