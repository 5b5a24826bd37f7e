package realtime

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Frames that a server may send, and those that nobody may.
func TestFramer(t *testing.T) {
	long := append([]byte{0x82, 126, 0x03, 0xE9}, make([]byte, 1001)...) // 1001 bytes
	for name, x := range map[string]struct {
		masked bool
		text   []byte
		pass   int // -1 = all
		err    error
	}{
		"a text":                           {false, []byte{0x81, 2, 'h', 'i'}, -1, nil},
		"fragments around a ping":          {false, []byte{0x01, 1, 'h', 0x89, 0, 0x80, 1, 'i'}, -1, nil},
		"of a client":                      {true, []byte{0x81, 0x82, 1, 2, 3, 4, 'h', 'i'}, -1, nil},
		"half a head":                      {false, []byte{0x81, 2, 'h', 'i', 0x81}, 4, nil},
		"half a length":                    {false, []byte{0x81, 126, 0}, 0, nil},
		"half a mask":                      {true, []byte{0x81, 0x82, 1, 2}, 0, nil},
		"a mask of a server":               {false, []byte{0x81, 0x82, 1, 2, 3, 4, 'h', 'i'}, 0, errFraming},
		"no mask of a client":              {true, []byte{0x81, 2, 'h', 'i'}, 0, errFraming},
		"compressed":                       {false, []byte{0xC1, 2, 'h', 'i'}, 0, errFraming},
		"an opcode that is none":           {false, []byte{0x83, 0}, 0, errFraming},
		"a control frame that is none":     {false, []byte{0x8B, 0}, 0, errFraming},
		"a control frame in parts":         {false, []byte{0x09, 0}, 0, errFraming},
		"a control frame that is too long": {false, []byte{0x89, 126, 0, 126}, 0, errFraming},
		"a rest of nothing":                {false, []byte{0x81, 1, 'h', 0x80, 0}, 3, errFraming},
		"a message within another":         {false, []byte{0x01, 1, 'h', 0x81, 0}, 3, errFraming},
		"a length beyond all":              {false, []byte{0x82, 127, 0xFF, 0, 0, 0, 0, 0, 0, 0}, 0, errFraming},
		"too long":                         {false, long, 0, errTooLong},
		"too long in parts":                {false, append(append([]byte{0x02, 126, 2, 88}, make([]byte, 600)...), 0x80, 126, 1, 145), 604, errTooLong},
	} {
		f := framer{masked: x.masked, most: 1000}
		pass, err := f.take(x.text)
		if x.pass < 0 {
			x.pass = len(x.text)
		}
		if pass != x.pass || !errors.Is(err, x.err) {
			t.Errorf("%s: %d bytes of %d may be passed on, %v; want %d, %v", name, pass, len(x.text), err, x.pass, x.err)
		}
	}
}

// FuzzFramer gives the framer the same bytes at once and in pieces: it lets the same
// of them pass, and shows the same messages.
func FuzzFramer(f *testing.F) {
	f.Add([]byte{0x01, 1, 'h', 0x89, 0, 0x80, 1, 'i', 0x88, 2, 3, 0xE8}, 3)
	f.Add([]byte{0x81, 126, 0, 2, 'h', 'i', 0xC1}, 1)
	const maxHead = 14 // bytes of the longest head of a frame
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		read := func(step int) (passed int, shown string, err error) {
			var all bytes.Buffer
			fr := framer{most: 500, see: func(part []byte, whole bool) {
				all.Write(part)
				if whole {
					all.WriteByte('|')
				}
			}}
			var kept []byte
			for rest := text; len(rest) > 0 && err == nil; {
				n := min(max(step, 1), len(rest))
				kept = append(kept, rest[:n]...)
				rest = rest[n:]
				var pass int
				pass, err = fr.take(kept)
				passed += pass
				if kept = kept[pass:]; len(kept) >= maxHead && err == nil {
					t.Fatalf("%d bytes are held back", len(kept))
				}
			}
			return passed, all.String(), err
		}
		wantPass, want, wantErr := read(len(text))
		if pass, got, err := read(step % 64); pass != wantPass || got != want || !errors.Is(err, wantErr) {
			t.Errorf("in pieces of %d: %d bytes %q %v; at once %d bytes %q %v", step%64, pass, got, err, wantPass, want, wantErr)
		}
	})
}

// relayed runs a Relay between two pipes, and returns their far ends.
func relayed(ctx context.Context, o Options) (client, backend net.Conn, done <-chan error) {
	client, nearClient := net.Pipe()
	backend, nearBackend := net.Pipe()
	over := make(chan error, 1)
	go func() { over <- Relay(ctx, nearClient, nearBackend, o) }()
	return client, backend, over
}

func options() Options {
	return Options{Idle: time.Minute, Message: 1 << 20, Buffer: 512}
}

func text(s string) []byte { return append([]byte{0x81, byte(len(s))}, s...) }

// closeCode reads up to a close frame, and returns its code; 0 = none came.
func closeCode(c net.Conn) uint16 {
	all, _ := io.ReadAll(c)
	if n := len(all); n >= 4 {
		for i := range all[:n-3] {
			if all[i] == 0x88 && int(all[i+1]&0x7F) == n-i-2 {
				return binary.BigEndian.Uint16(all[i+2:])
			}
			if all[i] == 0x88 && all[i+1]&0x80 != 0 && int(all[i+1]&0x7F) == n-i-6 {
				return binary.BigEndian.Uint16(all[i+6:]) ^ binary.BigEndian.Uint16(all[i+2:])
			}
		}
	}
	return 0
}

// A side that takes nothing ends with the others, within the time for a goodbye.
func TestASideThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, backend, done := relayed(t.Context(), options())
		defer client.Close() // which never reads
		go func() { _, _ = backend.Write(text("hello")) }()
		start := time.Now()
		if code := closeCode(backend); code != 1001 {
			t.Errorf("the backend was told %d, want 1001", code)
		}
		if err := <-done; !errors.Is(err, ErrIdle) || time.Since(start) > time.Minute+goodbye {
			t.Errorf("ended with %v after %v", err, time.Since(start))
		}
	})
}

// A close frame that nobody answers ends the session soon.
func TestACloseThatIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, backend, done := relayed(t.Context(), options())
		defer client.Close()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		go func() { _, _ = backend.Write([]byte{0x88, 0}) }()
		start := time.Now()
		if err := <-done; err != nil || time.Since(start) != goodbye {
			t.Errorf("ended with %v after %v", err, time.Since(start))
		}
	})
}

// Within a frame nothing of ours is put.
func TestNothingIsSaidWithinAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, backend, done := relayed(t.Context(), options())
		go func() {
			_, _ = backend.Write([]byte{0x81, 5, 'h', 'a'})
			_ = backend.Close()
		}()
		got, _ := io.ReadAll(client)
		if string(got) != "\x81\x05ha" {
			t.Errorf("the client got %q", got)
		}
		if err := <-done; !errors.Is(err, ErrBackendGone) {
			t.Errorf("ended with %v", err)
		}
	})
}

// Events are shown whole, if there is room; what was taken is given back.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown []string
		held, most := 0, 0
		o := options()
		o.MaxEvent = 300
		o.Event = func(text []byte) { shown = append(shown, string(text)) }
		o.Room = func(n int) bool {
			if n > 0 && held+n > 250 {
				return false
			}
			held += n
			most = max(most, held)
			return true
		}
		client, backend, done := relayed(t.Context(), o)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		wide := append([]byte{0x81, 126, 1, 4}, bytes.Repeat([]byte("w"), 260)...) // there is no room
		vast := append([]byte{0x81, 126, 2, 0}, bytes.Repeat([]byte("v"), 512)...) // longer than any that is shown
		for _, f := range [][]byte{text("one"), {0x01, 1, 't', 0x89, 0, 0x80, 2, 'w', 'o'}, wide, vast, {0x82, 1, 'x'}, text(strings.Repeat("3", 100)), {0x81, 0}, {0x88, 0}} {
			_, _ = backend.Write(f)
		}
		_, _ = client.Write([]byte{0x88, 0x80, 0, 0, 0, 0})
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
		if want := "one two " + strings.Repeat("3", 100) + " "; strings.Join(shown, " ") != want {
			t.Errorf("shown were %q", shown)
		}
		if held != 0 || most == 0 {
			t.Errorf("%d bytes are held still, of %d", held, most)
		}
	})
}

// Once a session ends each side is told why, and nothing more is passed on: the answer of
// the one that was told first would reach the other before its own reason.
func TestNothingIsPassedOnOnceASessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, near := net.Pipe()
		s := &session{cancel: func(error) {}}
		down := &way{s: s, to: near, writes: make(chan struct{}, 1)}
		s.ending.Store(true)
		if down.write([]byte{0x88, 2, 1001 >> 8, 1001 & 0xFF}) {
			t.Error("a frame was passed on")
		}
		go down.end(&RefusedError{true, errTooLong})
		if code := closeCode(client); code != 1009 {
			t.Errorf("the client was told %d, want 1009", code)
		}
	})
}
