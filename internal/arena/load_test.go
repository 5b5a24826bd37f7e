package arena

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
)

func traceOf(text string) *Trace {
	return &Trace{File: "t.csv", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

// arrivalsOf are the times of a load in seconds, at most 100 of them.
func arrivalsOf(load iter.Seq[Arrival]) (seconds []float64) {
	for a := range load {
		if seconds = append(seconds, a.At.Seconds()); len(seconds) == 100 {
			break
		}
	}
	return seconds
}

func TestTraceKeepsItsIntervals(t *testing.T) {
	const text = "arrival_s,prompt_tokens,output_tokens\n100,1,10\n101,2,20\n103,3,30\n104,4,40\n"
	for _, tt := range []struct {
		speed float64
		until time.Duration
		want  []float64
	}{
		{0, 0, []float64{0, 1, 3, 4}},
		{2, 0, []float64{0, 0.5, 1.5, 2}},
		{0, 3 * time.Second, []float64{0, 1}},
		// One mean interval, 4/3 s, lies between two rounds.
		{0, 10 * time.Second, []float64{0, 1, 3, 4, 5.333333333, 6.333333333, 8.333333333, 9.333333333}},
		{2, 4 * time.Second, []float64{0, 0.5, 1.5, 2, 2.666666666, 3.166666666}},
		{0.5, 9 * time.Second, []float64{0, 2, 6, 8}},
	} {
		trace := traceOf(text)
		trace.Speed, trace.Until = tt.speed, tt.until
		for range 2 { // it can be read again
			got := arrivalsOf(trace.Arrivals())
			if !slices.EqualFunc(got, tt.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) || trace.Err() != nil {
				t.Errorf("speed %v until %v: got %v, %v; want %v", tt.speed, tt.until, got, trace.Err(), tt.want)
			}
		}
	}
	for a := range traceOf(text).Arrivals() {
		if a.At == 3*time.Second && (a.PromptTokens != 3 || a.OutputTokens != 30) {
			t.Errorf("the third request is %+v, want 3 and 30 tokens", a)
		}
	}
}

func TestTraceSaysWhatIsWrong(t *testing.T) {
	const head = "arrival_s,prompt_tokens,output_tokens\n"
	for text, want := range map[string]string{
		head:                        "t.csv:1: there is no request behind the header",
		head + "1,2,3\n2,x,3\n":     `t.csv:3: "x" prompt tokens`,
		head + "1,2,3\n1,2,3\n":     "t.csv: all its requests come at once",
		"when,prompt,output\n1,2,3": "t.csv:1: the header has no column",
	} {
		trace := traceOf(text)
		trace.Until = time.Minute
		n := len(arrivalsOf(trace.Arrivals()))
		if err := trace.Err(); err == nil || !strings.HasPrefix(err.Error(), want) || n > 2 {
			t.Errorf("%q: %d requests and error %v, want %s", text, n, err, want)
		}
	}
	gone := &Trace{File: "t.csv", Open: func() (io.ReadCloser, error) { return nil, os.ErrNotExist }}
	if arrivalsOf(gone.Arrivals()); !errors.Is(gone.Err(), os.ErrNotExist) {
		t.Errorf("got %v, want that the file is not there", gone.Err())
	}
}

// A trace of ten million lines is not held in memory: here, one of a million
// is written while it is read.
func TestALongTraceStreams(t *testing.T) {
	const requests = 1_000_000
	trace := &Trace{File: "t.csv", Open: func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() {
			fmt.Fprint(w, "arrival_s,prompt_tokens,output_tokens\n")
			lines := strings.Repeat("7,100,200\n", 1000)
			for range requests / 1000 {
				if _, err := io.WriteString(w, lines); err != nil {
					return
				}
			}
			w.Close()
		}()
		return r, nil
	}}
	if got := Summarize(trace.Arrivals(), 0); got.Requests != requests || got.OutputTokens != 200 || trace.Err() != nil {
		t.Errorf("got %+v, %v; want %d requests of 200 tokens", got, trace.Err(), requests)
	}
	for range trace.Arrivals() {
		break // the file is closed, and so the writer ends
	}
}

func TestGeneratedRate(t *testing.T) {
	const minutes = 60
	for text, want := range map[string][3]float64{ // requests/s: over all, in the middle fifth, in the last tenth
		"poisson":  {10, 10, 10},
		"bursts":   {10, 10, 10},
		"bursts:6": {10, 10, 10},
		"ramp":     {5, 5, 9.5},
		"spike":    {14, 30, 10},
		"spike:2":  {12, 20, 10},
	} {
		shape := must.Get(ParseShape(text))(t)
		g := Generator{Rate: 10, Shape: shape, Prompt: Lengths{Kind: Fixed, Mean: 1}, Output: Lengths{Kind: Fixed, Mean: 1}, Duration: minutes * time.Minute, Seed: 1}
		var got [3]float64
		last := time.Duration(-1)
		for a := range g.Arrivals() {
			if a.At < last || a.At >= g.Duration {
				t.Fatalf("%s: a request at %v after one at %v, of %v", text, a.At, last, g.Duration)
			}
			last = a.At
			x := a.At.Seconds() / g.Duration.Seconds()
			got[0]++
			if x >= 0.4 && x < 0.6 {
				got[1] += 5
			}
			if x >= 0.9 {
				got[2] += 10
			}
		}
		for i := range got {
			if got[i] /= g.Duration.Seconds(); math.Abs(got[i]/want[i]-1) > 0.06 {
				t.Errorf("%s: %.2f requests/s over all, %.2f in the middle, %.2f at the end; want %v", text, got[0], got[1], got[2], want)
				break
			}
		}
	}
}

func TestBurstsAreBursts(t *testing.T) {
	g := Generator{Rate: 50, Shape: Shape{Kind: Bursts, Factor: 4}, Prompt: Lengths{Mean: 1}, Output: Lengths{Mean: 1}, Duration: 20 * time.Minute}
	var inside, outside float64
	for a := range g.Arrivals() {
		if s := math.Mod(a.At.Seconds(), 60); s >= 25 && s < 35 {
			inside++
		} else {
			outside++
		}
	}
	inside, outside = inside/(20*10), outside/(20*50)
	if math.Abs(inside/200-1) > 0.05 || math.Abs(outside/20-1) > 0.05 {
		t.Errorf("%.1f requests/s in a burst and %.1f between, want 200 and 20", inside, outside)
	}
}

func TestTheSameSeedIsTheSameLoad(t *testing.T) {
	load := func(seed uint64, prompt float64) (out []Arrival) {
		g := Generator{Rate: 5, Prompt: Lengths{Mean: prompt}, Output: Lengths{Mean: 300}, Duration: time.Minute, Seed: seed}
		return slices.Collect(Split(g.Arrivals(), []Share{{"a", 1}, {"b", 2}}, seed))
	}
	if a, b := load(1, 1000), load(1, 1000); !slices.Equal(a, b) || len(a) < 100 {
		t.Errorf("two readings differ (%d and %d requests)", len(a), len(b))
	}
	if a, b := load(1, 1000), load(2, 1000); slices.Equal(a, b) {
		t.Error("another seed gives the same requests")
	}
	// Other prompts leave the arrivals, the answers and the routes as they are.
	a, b := load(1, 1000), load(1, 4000)
	for i := range a {
		if a[i].At != b[i].At || a[i].OutputTokens != b[i].OutputTokens || a[i].Route != b[i].Route || a[i].PromptTokens >= b[i].PromptTokens && a[i].PromptTokens > 1 {
			t.Fatalf("request %d is %+v, with longer prompts %+v", i, a[i], b[i])
		}
	}
}

func TestSplit(t *testing.T) {
	g := Generator{Rate: 100, Prompt: Lengths{Mean: 1}, Output: Lengths{Mean: 1}, Duration: 2 * time.Minute}
	count := map[string]float64{}
	all := 0.0
	for a := range Split(g.Arrivals(), []Share{{"none", 0}, {"chat", 5}, {"late", 2}, {"nightly", 3}, {"nor", 0}}, 1) {
		count[a.Route]++
		all++
	}
	for route, want := range map[string]float64{"chat": 0.5, "late": 0.2, "nightly": 0.3, "none": 0, "nor": 0} {
		if got := count[route] / all; math.Abs(got-want) > 0.02 || want == 0 && got > 0 {
			t.Errorf("%s: %.3f of %.0f requests, want %.1f", route, got, all, want)
		}
	}
}

func TestLengths(t *testing.T) {
	for _, tt := range []struct {
		text              string
		mean, median, p90 float64 // by hand: a log-normal has its median at mean·e^(−σ²/2), p90 at e^(1.2816·σ) times that
	}{
		{"1000", 1000, 726, 2024},
		{"lognormal:1000:0.5", 1000, 882, 1675},
		{"fixed:1000", 1000, 1000, 1000},
		{"bimodal:200:4000:0.2", 960, 200, 4000},
		{"fixed:1", 1, 1, 1},
	} {
		l := must.Get(ParseLengths(tt.text))(t)
		rng := stream(1, streamPrompts)
		drawn := make([]float64, 50_000)
		var mean float64
		for i := range drawn {
			drawn[i] = float64(l.draw(rng))
			mean += drawn[i] / float64(len(drawn))
		}
		slices.Sort(drawn)
		median, p90 := drawn[len(drawn)/2], drawn[len(drawn)*9/10]
		if math.Abs(mean/tt.mean-1) > 0.02 || math.Abs(median/tt.median-1) > 0.03 || math.Abs(p90/tt.p90-1) > 0.03 {
			t.Errorf("%s: mean %.0f, median %.0f, p90 %.0f; want %.0f, %.0f, %.0f", tt.text, mean, median, p90, tt.mean, tt.median, tt.p90)
		}
		if drawn[0] < 1 || drawn[len(drawn)-1] > maxTail*max(l.Mean, l.Long) {
			t.Errorf("%s: from %v to %v", tt.text, drawn[0], drawn[len(drawn)-1])
		}
	}
}

func TestBadWordsForALoad(t *testing.T) {
	for text, want := range map[string]string{
		"": "no number", "0": "less than 1 token", "-5": "no number", "NaN": "no number", "fixed": "is no number", "fixed:1:2": "says no lengths",
		"bimodal:1:2": "says no lengths", "bimodal:1:2:3": "says no lengths", "bimodal:1:0:0.5": "less than 1 token", "lognormal:100:3": "says no lengths",
		"1e9": "no number", "zipf:3": "says no lengths",
	} {
		if l, err := ParseLengths(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "write tokens") {
			t.Errorf("lengths %q: %+v, %v; want an error with %q", text, l, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "no shape", "sine": "no shape", "ramp:2": "takes no factor", "poisson:1": "takes no factor",
		"bursts:7": "from 1 to 6", "spike:0.5": "from 1 to 100", "spike:": "is none", "spike:NaN": "is none",
	} {
		if s, err := ParseShape(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("shape %q: %+v, %v; want an error with %q", text, s, err, want)
		}
	}
}

// Reading is not what a plan waits for.
//
// Budget: 1 µs a request.
func BenchmarkTrace(b *testing.B) {
	text := "arrival_s,prompt_tokens,output_tokens\n" + strings.Repeat("12.3456,1024,256\n", 100_000)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		trace := traceOf(text)
		n += Summarize(trace.Arrivals(), 0).Requests
		must.Do(b, trace.Err())
	}
}

func TestAProblemInATraceHasItsPlace(t *testing.T) {
	trace := traceOf("arrival_s,prompt_tokens,output_tokens\n1,2,3\n0,2,3\n")
	arrivalsOf(trace.Arrivals())
	var problem *loadgen.TraceError
	if !errors.As(trace.Err(), &problem) || problem.Line != 3 {
		t.Errorf("got %v, want a problem in line 3", trace.Err())
	}
}
