package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// supervisor is systemd, or another that speaks its protocol: one datagram for
// each thing that it is told. Its methods may be called on nil, which nobody
// hears, and by several goroutines. A supervisor that does not listen is nobody's
// trouble: what it is told may be lost.
type supervisor struct {
	socket net.Conn
	every  time.Duration // between signs of life; 0 = it wants none
}

// supervisedBy returns who started the program, as the environment tells; nil =
// nobody who wants to know.
func supervisedBy(env func(string) string) (*supervisor, error) {
	path := env("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' && path[0] != '@' { // @ = abstract
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q, which is no path of a socket", path)
	}
	socket, err := net.Dial("unixgram", path)
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	s := &supervisor{socket: socket}
	usec, err := strconv.ParseInt(env("WATCHDOG_USEC"), 10, 64)
	if pid := env("WATCHDOG_PID"); err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.every = max(time.Duration(usec)*time.Microsecond/2, time.Millisecond)
	}
	return s, nil
}

// sayTimeout is how long a supervisor may take to take a word. One that stands
// still would keep the program from reloading and from ending.
const sayTimeout = 250 * time.Millisecond

func (s *supervisor) say(what string) {
	if s != nil {
		_ = s.socket.SetWriteDeadline(time.Now().Add(sayTimeout))
		_, _ = s.socket.Write([]byte(what))
	}
}

// ready says that the program serves, at its start or after a reload.
func (s *supervisor) ready() { s.say("READY=1\nSTATUS=serving") }

// reloading says that the configuration is read again; ready follows.
func (s *supervisor) reloading() {
	s.say(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic().Microseconds()))
}

// stopping says that the program ends, within limit.
func (s *supervisor) stopping(limit time.Duration) {
	s.say(fmt.Sprintf("STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=%d", limit.Microseconds()))
}

// watch gives a sign of life at half the time that the supervisor waits for one,
// until ctx ends. alive is called before each: where it hangs, no sign is given.
func (s *supervisor) watch(ctx context.Context, alive func()) error {
	if s.every == 0 {
		return nil
	}
	sign := func() {
		alive()
		s.say("WATCHDOG=1")
	}
	sign()
	return forEach(ctx, s.every, func(time.Time) { sign() })
}
