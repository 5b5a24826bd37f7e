package plan

import (
	"context"
	_ "embed" // example.yaml
	"os"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/report"
)

// Example is the fleet of a plan without a configuration.
//
//go:embed example.yaml
var Example []byte

// Question is the flags of pacer plan, as typed.
type Question struct {
	Config, Admin, Store string

	Trace                       string
	Rate, Shape, Prompt, Output string
	Shares                      []string
	Scale                       float64
	Duration, Warmup            time.Duration // 0 = not stated

	Faults, Policies, Replicas []string
	Attainment                 float64 // 0 = what each route promises
	Sweep                      string  // "" = none
	Prefill                    float64 // prompt tokens/s where nothing tells; 0 = not stated
	Slots                      int     // sequences that engines run at once where nothing tells; 0 = not stated
	Seed                       uint64

	// Given tells which flags were typed.
	Given func(flag string) bool

	// Dial replaces the network; nil means TCP.
	Dial ask.Dial
}

// Answer plays what is asked for. progress is shown how far it is.
func (q *Question) Answer(ctx context.Context, progress func(string)) (*Answer, error) {
	p, err := q.read()
	if err != nil {
		return nil, report.Usage(err)
	}
	if err := p.learnCurves(ctx, q); err != nil {
		return nil, err
	}
	if err := p.measureLoad(); err != nil {
		return nil, report.Usage(err)
	}
	runs, err := p.playAll(ctx, func(runs int, share float64) { progress(bar(runs, share)) })
	progress("")
	if err != nil {
		return nil, err
	}
	return p.answer(runs), nil
}

// configuration returns the fleet, and how it is called.
func (q *Question) configuration() (cfg *config.Config, name string, err error) {
	if q.Config == "" {
		cfg, err = config.Parse(exampleName, Example, os.LookupEnv)
		return cfg, exampleName, err
	}
	cfg, err = config.Load(q.Config)
	return cfg, q.Config, err
}
