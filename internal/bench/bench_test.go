package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/sim"
)

// engine serves a simulated engine inside the bubble of the test.
func engine(t *testing.T, o sim.Options) (*sim.Server, *http.Client) {
	t.Helper()
	s := must.Get(sim.NewServer(o))(t)
	var network memnet.Network
	l := must.Get(network.Listen("engine:80"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: s}
	ran, served := make(chan bool), make(chan bool)
	go func() { defer close(ran); _ = s.Run(ctx) }()
	go func() { defer close(served); _ = server.Serve(l) }()
	transport := &http.Transport{DialContext: network.Dial, MaxIdleConnsPerHost: 1000}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		cancel()
		<-ran
		<-served
	})
	return s, &http.Client{Transport: transport}
}

func fixed(tokens float64) arena.Lengths { return arena.Lengths{Kind: arena.Fixed, Mean: tokens} }

// truthOf is what the engine says of all that ran since the last reset: tokens and
// stream-seconds, by its own steps.
func truthOf(t *testing.T, c *http.Client) float64 {
	t.Helper()
	resp := must.Get(c.Get("http://engine/sim/truth"))(t)
	defer resp.Body.Close()
	var truth struct {
		Points []struct {
			StreamSeconds float64 `json:"stream_seconds"`
			Tokens        float64 `json:"tokens"`
		} `json:"points"`
	}
	must.Do(t, json.NewDecoder(resp.Body).Decode(&truth))
	var tokens, seconds float64
	for _, p := range truth.Points {
		tokens += p.Tokens
		seconds += p.StreamSeconds
	}
	return tokens / seconds
}

// Every level of the usual list is within 3 % of the engine's own truth, with
// prefill, a queue and prompts of many lengths, in a closed loop and in an open
// one; so are the levels' requests per second.
func TestWithinThreePercentOfTheTruth(t *testing.T) {
	worst := 0.0
	for name, change := range map[string]func(*Options){
		"closed": func(o *Options) { o.Users, o.Warmup = []int{1, 2, 4, 8, 10, 16, 25, 32, 50, 64}, 3*time.Second },
		"open":   func(o *Options) { o.Rates = []float64{1, 4, 8} },
		"lengths": func(o *Options) {
			o.Users = []int{1, 8, 32}
			o.Output = arena.Lengths{Mean: 100}
			o.Prompt = arena.Lengths{Mean: 500}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client := engine(t, sim.Options{Names: []string{"m"}, Model: sim.Model{A: 0.015, B: 0.001, C: 0.0003, D: 0.00004}, MaxNumSeqs: 48})
				o := Options{
					Base: "http://engine/v1", Model: "m", Duration: 20 * time.Second, Repeats: 1, Seed: 3,
					Prompt: fixed(300), Output: fixed(100), HTTP: client, SLO: SLO{TTFT: 10 * time.Second},
				}
				change(&o)
				reset := func() {
					resp := must.Get(client.Post("http://engine/sim/reset", "", nil))(t)
					resp.Body.Close()
				}
				reset()
				o.Done = func(p *Point) {
					truth := truthOf(t, client)
					off := p.TPS/truth - 1
					worst = max(worst, math.Abs(off))
					t.Logf("%s: %.3f tokens/s, the engine gave %.3f", label(p), p.TPS, truth)
					if math.Abs(off) > 0.03 {
						t.Errorf("%s: %.2f tokens/s, the engine gave %.2f: %+.1f %%", label(p), p.TPS, truth, 100*off)
					}
					<-time.After(time.Second) // what was cut off leaves the engine
					reset()
				}
				must.Do(t, o.Check())
				a := must.Get(o.Run(t.Context()))(t)
				if len(a.Failed) > 0 || len(a.Points) != len(o.Users)+len(o.Rates) {
					t.Errorf("%d levels, failed: %v", len(a.Points), a.Failed)
				}
				for _, p := range a.Points {
					if !(p.TTFTs.P50 <= p.TTFTs.P90 && p.TTFTs.P90 <= p.TTFTs.P99 && p.E2E.P50 > p.TTFTs.P50 && p.TPOT.P50 > 0) {
						t.Errorf("%s: TTFT %+v, TPOT %+v, E2E %+v", label(&p), p.TTFTs, p.TPOT, p.E2E)
					}
				}
			})
		})
	}
	t.Logf("the worst level is %.2f %% off", 100*worst)
}

// A level that gives nothing is said, and the others stand.
func TestALevelThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := engine(t, sim.Options{Names: []string{"m"}, Model: sim.Model{A: 0.02}})
		o := Options{Base: "http://engine/v1", Model: "m", Users: []int{1, 2, 4}, Duration: 2 * time.Second, Repeats: 1, Prompt: fixed(10), Output: fixed(20), HTTP: client}
		level := 0
		o.Progress = func(string, float64, time.Duration) {
			level++
			status := map[bool]string{true: `{"status":500}`, false: `{"status":0}`}[level == 2]
			resp := must.Get(client.Post("http://engine/sim/set", "application/json", strings.NewReader(status)))(t)
			resp.Body.Close()
		}
		a := must.Get(o.Run(t.Context()))(t)
		if len(a.Points) != 2 || len(a.Failed) != 1 || a.Failed[0].N != 2 || !strings.Contains(a.Failed[0].Error, "500") {
			t.Errorf("%d points, failed: %+v; want that of 2 users, with its 500", len(a.Points), a.Failed)
		}
		var text, page bytes.Buffer
		if err := errors.Join(a.Print(&text), a.HTML(&page)); err != nil || !strings.Contains(text.String(), "n = 2 was not measured") || !strings.Contains(page.String(), "n = 2 was not measured") {
			t.Errorf("%v:\n%s\n%s", err, text.String(), page.String())
		}
	})
}

// Repeats say how sure the mean is, a floor how many users get it.
func TestRepeatsAndFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := engine(t, sim.Options{Names: []string{"m"}, Model: sim.Model{A: 0.01, C: 0.001}, Noise: 0.05, Seed: 2})
		o := Options{
			Base: "http://engine/v1", Model: "m", Users: []int{1, 4, 16, 32}, Duration: 5 * time.Second, Repeats: 4, Floor: 40,
			Prompt: fixed(10), Output: fixed(50), HTTP: client, SLO: SLO{TPS: 40},
		}
		a := must.Get(o.Run(t.Context()))(t)
		for _, p := range a.Points {
			if !(p.TPSCI > 0 && p.TPSCI < 0.2*p.TPS) {
				t.Errorf("n = %d: %.2f ± %.2f", p.N, p.TPS, p.TPSCI)
			}
		}
		if a.AtFloor < 12 || a.AtFloor > 17 || a.AtFloorLeast { // 1/(10 + n) ms = 40/s at n = 15
			t.Errorf("%v users at 40 tokens/s, want about 15", a.AtFloor)
		}
		if first, last := a.Points[0], a.Points[3]; first.Good < 0.99 || last.Good > 0.01 {
			t.Errorf("%.2f of the streams alone are good, %.2f of those among 32; want all and none", first.Good, last.Good)
		}
		changes := Compare(a, a)
		if len(changes) != 4 || changes[0].TPS != 0 || *changes[0].Sure {
			t.Errorf("compared with itself %+v", changes)
		}
	})
}

// A trace is sent as it is, whatever becomes of it, and none of it is cut.
func TestATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := engine(t, sim.Options{Names: []string{"m"}, Model: sim.Model{A: 0.01}})
		o := Options{Base: "http://engine/v1", Model: "m", Repeats: 1, Duration: time.Second, Warmup: time.Second, Prompt: fixed(10), Output: fixed(50), HTTP: client}
		for i := range 20 {
			o.Trace = append(o.Trace, loadgen.Arrival{At: time.Duration(i) * 500 * time.Millisecond, PromptTokens: 10, OutputTokens: 30 + 270*(i/19)})
		}
		a := must.Get(o.Run(t.Context()))(t)
		// The last one takes three seconds.
		if p := a.Points[0]; p.Streams != 20 || p.Tokens != 20*29+270 || math.Abs(p.TPS-100) > 3 || math.Abs(p.Requests-20/12.5) > 0.01 || math.Abs(p.Rate-20/9.5) > 0.01 {
			t.Errorf("%+v, want 20 streams of 29 tokens after the first, and one of 299, at 100 a second", p)
		}
	})
}

// A level of so many requests sends these and no more, cuts none, and its figures
// are of the time that they took: 12 answers of 50 tokens by 4 users at 20 ms a step.
func TestALevelOfSoManyRequests(t *testing.T) {
	for _, level := range []Options{{Users: []int{4}}, {Rates: []float64{2}}} {
		synctest.Test(t, func(t *testing.T) {
			_, client := engine(t, sim.Options{Names: []string{"m"}, Model: sim.Model{A: 0.02}})
			o := level
			o.Base, o.Model, o.Requests, o.Repeats, o.Duration, o.HTTP = "http://engine/v1", "m", 12, 1, 10*time.Second, client
			o.Prompt, o.Output, o.Warmup = fixed(10), fixed(50), time.Second
			began := time.Now()
			a := must.Get(o.Run(t.Context()))(t)
			took := time.Since(began).Seconds()
			p := a.Points[0]
			if p.Streams != 12 || p.Failed+p.Shed != 0 || math.Abs(p.OutputTPS*took-600) > 1 || math.Abs(p.Requests*took-12) > 0.1 || p.Tokens != 12*49 {
				t.Errorf("%+v in %.2f s, want 12 streams of 50 tokens, none cut", p, took)
			}
			if p.Rate == 0 && math.Abs(took-3*50*0.02) > 0.2 {
				t.Errorf("4 users took %.2f s for 12 answers of a second", took)
			}
		})
	}
}

// Streams that are longer than the level: those that begin within it have hardly
// begun when it ends, so all of them count.
func TestALevelShorterThanItsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := engine(t, sim.Options{Names: []string{"m"}, Model: sim.Model{A: 0.01, D: 0.001}, Noise: -1})
		o := Options{
			Base: "http://engine/v1", Model: "m", Users: []int{4}, Duration: 2 * time.Second, Warmup: 200 * time.Millisecond, Repeats: 1,
			Prompt: fixed(10), Output: fixed(200), HTTP: client,
		}
		a := must.Get(o.Run(t.Context()))(t)
		if p := a.Points[0]; math.Abs(p.TPS-100) > 3 || p.Tokens < 4*190 {
			t.Errorf("%+v, want 100 tokens/s, by all four streams", p)
		}
	})
}

func TestKnee(t *testing.T) {
	points := func(all ...float64) (out []Point) {
		for i, a := range all {
			out = append(out, Point{N: 1 << i, AggregateTPS: a})
		}
		return out
	}
	for want, p := range map[float64][]Point{
		0: points(10, 20, 40, 80, 160),        // straight
		8: points(10, 20, 40, 80, 85, 88, 89), // flat behind 8
		4: points(10, 30, 60, 60, 60, 60),     // flat behind 4
	} {
		if got := kneeOf(p); got != want {
			t.Errorf("the knee of %v is %v, want %v", p, got, want)
		}
	}
}

func TestPoint(t *testing.T) {
	sec := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	o := &Options{Duration: 2 * time.Second, Warmup: time.Second}
	// Two tokens an event, as the first stream's usage says: (20 + 10)·2 tokens in 3 +
	// 1 stream-seconds. What began in the warm-up does not count.
	p, err := pointOf(Level{N: 2}, []timed{
		{loadgen.Result{Outcome: loadgen.Done, Tokens: 1000, First: 1, Decode: sec(1), TTFT: sec(9)}, sec(0.5)},
		{loadgen.Result{Outcome: loadgen.Done, Tokens: 21, First: 1, Counted: 42, Decode: sec(3), TTFT: sec(0.1)}, sec(1)},
		{loadgen.Result{Outcome: loadgen.Aborted, Tokens: 11, First: 1, Decode: sec(1), TTFT: sec(0.3)}, sec(1.5)},
		{loadgen.Result{Outcome: loadgen.Shed}, sec(2)},
		{loadgen.Result{Outcome: loadgen.Failed, Err: errors.New("x")}, sec(2)},
	}, sec(3), o)
	if err != nil || p.TPS != 15 || p.AggregateTPS != 30 || p.Tokens != 60 || p.StreamS != 4 || p.Streams != 1 || p.Shed != 1 || p.Failed != 1 || p.Error != "x" || p.Requests != 0.5 {
		t.Errorf("%+v, %v", p, err)
	}
	if math.Abs(p.TTFT-0.2) > 1e-9 || p.TTFTP99 != 0.3 || p.E2E.P50 != 3.1 || math.Abs(p.TPOT.P50-0.075) > 1e-9 {
		t.Errorf("TTFT %v and %v, E2E %v, TPOT %v", p.TTFT, p.TTFTP99, p.E2E, p.TPOT)
	}
	for name, results := range map[string][]timed{
		"429":    {{loadgen.Result{Outcome: loadgen.Shed}, 0}},
		"broken": {{loadgen.Result{Outcome: loadgen.Failed, Err: errors.New("broken")}, 0}},
		"raise":  {{loadgen.Result{Outcome: loadgen.Done, Tokens: 1, First: 1, TTFT: sec(1)}, 0}},
	} {
		if _, err := pointOf(Level{N: 1}, results, sec(3), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := fmt.Sprint(student(1), student(9)); got != "12.706 2.262" {
		t.Errorf("quantiles %s", got)
	}
}

// What is left is told before each level, and comes true; requests of an open loop come at
// random times, as many as are asked for.
func TestWhatIsLeftAndWhenRequestsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := engine(t, sim.Options{Names: []string{"m"}, Model: sim.Model{A: 0.001}})
		var mu sync.Mutex // guards arrivals
		var arrivals []time.Time
		inner := client.Transport
		client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			arrivals = append(arrivals, time.Now())
			mu.Unlock()
			return inner.RoundTrip(r)
		})
		o := Options{
			Base: "http://engine/v1", Model: "m", Rates: []float64{4, 4, 4, 4}, Duration: 100 * time.Second, Warmup: 10 * time.Second, Repeats: 1,
			Prompt: fixed(1), Output: fixed(2), HTTP: client,
		}
		var at []time.Time
		var left []time.Duration
		o.Progress = func(_ string, _ float64, d time.Duration) { at, left = append(at, time.Now()), append(left, d) }
		must.Get(o.Run(t.Context()))(t)
		for i, d := range left {
			if took := time.Since(at[i]); math.Abs(d.Seconds()/took.Seconds()-1) > 0.03 {
				t.Errorf("before level %d %v are left, and it took %v", i+1, d, took)
			}
		}
		// Of times at random the distances have the mean 1/rate and the deviation 1/rate.
		var sum, squares float64
		n := float64(len(arrivals) - 1)
		for i := 1; i < len(arrivals); i++ {
			d := arrivals[i].Sub(arrivals[i-1]).Seconds()
			sum, squares = sum+d, squares+d*d
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		if len(left) != 4 || math.Abs(mean-0.25) > 0.025 || math.Abs(deviation/mean-1) > 0.1 {
			t.Errorf("%d levels; %.0f requests, %.3f ± %.3f s apart; want 0.25 ± 0.25", len(left), n+1, mean, deviation)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
