package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
)

// Answer is what was measured. As JSON it can be the prior of a backend.
type Answer struct {
	URL     string    `json:"url"`
	Model   string    `json:"model"`
	Prompt  string    `json:"prompt_tokens"`
	Output  string    `json:"output_tokens"`
	Dataset int       `json:"dataset_prompts,omitempty"`
	Started time.Time `json:"started"`

	DurationS float64 `json:"duration_s"` // of each level
	WarmupS   float64 `json:"warmup_s"`
	Repeats   int     `json:"repeats"`
	Requests  int     `json:"requests,omitempty"` // of each level, instead of a duration
	SLO       SLO     `json:"slo"`
	Floor     float64 `json:"floor_tps,omitempty"`

	Points []Point `json:"points"`
	Failed []Level `json:"failed_levels"` // those that gave nothing

	// Knee is the level beyond which more users bring little more in all, and
	// AtFloor the most users who still get the floor; 0 = not known, or none.
	Knee         float64 `json:"knee_n,omitempty"`
	AtFloor      float64 `json:"largest_n_at_floor,omitempty"`
	AtFloorLeast bool    `json:"largest_n_at_floor_is_lower_bound,omitempty"`
}

// Level is a load to measure at: so many users at once, or so many requests per second.
// Error is why it gave nothing.
type Level struct {
	N     int     `json:"n,omitempty"`
	Rate  float64 `json:"rate,omitempty"`
	Error string  `json:"error"`
}

func (l Level) String() string { return name(l.N, l.Rate) }

func name(n int, rate float64) string {
	switch {
	case rate > 0:
		return fmt.Sprintf("%g requests/s", rate)
	case n > 0:
		return fmt.Sprintf("n = %d", n)
	}
	return "the trace"
}

// Run measures level by level. A level that gives nothing is in Failed and ends
// nothing. The error is that ctx ended, or that no level gave anything.
func (o *Options) Run(ctx context.Context) (*Answer, error) {
	o.SLO.fill()
	a := &Answer{
		URL: o.Base, Model: o.Model, Prompt: o.Prompt.String(), Output: o.Output.String(), Dataset: len(o.Dataset), Started: time.Now().UTC(),
		Repeats: o.Repeats, SLO: o.SLO, Floor: o.Floor,
		Points: []Point{}, Failed: []Level{},
	}
	var levels []Level
	for _, n := range o.Users {
		levels = append(levels, Level{N: n})
	}
	for _, r := range o.Rates {
		levels = append(levels, Level{Rate: r})
	}
	if len(o.Trace) > 0 {
		levels = append(levels, Level{})
		// All of it to its end: the last ones are as long as the others.
		o.Requests, o.Duration, o.Warmup = len(o.Trace), o.Trace[len(o.Trace)-1].At, 0
	}
	a.DurationS, a.WarmupS, a.Requests = o.Duration.Seconds(), o.Warmup.Seconds(), o.Requests
	began, all, done := time.Now(), len(levels)*o.Repeats, 0
	var first error
	for _, l := range levels {
		var runs []Point
		var failed error
		for range o.Repeats {
			left := time.Duration(all-done) * (o.Duration + o.Warmup)
			if done > 0 {
				left = time.Since(began) / time.Duration(done) * time.Duration(all-done)
			}
			if o.Progress != nil {
				o.Progress(l.String(), float64(done)/float64(all), left)
			}
			p, err := o.level(ctx, l, uint64(done))
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if done++; err == nil {
				runs = append(runs, p)
			} else {
				failed = err
			}
		}
		if len(runs) == 0 {
			l.Error = failed.Error()
			a.Failed = append(a.Failed, l)
			first = errors.Join(first, fmt.Errorf("%s: %w", l, failed))
			continue
		}
		p := average(runs)
		a.Points = append(a.Points, p)
		if o.Done != nil {
			o.Done(&p)
		}
	}
	if len(a.Points) == 0 {
		return nil, fmt.Errorf("bench: %w", first)
	}
	a.sum()
	return a, nil
}

// timed is a result with when its request was sent, since the level began.
type timed struct {
	loadgen.Result
	at time.Duration
}

// level loads the URL once.
func (o *Options) level(ctx context.Context, l Level, repeat uint64) (Point, error) {
	limit := o.Warmup + o.Duration
	if o.Requests > 0 {
		limit = mostLevel
	}
	running, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client := loadgen.Client{BaseURL: o.Base, Key: o.Key, HTTP: o.HTTP}
	began := time.Now()
	var mu sync.Mutex
	var results []timed
	next := 0
	send := func(rng *rand.Rand, r *loadgen.Request) loadgen.Result {
		mu.Lock()
		i := next
		next++
		mu.Unlock()
		if r == nil {
			drawn := o.request(rng, i)
			r = &drawn
		}
		at := time.Since(began)
		result := client.Stream(running, *r)
		mu.Lock()
		results = append(results, timed{result, at})
		mu.Unlock()
		return result
	}
	switch {
	case l.N > 0:
		o.closed(running, l.N, repeat, send)
	default:
		o.open(running, l, repeat, began, send)
	}
	return pointOf(l, results, time.Since(began), o)
}

// mostLevel is how long a level of so many requests may last.
const mostLevel = 24 * time.Hour

// budget counts the requests of a level that may still be sent; nil = any.
type budget struct{ left atomic.Int64 }

func (o *Options) newBudget() *budget {
	if o.Requests == 0 {
		return nil
	}
	b := &budget{}
	b.left.Store(int64(o.Requests))
	return b
}

// take reports whether one more may be sent.
func (b *budget) take() bool { return b == nil || b.left.Add(-1) >= 0 }

// closed keeps n users going, each with one stream after the other. Who is refused
// comes back as told.
func (o *Options) closed(ctx context.Context, n int, repeat uint64, send func(*rand.Rand, *loadgen.Request) loadgen.Result) {
	var users sync.WaitGroup
	left := o.newBudget()
	for user := range n {
		users.Go(func() {
			rng := rand.New(rand.NewPCG(o.Seed^repeat<<32, uint64(n)<<32|uint64(user)))
			for ctx.Err() == nil && left.take() {
				if r := send(rng, nil); r.Outcome == loadgen.Shed || r.Outcome == loadgen.Failed {
					loadgen.Wait(ctx, max(r.RetryAfter, 100*time.Millisecond))
				}
			}
		})
	}
	users.Wait()
}

// open sends requests whatever becomes of those before: as a trace has them, or at
// a rate.
func (o *Options) open(ctx context.Context, l Level, repeat uint64, began time.Time, send func(*rand.Rand, *loadgen.Request) loadgen.Result) {
	rng := rand.New(rand.NewPCG(o.Seed^repeat<<32, 1))
	var sent sync.WaitGroup
	defer sent.Wait()
	room := make(chan struct{}, MostUsers)
	at := time.Duration(0)
	left := o.newBudget()
	for i := 0; ctx.Err() == nil && left.take(); i++ {
		var r loadgen.Request
		if l.Rate > 0 {
			at += time.Duration(rng.ExpFloat64() / l.Rate * float64(time.Second))
			r = o.request(rng, i)
		} else {
			if i >= len(o.Trace) {
				return
			}
			a := o.Trace[i]
			at = a.At
			r = loadgen.Request{Model: o.Model, PromptTokens: a.PromptTokens, MaxTokens: max(a.OutputTokens, 1), Salt: rng.Uint64() | 1, Usage: true}
		}
		loadgen.Wait(ctx, time.Until(began.Add(at)))
		if ctx.Err() != nil {
			return
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		sent.Go(func() {
			send(nil, &r)
			<-room
		})
	}
}
