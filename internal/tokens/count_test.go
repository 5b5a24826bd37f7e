package tokens

import (
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
)

// Counts as tiktoken's own o200k_base gives them.
func TestCount(t *testing.T) {
	for text, want := range map[string]float64{
		"":             0,
		"hello world":  2,
		"Hello, World": 3,
		"tokenization": 2,
		"1234567":      3,
		"你好，世界":        3,
		"func main() {\n\tfmt.Println(\"hi\")\n}": 10,
	} {
		if got := Count(text); got != want {
			t.Errorf("%q: %v tokens, want %v", text, got, want)
		}
	}
}

// Special tokens in a text are text: a client must not be able to spell them.
func TestSpecialTokensAreText(t *testing.T) {
	if got := Count("<|endoftext|>"); got < 3 {
		t.Errorf("%v tokens, want those of its letters", got)
	}
}

// Nothing is fetched: the tables are part of the program.
func TestNothingIsFetched(t *testing.T) {
	old := http.DefaultTransport
	defer func() { http.DefaultTransport = old }()
	http.DefaultTransport = refuse{t}
	encoding()                                                                // sets the loader for the process
	if _, err := tiktoken.GetEncoding(tiktoken.MODEL_P50K_BASE); err == nil { // one that nothing has loaded yet
		t.Error("a table came that the program does not have")
	}
}

type refuse struct{ t *testing.T }

func (r refuse) RoundTrip(q *http.Request) (*http.Response, error) {
	r.t.Errorf("the tokenizer asks for %s", q.URL)
	return nil, http.ErrServerClosed
}

// A long text is counted by its beginning, in pieces.
func TestALongTextIsExtrapolated(t *testing.T) {
	const sentence = "The quick brown fox jumps over the lazy dog, and then it rests a while. "
	one := Count(strings.Repeat(sentence, 5)) / 5 // in one piece
	for _, times := range []int{10, 50, 5000} {
		got, want := Count(strings.Repeat(sentence, times)), one*float64(times)
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%d times: %.0f tokens, want about %.0f", times, got, want)
		}
	}
}

// One long word is a denial of service for a tokenizer that is let loose on it:
// 50,000 letters take 1.6 s.
func TestALongWordIsCutUp(t *testing.T) {
	for _, word := range []string{strings.Repeat("a", 1<<20), strings.Repeat("語", 1<<18), strings.Repeat("\xff", 1<<20), strings.Repeat("1", 1<<20)} {
		for at := 0; at < len(word) && at < MaxText; {
			n := piece(word[at:])
			if n <= 0 || n > maxPiece {
				t.Fatalf("a piece of %d bytes, want 1 to %d", n, maxPiece)
			}
			at += n
		}
		start := time.Now()
		if got := Count(word); got <= 0 {
			t.Errorf("%v tokens", got)
		}
		t.Logf("%d bytes of %.4q in %v", len(word), word, time.Since(start))
	}
}

func TestCutsLieBetweenRunes(t *testing.T) {
	text := strings.Repeat("語é x", 4000)
	for most := range 3000 {
		if n := cut(text, most); !utf8.ValidString(text[:n]) || n < most-3 {
			t.Fatalf("cut at %d of %d", n, most)
		}
	}
}

func TestCountIsSafeForConcurrentUse(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got := Count("hello world"); got != 2 {
				t.Errorf("%v tokens, want 2", got)
			}
		})
	}
	all.Wait()
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"hello", "\xff\xfe", "a\x00b", strings.Repeat("ab", 5000), "<|endoftext|>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Count(text); math.IsNaN(got) || got < 0 || text != "" && got == 0 || got > 4*float64(len(text)) {
			t.Errorf("%q: %v tokens", text, got)
		}
	})
}

// Budget: 10 ms for MaxText bytes, off every path that a client waits on.
func BenchmarkCount(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and then it rests a while. ", 200)
	Count("x")
	b.SetBytes(MaxText)
	b.ReportAllocs()
	for b.Loop() {
		Count(text)
	}
}
