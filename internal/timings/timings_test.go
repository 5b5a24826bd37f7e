package timings

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// two are two answers: one counted, with two chunks in a read and a count that
// stands still; the other not.
func two() []Answer {
	return []Answer{
		{
			Part: "p", Sent: 0, Ended: ms(45), Guess: 7, Prompt: 9, Tokens: 6, FirstText: 3, Text: 20,
			Arrivals: []Arrival{{ms(10), 1, 1}, {ms(20), 2, 4}, {ms(30), 1, 4}, {ms(40), 1, 6}},
		},
		{
			Part: "q", Sent: ms(5.12), Ended: ms(60), Guess: 1, Prompt: 2, Tokens: 8, FirstText: 1, Text: 4,
			Arrivals: []Arrival{{At: ms(20), Chunks: 1}, {At: ms(60), Chunks: 3}},
		},
	}
}

func TestAFileComesBackAsItWas(t *testing.T) {
	var file bytes.Buffer
	must.Do(t, Write(&file, two()))
	got := must.Get(Read(&file))(t)
	if want := two(); !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwrote\n%+v", got, want)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	var file bytes.Buffer
	must.Do(t, Write(&file, two()))
	for name, text := range map[string][]byte{"nothing": nil, "text": []byte("part,sent"), "half a file": file.Bytes()[:file.Len()/2]} {
		if got, err := Read(bytes.NewReader(text)); err == nil {
			t.Errorf("%s was read as %+v", name, got)
		}
	}
	for _, line := range []string{"", "p,1,2,3,4,5,6,7", "p,1,2,3,4,5,6,7,x", "p,1,2,3,4,5,6,7,1*x", "p,1,2,3,4,5,6,7,1+x", "p,x,2,3,4,5,6,7,1"} {
		if a, err := parse(line); err == nil {
			t.Errorf("%q was read as %+v", line, a)
		}
	}
}

// The first answer decodes from 10 to 40 ms, the second from 20 to 60 ms.
func TestLevels(t *testing.T) {
	got := Levels(two())
	// Alone: 10–20 ms with 3 tokens, and half of the gap from 20 to 60 ms, which
	// brought 6 tokens; beside each other: the rest.
	want := map[int]Level{1: {3 + 3, 0.030}, 2: {2 + 3, 0.040}}
	same(t, got, want)
	if tps := got[1].TPS(); math.Abs(tps-200) > 1e-6 {
		t.Errorf("%.1f tokens/s, want 200", tps)
	}
}

// The users wait or are answered from 0 to 45 and from 5.12 to 60 ms.
func TestUsers(t *testing.T) {
	same(t, Users(two()), map[int]Level{1: {15.0 / 40 * 6, 0.015}, 2: {5 + 25.0/40*6, 0.055}})
}

func same(t *testing.T, got, want map[int]Level) {
	t.Helper()
	for n, w := range want {
		if g := got[n]; math.Abs(g.Tokens-w.Tokens) > 1e-9 || math.Abs(g.Seconds-w.Seconds) > 1e-9 {
			t.Errorf("n = %d: %+v, want %+v", n, g, w)
		}
	}
	for n, g := range got {
		if _, ok := want[n]; !ok && g.Seconds > 0 {
			t.Errorf("n = %d: %+v, and nobody was there", n, g)
		}
	}
}

func TestDuring(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		want     map[int]float64
	}{
		{0, 20, map[int]float64{0: 0.5, 1: 0.5}},
		{30, 50, map[int]float64{1: 0.5, 2: 0.5}},
		{50, 70, map[int]float64{0: 0.5, 1: 0.5}},
		{20, 20, map[int]float64{}},
	} {
		if got := During(two(), ms(c.from), ms(c.to)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("from %v to %v ms: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestTokensAfterTheFirstArrival(t *testing.T) {
	answers := two()
	if got := answers[0].After(); got != 5 {
		t.Errorf("counted: %v, want 5", got)
	}
	if got := answers[1].After(); got != 6 {
		t.Errorf("by chunks: %v, want 6", got)
	}
}

// A prompt token takes 2 ms: the second prompt of 2 lies from 16 to 20 ms, beside
// the first answer; the first of 9 began before anything did.
func TestPromptsAt(t *testing.T) {
	if got, want := PromptsAt(two(), 0.002), (map[int]float64{0: 9, 1: 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := PerPromptToken(two()); math.Abs(got-(0.010-0.01488)/7) > 1e-12 {
		t.Errorf("%v s a prompt token", got)
	}
}
