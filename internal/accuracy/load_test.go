package accuracy

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
)

// arrival is one request: when it is sent, and how long prompt and answer are,
// in tokens.
type arrival struct {
	at             time.Duration
	prompt, answer int
}

// source gives arrivals one after the other, without end.
type source func() arrival

// load makes a source; r decides what is left to chance.
type load func(r *rand.Rand) source

// traces are the two recorded loads.
var traces = sync.OnceValue(func() (t struct{ conv, code []loadgen.Arrival }) {
	t.conv, t.code = readTrace("azure-conv-2023.csv"), readTrace("azure-code-2023.csv")
	return t
})

func readTrace(name string) []loadgen.Arrival {
	f, err := os.Open(filepath.Join("..", "..", "examples", "traces", name))
	if err != nil {
		panic(err)
	}
	defer f.Close()
	list, err := loadgen.ReadTrace(f.Name(), f, 0)
	if err != nil {
		panic(err)
	}
	return list
}

func conversations() []loadgen.Arrival { return traces().conv }
func completions() []loadgen.Arrival   { return traces().code }

// bursts is a two-state process: for 5 seconds and an exponential time of mean
// 10 the rate is 3 times its mean (a quarter of the time) or a third of it. The
// requests are those of a trace, in any order.
func bursts(rate float64, lengths func() []loadgen.Arrival) load {
	return func(r *rand.Rand) source {
		var at, turn time.Duration
		factor := 1.0
		return func() arrival {
			for at >= turn {
				factor = 1.0 / 3
				if r.Float64() < 0.25 {
					factor = 3
				}
				turn += seconds(5 + 10*r.ExpFloat64())
			}
			at += seconds(r.ExpFloat64() / (rate * factor))
			a := lengths()[r.IntN(len(lengths()))]
			return arrival{at, max(a.PromptTokens, 1), a.OutputTokens}
		}
	}
}

// replay is a trace from a random place on, over and over, of which each
// request is kept with the given chance: it thins the load and leaves its
// bursts.
func replay(trace func() []loadgen.Arrival, keep float64) load {
	return func(r *rand.Rand) source {
		list := trace()
		i := r.IntN(len(list))
		lap := list[len(list)-1].At + time.Second
		start := -list[i].At
		return func() arrival {
			for {
				a := list[i]
				at := start + a.At
				if i++; i == len(list) {
					i, start = 0, start+lap
				}
				if r.Float64() < keep {
					return arrival{at, max(a.PromptTokens, 1), a.OutputTokens}
				}
			}
		}
	}
}

// scaled multiplies every prompt.
func scaled(l load, prompts float64) load {
	return func(r *rand.Rand) source {
		next := l(r)
		return func() arrival {
			a := next()
			a.prompt = max(int(float64(a.prompt)*prompts), 1)
			return a
		}
	}
}

// longer multiplies every prompt, and every answer.
func longer(l load, prompts float64, answers int) load {
	l = scaled(l, prompts)
	return func(r *rand.Rand) source {
		next := l(r)
		return func() arrival {
			a := next()
			a.answer *= answers
			return a
		}
	}
}

// sometimes makes one prompt in so many as long as is said.
func sometimes(l load, one, prompt int) load {
	return func(r *rand.Rand) source {
		next := l(r)
		return func() arrival {
			a := next()
			if r.IntN(one) == 0 {
				a.prompt = prompt
			}
			return a
		}
	}
}

// promptless leaves one token of every prompt.
func promptless(l load) load {
	return func(r *rand.Rand) source {
		next := l(r)
		return func() arrival {
			a := next()
			a.prompt = 1
			return a
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// TestLoads checks that a load has the rate and the lengths it is meant to
// have.
func TestLoads(t *testing.T) {
	for _, test := range []struct {
		name               string
		load               load
		rate, mean, answer float64
	}{
		{"bursts", bursts(2.7, conversations), 2.7, 1155, 211},
		{"conversations", replay(conversations, 0.5), 2.77, 1155, 211},
		{"completions", replay(completions, 1), 2.57, 2048, 27.9},
		{"scaled", scaled(replay(completions, 1), 3), 2.57, 3 * 2048, 27.9},
	} {
		const n = 200_000
		next := test.load(rand.New(rand.NewPCG(1, 1)))
		var prompts, answers float64
		var last time.Duration
		for range n {
			a := next()
			if a.at < last {
				t.Fatalf("%s: arrivals go back in time, from %v to %v", test.name, last, a.at)
			}
			last = a.at
			prompts, answers = prompts+float64(a.prompt), answers+float64(a.answer)
		}
		for _, c := range []struct {
			what      string
			got, want float64
		}{{"requests/s", n / last.Seconds(), test.rate}, {"prompt tokens", prompts / n, test.mean}, {"output tokens", answers / n, test.answer}} {
			if c.got < 0.95*c.want || c.got > 1.05*c.want {
				t.Errorf("%s: %.2f %s on average, want %.2f", test.name, c.got, c.what, c.want)
			}
		}
	}
}
