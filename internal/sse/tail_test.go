package sse

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// However a stream comes, what passes ends at the end of an event each time, and with what
// is held at its end it is the stream.
func TestTailHoldsTheBeginningOfAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.SampledFrom([]string{"\n", "\r\n", "\r"})
		var whole []string
		for range rapid.IntRange(1, 8).Draw(t, "events") {
			end := ends.Draw(t, "end")
			text := rapid.StringOfN(rapid.RuneFrom([]rune("ab:é ")), 0, 40, -1)
			event := "data: " + text.Draw(t, "text") + end
			if rapid.Bool().Draw(t, "named") {
				event = "event: " + text.Draw(t, "name") + end + event
			}
			whole = append(whole, event+end)
		}
		broken := "data: {" + strings.Repeat("x", rapid.IntRange(0, 30).Draw(t, "rest"))
		stream := strings.Join(whole, "") + broken
		at := map[int]bool{0: true}
		for end, i := 0, 0; i < len(whole); i++ {
			end += len(whole[i])
			at[end] = true
			at[end-1] = strings.HasSuffix(whole[i], "\r\n\r\n") // the LF comes late
		}
		var tail Tail
		var scan Scanner
		var out []byte
		for rest := []byte(stream); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "read")
			p := bytes.Clone(rest[:n])
			rest = rest[n:]
			src, from := tail.Add(p)
			scan.Feed(p)
			for _, ok := scan.Next(); ok; _, ok = scan.Next() {
			}
			hold := tail.Until(&scan, src, from)
			tail.Keep(src, hold)
			out = append(out, src[:hold]...)
			clear(p)
			if !at[len(out)] {
				t.Fatalf("%q of %q passed, which is no event's end", out, stream)
			}
		}
		src, from, before := tail.Take(&scan)
		if got := string(out) + string(src); got != stream || int(from) != len(out) || string(src[before:]) != broken {
			t.Fatalf("%q passed, and %q is held from %d on, %d before the last event; the stream is %q", out, src, from, before, stream)
		}
	})
}

// A large beginning is held by nobody, and leaves no buffer behind.
func TestTailIsBounded(t *testing.T) {
	var tail Tail
	var scan Scanner
	sent, passed := 0, 0
	feed := func(p string) {
		src, from := tail.Add([]byte(p))
		scan.Feed([]byte(p))
		for _, ok := scan.Next(); ok; _, ok = scan.Next() {
		}
		hold := tail.Until(&scan, src, from)
		tail.Keep(src, hold)
		sent, passed = sent+len(p), passed+hold
	}
	feed("data: ")
	for range 100 {
		feed(strings.Repeat("x", 1<<10))
		if tail.Len() > MaxTail || tail.Len() != sent-passed {
			t.Fatalf("of %d bytes %d passed, and %d are held", sent, passed, tail.Len())
		}
	}
	if tail.Len() != 0 || tail.Size() > 2*keptTail {
		t.Errorf("behind %d bytes of an event %d are held in buffers of %d", sent, tail.Len(), tail.Size())
	}
	feed("\n\ndata: y")
	if tail.Len() != len("data: y") {
		t.Errorf("%d bytes are held of the next event, want %d", tail.Len(), len("data: y"))
	}
}
