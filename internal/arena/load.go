package arena

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Share says how much of a load goes to a route.
type Share struct {
	Route  string
	Weight float64 // at least 0; only its ratio to the others' counts
}

// Split sends each request of load to a route drawn by its share. There has to
// be a share above 0.
func Split(load iter.Seq[Arrival], shares []Share, seed uint64) iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		rng := stream(seed, streamRoutes)
		var sum float64
		for _, s := range shares {
			sum += s.Weight
		}
		for a := range load {
			x := rng.Float64() * sum
			for _, s := range shares {
				if s.Weight > 0 {
					a.Route = s.Route
					if x < s.Weight {
						break
					}
				}
				x -= s.Weight
			}
			if !yield(a) {
				return
			}
		}
	}
}

// Summary is what a load comes to.
type Summary struct {
	Requests     int
	PromptTokens float64       // mean of a request
	OutputTokens float64       // mean of an answer
	Last         time.Duration // arrival of the last request
}

// Summarize reads load up to until (0 = to its end).
func Summarize(load iter.Seq[Arrival], until time.Duration) Summary {
	var s Summary
	for a := range load {
		if until > 0 && a.At >= until {
			break
		}
		s.Requests++
		s.PromptTokens += float64(a.PromptTokens)
		s.OutputTokens += float64(a.OutputTokens)
		s.Last = a.At
	}
	if s.Requests > 0 {
		s.PromptTokens /= float64(s.Requests)
		s.OutputTokens /= float64(s.Requests)
	}
	return s
}

// What is drawn of a load. Each has numbers of its own, so that other lengths
// leave the arrivals as they are.
const (
	streamArrivals = iota
	streamPrompts
	streamOutputs
	streamRoutes
)

func stream(seed uint64, of uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0x10ad<<16|of))
}

// Generator makes requests up: a Poisson process whose rate follows a shape.
type Generator struct {
	Rate           float64 // requests/s, above 0
	Shape          Shape
	Prompt, Output Lengths
	Duration       time.Duration // above 0
	Seed           uint64
}

// Arrivals returns the requests, the same ones each time.
func (g Generator) Arrivals() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		times := stream(g.Seed, streamArrivals)
		prompts, outputs := stream(g.Seed, streamPrompts), stream(g.Seed, streamOutputs)
		highest := g.Shape.highest()
		var at float64 // seconds
		for {
			// Thinning: candidates at the highest rate, of which each is kept
			// with the chance that the rate of its moment has.
			at += times.ExpFloat64() / (g.Rate * highest)
			if !(at < g.Duration.Seconds()) {
				return
			}
			if times.Float64()*highest >= g.Shape.at(at, g.Duration.Seconds()) {
				continue
			}
			a := Arrival{
				At:           time.Duration(at * float64(time.Second)),
				PromptTokens: g.Prompt.draw(prompts), OutputTokens: g.Output.draw(outputs),
			}
			if !yield(a) {
				return
			}
		}
	}
}

// Shape is how the rate of a generated load goes on, as a multiple of its Rate.
// The zero value is a steady one.
type Shape struct {
	Kind   ShapeKind
	Factor float64 // of Bursts and Spike: 1 or more; 0 = 3
}

// ShapeKind names a shape.
type ShapeKind uint8

// The shapes.
const (
	Steady ShapeKind = iota
	Bursts           // ten seconds of each minute at Factor times the rate, the others so much lower that the mean is the rate
	Ramp             // from none to the rate at the end
	Spike            // the rate, but Factor times of it in the middle fifth
)

const (
	burstEvery, burstFrom, burstTo = 60.0, 25.0, 35.0 // seconds
	spikeFrom, spikeTo             = 0.4, 0.6         // of the duration
	defaultFactor                  = 3

	// Beyond maxBurst nothing is left between the bursts.
	maxBurst = burstEvery / (burstTo - burstFrom)
	maxSpike = 100
)

// shapes are the names that ParseShape reads, with the highest factor that may
// follow; 0 = none.
var shapes = []struct {
	name string
	kind ShapeKind
	most float64
}{{"poisson", Steady, 0}, {"bursts", Bursts, maxBurst}, {"ramp", Ramp, 0}, {"spike", Spike, maxSpike}}

// ParseShape reads poisson, bursts, ramp or spike; bursts:4 and spike:4 state
// the factor.
func ParseShape(text string) (Shape, error) {
	name, factor, stated := strings.Cut(text, ":")
	for _, s := range shapes {
		if s.name != name {
			continue
		}
		shape := Shape{Kind: s.kind}
		if !stated {
			return shape, nil
		}
		f, err := strconv.ParseFloat(factor, 64)
		switch {
		case s.most == 0:
			return Shape{}, fmt.Errorf("the shape %s takes no factor; write %s", name, name)
		case err != nil || !(f >= 1 && f <= s.most):
			return Shape{}, fmt.Errorf("the factor %.20q of the shape %s is none; write a number from 1 to %.3g, as in %s:%d", factor, name, s.most, name, defaultFactor)
		}
		shape.Factor = f
		return shape, nil
	}
	return Shape{}, fmt.Errorf("no shape %.20q; write poisson, bursts, ramp or spike", text)
}

// at is the multiple of the rate at second t of all.
func (s Shape) at(t, all float64) float64 {
	switch s.Kind {
	case Bursts:
		if f := math.Mod(t, burstEvery); f >= burstFrom && f < burstTo {
			return s.factor()
		}
		const inside = burstTo - burstFrom
		return (burstEvery - s.factor()*inside) / (burstEvery - inside)
	case Ramp:
		return t / all
	case Spike:
		if x := t / all; x >= spikeFrom && x < spikeTo {
			return s.factor()
		}
	}
	return 1
}

func (s Shape) highest() float64 {
	if s.Kind == Bursts || s.Kind == Spike {
		return s.factor()
	}
	return 1
}

func (s Shape) factor() float64 {
	if s.Factor == 0 {
		return defaultFactor
	}
	return s.Factor
}

// String describes the shape.
func (s Shape) String() string {
	switch s.Kind {
	case Bursts:
		return fmt.Sprintf("bursts of ×%.3g for %.0f s a minute", s.factor(), burstTo-burstFrom)
	case Ramp:
		return "a ramp from none to the rate"
	case Spike:
		return fmt.Sprintf("a spike of ×%.3g in the middle fifth", s.factor())
	}
	return "Poisson"
}
