package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
)

// load is what the demo's users do. run returns when ctx ends and every
// request that it began has ended.
type load interface {
	run(ctx context.Context, d *demo) error
	// describe says what is going on at t, for the screen.
	describe(t time.Duration) string
	users() int // active now
}

func newLoad(o Options) (load, error) {
	if o.Replay == "" {
		return &scenario{duration: o.Duration, seed: o.Seed}, nil
	}
	f, err := os.Open(o.Replay)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	arrivals, err := loadgen.ReadTrace(o.Replay, f, o.Duration)
	if err != nil {
		return nil, err
	}
	if len(arrivals) == 0 {
		return nil, fmt.Errorf("%s: no request in the first %v", o.Replay, o.Duration)
	}
	return &replay{arrivals: arrivals, file: o.Replay}, nil
}

// Shares of the demo's duration at which things happen, and its numbers.
const (
	rampEnds   = 0.35
	spikeFrom  = 0.50
	spikeTo    = 0.65
	killAt     = 0.75
	backAt     = 0.85
	rampUsers  = 50
	spikeUsers = 200
	batchUsers = 12
	victim     = 1 // of the fleet

	// lastWords is how long requests may go on after the load has ended.
	lastWords = 30 * time.Second
)

// scenario is the standard load: closed-loop users who ramp up and spike, and
// a backend that dies and comes back.
type scenario struct {
	duration time.Duration
	seed     uint64
	active   atomic.Int64
}

func (s *scenario) users() int { return int(s.active.Load()) }

// wanted is how many interactive users there are at t.
func (s *scenario) wanted(t time.Duration) int {
	switch x := t.Seconds() / s.duration.Seconds(); {
	case x < rampEnds:
		return 1 + int(float64(rampUsers-1)*x/rampEnds)
	case x >= spikeFrom && x < spikeTo:
		return spikeUsers
	}
	return rampUsers
}

func (s *scenario) describe(t time.Duration) string {
	switch x := t.Seconds() / s.duration.Seconds(); {
	case x < rampEnds:
		return "ramp"
	case x < spikeFrom:
		return "steady"
	case x < spikeTo:
		return "spike"
	case x < killAt:
		return "steady"
	case x < backAt:
		return "one backend killed"
	}
	return "it is back"
}

func (s *scenario) run(ctx context.Context, d *demo) error {
	// Requests that run when the load ends may finish; an interrupt ends them.
	requests, cancel := lingering(ctx, lastWords)
	defer cancel()
	var wg sync.WaitGroup
	for i := range spikeUsers {
		wg.Go(func() { s.interactive(ctx, requests, d, i) })
	}
	for i := range batchUsers {
		wg.Go(func() { s.batch(ctx, requests, d, i) })
	}
	wg.Go(func() { s.faults(ctx, d) })
	wg.Wait()
	return nil
}

// interactive is user i: asks, reads, thinks, as long as the scenario wants so
// many users. A user who is shed comes back when told to.
func (s *scenario) interactive(ctx, requests context.Context, d *demo, i int) {
	rng := rand.New(rand.NewPCG(s.seed, uint64(i)))
	for ctx.Err() == nil {
		if s.wanted(time.Since(d.started)) <= i {
			loadgen.Wait(ctx, 200*time.Millisecond)
			continue
		}
		s.active.Add(1)
		r := d.client.Stream(requests, loadgen.Request{
			Model: "chat", PromptTokens: 30 + rng.IntN(270), MaxTokens: 100 + rng.IntN(300),
		})
		s.active.Add(-1)
		d.tally.add("chat", r)
		pause := time.Duration((0.5 + rng.ExpFloat64()) * float64(time.Second))
		loadgen.Wait(ctx, max(pause, r.RetryAfter))
	}
}

// batch is a worker that sends one job after the other and waits when shed.
func (s *scenario) batch(ctx, requests context.Context, d *demo, i int) {
	rng := rand.New(rand.NewPCG(s.seed, uint64(1000+i)))
	for ctx.Err() == nil {
		r := d.client.Stream(requests, loadgen.Request{
			Model: "nightly", PromptTokens: 100 + rng.IntN(400), MaxTokens: 200 + rng.IntN(400),
		})
		d.tally.add("nightly", r)
		loadgen.Wait(ctx, max(100*time.Millisecond, r.RetryAfter))
	}
}

// faults kills one backend and brings it back.
func (s *scenario) faults(ctx context.Context, d *demo) {
	at := func(share float64) bool {
		return loadgen.Wait(ctx, time.Duration(share*float64(s.duration))-time.Since(d.started))
	}
	if !at(killAt) {
		return
	}
	d.fleet[victim].kill()
	d.screen.say("killed " + d.fleet[victim].name)
	at(backAt) // brought back even when the load ends first
	if err := d.fleet[victim].start(); err != nil {
		d.screen.say(err.Error())
		return
	}
	d.screen.say(d.fleet[victim].name + " is back")
}

// replay sends the requests of a trace at their recorded times, whatever
// became of the others.
type replay struct {
	arrivals []loadgen.Arrival
	file     string
	active   atomic.Int64
}

func (r *replay) users() int { return int(r.active.Load()) }

func (r *replay) describe(time.Duration) string { return "replay of " + filepath.Base(r.file) }

func (r *replay) run(ctx context.Context, d *demo) error {
	requests, cancel := lingering(ctx, lastWords)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, a := range r.arrivals {
		if !loadgen.Wait(ctx, a.At-time.Since(d.started)) {
			return nil
		}
		wg.Go(func() {
			r.active.Add(1)
			defer r.active.Add(-1)
			d.tally.add("chat", d.client.Stream(requests, loadgen.Request{
				Model: "chat", PromptTokens: a.PromptTokens, MaxTokens: a.OutputTokens,
			}))
		})
	}
	return nil
}

// lingering returns a context that ends at once when ctx is cancelled, and
// grace later when ctx comes to its deadline.
func lingering(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if ctx.Err() == context.DeadlineExceeded {
			time.AfterFunc(grace, cancel)
			return
		}
		cancel()
	})
	return out, cancel
}

// newClientTransport returns the transport of all users together.
func newClientTransport(o Options) *http.Transport {
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	return &http.Transport{
		DialContext:         dial,
		MaxIdleConnsPerHost: spikeUsers + batchUsers,
		DisableCompression:  true,
	}
}
