package openai

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/internal/must"
)

// applied is body with edits, as it is read.
func applied(t *testing.T, body []byte, edits []Splice) []byte {
	t.Helper()
	out := must.Get(io.ReadAll(NewReader(body, edits)))(t)
	if n := EditedLen(len(body), edits); n != len(out) {
		t.Fatalf("%d bytes are read, and %d were told", len(out), n)
	}
	return out
}

// A body is read as it would be after its edits, in pieces of any size.
func TestABodyIsReadAroundItsEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "body")
		var edits []Splice
		var want []byte
		at := 0
		for at <= len(body) && rapid.Bool().Draw(t, "one more") {
			from := rapid.IntRange(at, len(body)).Draw(t, "from")
			to := rapid.IntRange(from, len(body)).Draw(t, "to")
			text := rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(t, "text")
			edits = append(edits, Splice{from, to, text})
			want = append(append(want, body[at:from]...), text...)
			at = to
		}
		want = append(want, body[at:]...)
		if got := EditedLen(len(body), edits); got != len(want) {
			t.Fatalf("%d bytes told, want %d", got, len(want))
		}
		must.Do(t, iotest.TestReader(NewReader(body, edits), want))
		got, err := io.ReadAll(iotest.OneByteReader(NewReader(body, edits)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("byte by byte: %q, %v, want %q", got, err, want)
		}
	})
}
