package tokens

import (
	"bytes"
	"cmp"
	"compress/flate"
	"maps"
	"os"
	"slices"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

const o200k = "o200k_base.tiktoken"

// The table is the one that is published, rank by rank.
func TestTable(t *testing.T) {
	want := must.Get(loader.NewOfflineLoader().LoadTiktokenBpe(o200k))(t)
	if golden.Update() {
		table = deflated(t, want)
		must.Do(t, os.WriteFile("o200k_base.deflate", table, 0o644))
	}
	got := must.Get(offline{}.LoadTiktokenBpe("https://example.com/" + o200k))(t)
	if len(got) < 199_998 || !maps.Equal(got, want) {
		t.Errorf("%d tokens are not the %d that are published; go test ./internal/tokens -update writes them", len(got), len(want))
	}
}

func deflated(t *testing.T, ranks map[string]int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := must.Get(flate.NewWriter(&out, flate.BestCompression))(t)
	tokens := slices.SortedFunc(maps.Keys(ranks), func(a, b string) int { return cmp.Compare(ranks[a], ranks[b]) })
	for rank, token := range tokens {
		if ranks[token] != rank || len(token) > 255 {
			t.Fatalf("token %d has rank %d and %d bytes", rank, ranks[token], len(token))
		}
		w.Write(append([]byte{byte(len(token))}, token...))
	}
	must.Do(t, w.Close())
	return out.Bytes()
}

// A table that is cut off or broken is an error, and no panic.
func TestABrokenTable(t *testing.T) {
	whole := table
	defer func() { table = whole }()
	for _, broken := range [][]byte{whole[:len(whole)/2], nil, []byte("no table")} {
		table = broken
		if ranks, err := (offline{}).LoadTiktokenBpe(o200k); err == nil {
			t.Errorf("%d bytes of a table: %d tokens and no error", len(broken), len(ranks))
		}
	}
}

func BenchmarkTable(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		must.Get((offline{}).LoadTiktokenBpe(o200k))(b)
	}
}
