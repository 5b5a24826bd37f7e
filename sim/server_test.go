package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

const chat, completions = "/v1/chat/completions", "/v1/completions"

// A minute of streaming takes no time at all: in the bubble the clock jumps to
// the next token, so the measured speed is exact.
func TestOneStreamRunsAtTheCurve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025, D: 0.001}})
		start := time.Now()
		s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":2401}`)
		if !s.done() {
			t.Fatalf("stream did not end as it should: %v", s.err)
		}
		tokens := s.tokens(t)
		if len(tokens) != 2401 {
			t.Errorf("%d tokens, want 2401", len(tokens))
		}
		if got := s.tps(t); math.Abs(got-40) > 0.0005 {
			t.Errorf("stream ran at %.4f tokens/s, want 40.000", got)
		}
		// hello is 2 tokens: 25 ms for the step and 2 ms for the prompt.
		if got := tokens[0].at.Sub(start); got != 27*time.Millisecond {
			t.Errorf("the first token came after %v, want 27ms", got)
		}
		if s.headers != start {
			t.Errorf("the headers came after %v, want at once", s.headers.Sub(start))
		}
		p := r.server.Truth().Points
		if len(p) != 1 || p[0].N != 1 || p[0].Tokens != 2400 || math.Abs(p[0].TPS-40) > 1e-6 {
			t.Errorf("truth is %+v, want 2400 tokens at 40 tokens/s and n = 1", p)
		}
	})
}

func TestSpeedIsWhatAClientSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Speed: 5})
		s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":101}`)
		if got := s.tps(t); math.Abs(got-200) > 0.0005 {
			t.Errorf("stream ran at %.4f tokens/s, want 200.000", got)
		}
		if p := r.server.Truth().Points; len(p) != 1 || math.Abs(p[0].TPS-200) > 1e-6 {
			t.Errorf("truth is %+v, want 200 tokens/s", p)
		}
	})
}

// TestManyStreams checks that 200 clients see what the truth says, with noise,
// and that those beyond the slots wait.
func TestManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{Table: h200, D: 1e-5}, MaxNumSeqs: 64, Noise: 0.05, Seed: 5})
		var wg sync.WaitGroup
		var mu sync.Mutex
		var clientTokens, clientSeconds float64
		for i := range 200 {
			wg.Go(func() {
				s := r.stream(t.Context(), chat, fmt.Sprintf(`{%s,"stream":true,"max_tokens":%d}`, hello, 50+i))
				tokens := s.tokens(t)
				if !s.done() || len(tokens) != 50+i {
					t.Errorf("stream %d has %d tokens, want %d; done %t, error %v", i, len(tokens), 50+i, s.done(), s.err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				clientTokens += float64(len(tokens) - 1)
				clientSeconds += tokens[len(tokens)-1].at.Sub(tokens[0].at).Seconds()
			})
		}
		synctest.Wait()
		if got := r.server.Truth(); got.Running > 64 || got.Running+got.Waiting != 200 {
			t.Errorf("%d run and %d wait, want at most 64 and 200 in all", got.Running, got.Waiting)
		}
		wg.Wait()
		truth := r.server.Truth()
		var tokens, seconds float64
		for _, p := range truth.Points {
			tokens += p.Tokens
			seconds += p.StreamSeconds
		}
		if tokens != clientTokens || !near(seconds, clientSeconds, 1e-9) {
			t.Errorf("truth has %v tokens in %v s, the clients saw %v in %v s", tokens, seconds, clientTokens, clientSeconds)
		}
		if truth.Running != 0 || truth.Waiting != 0 || truth.Cancelled != 0 {
			t.Errorf("at the end %d run, %d wait, %d were cancelled", truth.Running, truth.Waiting, truth.Cancelled)
		}
		last := truth.Points[len(truth.Points)-1]
		if last.N != 64 {
			t.Errorf("the highest level is %d, want the 64 slots", last.N)
		}
	})
}

func TestAClientThatLeavesIsCancelledInEveryPhase(t *testing.T) {
	const long = `"messages":[{"role":"user","content":"` // prompt of 4000 tokens: 4 s of prefill
	prompt := long + strings.Repeat("word", 4000) + `"}]`
	for name, c := range map[string]struct {
		body  string
		after time.Duration
		full  bool // the only slot is taken
	}{
		"in line, streaming":     {`{` + hello + `,"stream":true}`, time.Second, true},
		"in line, not streaming": {`{` + hello + `}`, time.Second, true},
		"in prefill":             {`{` + prompt + `,"stream":true}`, time.Second, false},
		"streaming":              {`{` + hello + `,"stream":true,"max_tokens":1000}`, 10 * time.Second, false},
		"not streaming":          {`{` + hello + `,"max_tokens":1000}`, 10 * time.Second, false},
		"two of n":               {`{` + hello + `,"n":2,"stream":true,"max_tokens":1000}`, 10 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Model: Model{A: 0.025, D: 0.001}}
				if c.full {
					o.MaxNumSeqs = 1
				}
				r := serve(t, o)
				hold, release := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				if c.full {
					wg.Go(func() { r.stream(hold, chat, `{`+hello+`,"stream":true,"max_tokens":100000}`) })
					synctest.Wait()
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.after)
				defer cancel()
				if s := r.stream(ctx, chat, c.body); !errors.Is(s.err, context.DeadlineExceeded) {
					t.Errorf("the request ended with %v, want the client's deadline", s.err)
				}
				synctest.Wait()
				want := 1
				if name == "two of n" {
					want = 2
				}
				got := r.server.Truth()
				if held := map[bool]int{true: 1}[c.full]; got.Cancelled != want || got.Waiting != 0 || got.Running != held {
					t.Errorf("%d were cancelled, %d wait, %d run; want %d, 0, %d", got.Cancelled, got.Waiting, got.Running, want, held)
				}
				release()
				wg.Wait()
			})
		})
	}
}

func TestASlowClientDelaysOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		slow := r.raw(`{` + hello + `,"stream":true,"max_tokens":1000}`)
		defer slow.Close()
		<-time.After(time.Second) // virtual; it reads nothing
		s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":401}`)
		if got := s.tps(t); math.Abs(got-40) > 0.0005 {
			t.Errorf("beside a blocked client a stream ran at %.4f tokens/s, want 40.000", got)
		}
		<-time.After(time.Minute)
		if got := r.server.Truth(); got.Running != 0 {
			t.Errorf("%d still run, want the blocked client's answer to be ready", got.Running)
		}
		// What it did not take is all there.
		data := make([]byte, 0, 1<<20)
		for buf := make([]byte, 4096); ; {
			n, err := slow.Read(buf)
			data = append(data, buf[:n]...)
			if err != nil || strings.Contains(string(data), "[DONE]") {
				break
			}
		}
		// One more for the finish chunk; the role chunk says "role" first.
		if got := strings.Count(string(data), `"delta":{"content":`); got != 1001 {
			t.Errorf("the slow client got %d chunks, want 1000 tokens and the end", got)
		}
	})
}

func TestTheEndOfRunCutsWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		var wg sync.WaitGroup
		wg.Go(func() {
			if s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":1000}`); !errors.Is(s.err, io.ErrUnexpectedEOF) {
				t.Errorf("a stream ended with %v, want to be cut", s.err)
			}
		})
		wg.Go(func() {
			if _, err := r.do(t.Context(), "POST", chat, `{`+hello+`,"max_tokens":1000}`); !errors.Is(err, io.EOF) {
				t.Errorf("an answer ended with %v, want to be cut", err)
			}
		})
		<-time.After(time.Second)
		r.stop()
		wg.Wait()
		if err := r.server.Run(t.Context()); err == nil {
			t.Error("Run ran twice")
		}
	})
}

func TestRunMayComeAfterTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(NewServer(Options{Names: []string{"m"}, Model: Model{A: 0.025}, Noise: -1}))(t)
		g := must.Get((&request{}).generation([]int{1}))(t)
		must.Do(t, s.submit(g))
		<-time.After(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must.Do(t, s.Run(ctx))
		if most, complete := g.produced(); most != standardTokens || !complete {
			t.Errorf("%d tokens, want %d", most, standardTokens)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	for behave, want := range map[string]int{"": http.StatusServiceUnavailable, "unbounded-queue": 0} {
		synctest.Test(t, func(t *testing.T) {
			o := Options{Names: []string{"m"}, Model: Model{A: 0.025}}
			if behave != "" {
				o.Behaviours = []string{behave}
			}
			s := must.Get(NewServer(o))(t)
			n := 100
			for i := range queueLimit/n + 1 {
				g, err := (&request{N: &n}).generation([]int{1})
				must.Do(t, err)
				err = s.submit(g)
				var e *apiError
				if i < queueLimit/n {
					if err != nil {
						t.Fatalf("submission %d: %v", i, err)
					}
				} else if got := errors.As(err, &e); got != (want != 0) || got && e.status != want {
					t.Errorf("beyond the limit, behaving as %q: %v, want status %d", behave, err, want)
				}
			}
		})
	}
}

func TestNewServerSaysWhatIsWrong(t *testing.T) {
	ok := Options{Names: []string{"m"}, Model: steady}
	for want, edit := range map[string]func(*Options){
		"Names":            func(o *Options) { o.Names = nil },
		"Model":            func(o *Options) { o.Model = Model{} },
		"closes-after":     func(o *Options) { o.Behaviours = []string{"nope"} }, // the known ones are listed
		"exclude":          func(o *Options) { o.Behaviours = []string{"role-at-once", "role-and-first-token-in-one-write"} },
		"refuse":           func(o *Options) { o.Faults = []string{"nope:1"} },
		"drift":            func(o *Options) { o.Faults = []string{"drift"} },
		"no delay":         func(o *Options) { o.Faults = []string{"drift:2@later"} },
		"from 400 to 599":  func(o *Options) { o.Faults = []string{"status:200"} },
		"neither true nor": func(o *Options) { o.Faults = []string{"stall:2"} },
		"no number":        func(o *Options) { o.Faults = []string{"cut:-1"} },
	} {
		o := ok
		edit(&o)
		if _, err := NewServer(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewServer: %v, want an error about %q", err, want)
		}
	}
	if _, err := NewServer(ok); err != nil {
		t.Errorf("NewServer: %v", err)
	}
}
