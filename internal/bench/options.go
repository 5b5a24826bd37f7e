package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/loadgen"
)

// Bounds of a run.
const (
	MostUsers   = 10_000
	mostLength  = 1 << 20 // tokens
	mostRepeats = 100

	mostRequests = 1_000_000
)

// Options says what is sent, and where.
type Options struct {
	Base  string // ends in the version
	Key   string // "" = none
	Model string // "" = the first that the URL lists

	Users []int             // levels of a closed loop
	Rates []float64         // levels of an open loop: requests per second, Poisson
	Trace []loadgen.Arrival // one level of an open loop: as recorded

	Duration time.Duration // of each level, after its warm-up
	Warmup   time.Duration
	Repeats  int
	Requests int           // of each level, all to their end, instead of Duration and Warmup; 0 = these
	Prompt   arena.Lengths // in tokens, about
	Output   arena.Lengths // in tokens, at most

	// OutputGiven says that Output holds also where the dataset has lengths of its own.
	OutputGiven bool

	Dataset []Sample // prompts, in turns; nil = made up
	SLO     SLO
	Floor   float64 // tokens/s of one stream; 0 = none
	Seed    uint64

	HTTP *http.Client // required

	// Progress is told what is measured, how much of all is done (0 to 1) and how
	// long the rest takes; nil = nobody.
	Progress func(what string, share float64, left time.Duration)
	// Done is told of each level; nil = nobody.
	Done func(p *Point)
}

// SLO is what a request has to get to be good; 0 = anything.
type SLO struct {
	TTFT time.Duration `json:"-"`
	TPS  float64       `json:"min_tps,omitempty"`
	E2E  time.Duration `json:"-"`

	TTFTSeconds float64 `json:"max_ttft_s,omitempty"`
	E2ESeconds  float64 `json:"max_e2e_s,omitempty"`
}

func (s *SLO) fill() { s.TTFTSeconds, s.E2ESeconds = s.TTFT.Seconds(), s.E2E.Seconds() }

// met reports whether r was good.
func (s *SLO) met(r *loadgen.Result) bool {
	tps, known := r.TPS()
	return r.Outcome == loadgen.Done &&
		(s.TTFT == 0 || r.TTFT <= s.TTFT) && (s.E2E == 0 || r.TTFT+r.Decode <= s.E2E) &&
		(s.TPS == 0 || !known || tps >= s.TPS)
}

// Check says what of o cannot be.
func (o *Options) Check() error {
	forms := 0
	for _, given := range []bool{len(o.Users) > 0, len(o.Rates) > 0, len(o.Trace) > 0} {
		if given {
			forms++
		}
	}
	switch {
	case forms != 1:
		return errors.New("--n, --rate and --trace are ways to say the load; keep one")
	case o.Requests < 0 || o.Requests > mostRequests || o.Requests > 0 && len(o.Trace) > 0:
		return fmt.Errorf("--requests: want 1 to %d, and no --trace", mostRequests)
	case o.Duration < 100*time.Millisecond || o.Duration > 24*time.Hour:
		return fmt.Errorf("--duration %v: want 100ms to 24h", o.Duration)
	case o.Warmup < 0 || o.Warmup > 24*time.Hour:
		return fmt.Errorf("--warmup %v: want 0s to 24h", o.Warmup)
	case o.Repeats < 1 || o.Repeats > mostRepeats:
		return fmt.Errorf("--repeats %d: want 1 to %d", o.Repeats, mostRepeats)
	case o.Prompt.Mean > mostLength:
		return fmt.Errorf("--prompt: want up to %d tokens", mostLength)
	case o.Output.Mean < 2 || o.Output.Mean > mostLength:
		return fmt.Errorf("--output: want 2 to %d tokens", mostLength)
	case o.SLO.TTFT < 0 || o.SLO.E2E < 0 || o.SLO.TPS < 0 || o.Floor < 0:
		return errors.New("an SLO or a floor is below 0")
	}
	for _, n := range o.Users {
		if n < 1 || n > MostUsers {
			return fmt.Errorf("--n: %d users at once are too many; write up to %d", n, MostUsers)
		}
	}
	for _, r := range o.Rates {
		if !(r > 0 && r <= 10_000) {
			return fmt.Errorf("--rate %v: want above 0 to 10000 requests per second", r)
		}
	}
	return nil
}

// request draws the i-th request of a level.
func (o *Options) request(rng *rand.Rand, i int) loadgen.Request {
	r := loadgen.Request{Model: o.Model, PromptTokens: o.Prompt.Draw(rng), MaxTokens: max(o.Output.Draw(rng), 2), Salt: rng.Uint64() | 1, Usage: true}
	if len(o.Dataset) > 0 {
		s := o.Dataset[i%len(o.Dataset)]
		if r.Text = s.Text; s.Output > 0 && !o.OutputGiven {
			r.MaxTokens = max(s.Output, 2)
		}
	}
	return r
}
