package httpfield

import (
	"net/http"
	"net/textproto"
	"testing"

	"golang.org/x/net/http/httpguts"
)

func FuzzCanonical(f *testing.F) {
	for _, name := range []string{"", "-", "a", "A", "Content-Type", "content-type", "CONTENT-TYPE", "X-Request-Id", "x--y", "Te", "1a", "a1B", "A b", "A:", "Ä", "x\x7f", "ETag", "!#$%&'*+.^_`|~"} {
		f.Add(name)
	}
	for c := range 256 {
		f.Add(string([]byte{'A', byte(c)}))
		f.Add(string([]byte{byte(c)}))
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, ok := Canonical(name)
		if want := httpguts.ValidHeaderFieldName(name); ok != want {
			t.Fatalf("%q is a name: got %v, want %v", name, ok, want)
		}
		if want := textproto.CanonicalMIMEHeaderKey(name); ok && got != want || !ok && got != name {
			t.Fatalf("the canonical name of %q: got %q, want %q", name, got, want)
		}
	})
}

func TestFirst(t *testing.T) {
	h := http.Header{"Accept": {"a", "b"}, "Empty": {}}
	for name, want := range map[string]string{"Accept": "a", "Empty": "", "None": ""} {
		if got := First(h, name); got != want {
			t.Errorf("the first value of %s: got %q, want %q", name, got, want)
		}
	}
}

// A name as most clients send it: budget 20 ns, no allocation.
func BenchmarkCanonical(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Canonical("X-Stainless-Runtime"); !ok {
			b.Fatal("no name")
		}
	}
}
