package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pacer-dev/pacer/config"
)

// planExample is the fleet of a plan without a configuration.
//
//go:embed plan_example.yaml
var planExample []byte

// planOptions are the flags of pacer plan, as typed.
type planOptions struct {
	config, admin, store string

	trace                       string
	rate, shape, prompt, output string
	shares                      []string
	scale                       float64
	duration, warmup            time.Duration // 0 = not stated

	faults, policies, replicas []string
	attainment                 float64 // 0 = what each route promises
	sweep                      string  // "" = none
	prefill                    float64 // prompt tokens/s where nothing tells; 0 = not stated
	seed                       uint64

	asJSON, asCSV bool

	// dial replaces the network in tests; nil means TCP.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func newPlanCommand() *cobra.Command {
	var o planOptions
	c := &cobra.Command{
		Use:   "plan",
		Short: "Ask what a fleet can carry: are floors kept at a load, with how many GPUs, at what cost",
		Long: `Play a load against the fleet of a configuration, in virtual time and with the
real router: are the floors kept, what do users get, what does each backend
carry, what does it cost? Nothing is sent anywhere.

Each backend needs a curve: learned by a running gateway (--admin) or from its
store (--store), or else the backend's prior: in the configuration. Without -c an
example fleet is played, at a load that you may change.`,
		Example: `  pacer plan
  pacer plan -c pacer.yaml --rate 5/s --prompt 1000 --output 300
  pacer plan -c pacer.yaml --admin http://127.0.0.1:9090 --trace monday.csv --scale 1.5
  pacer plan -c pacer.yaml --rate 8/s --share chat=0.7,nightly=0.3 --policy pacer,least_requests
  pacer plan -c pacer.yaml --rate 20/s --replicas-of h200-a=1..8 --attainment 0.99
  pacer plan -c pacer.yaml --rate 5/s --sweep 0.5..2.0
  pacer plan -c pacer.yaml --rate 5/s --fault kill:h200-a@60s+30s --fault drift:l40s-a:1.5@2m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := o.answer(cmd.Context(), cmd.Flags().Changed, progressTo(cmd.ErrOrStderr()))
			if problems := config.Errors(nil); errors.As(err, &problems) {
				// Bare, so that each line begins with its place.
				fmt.Fprintln(&failing{out: cmd.ErrOrStderr()}, problems)
				return usageError{errReported}
			}
			if err != nil {
				return ignoreCanceled(err)
			}
			out := cmd.OutOrStdout()
			switch {
			case o.asJSON:
				return printJSON(out, answer)
			case o.asCSV:
				return answer.csv(out)
			}
			return answer.print(out, widthOf(out))
		},
	}
	f := c.Flags()
	f.StringVarP(&o.config, "config", "c", "", "the fleet: backends, routes, floors, prices (default: an example)")
	f.StringVar(&o.admin, "admin", "", "admin port of a gateway whose learned curves are to be used")
	f.StringVar(&o.store, "store", "", "URL of a store whose learned curves are to be used")
	f.StringVar(&o.trace, "trace", "", "load: a CSV of arrival_s,prompt_tokens,output_tokens, or with Azure's columns")
	f.StringVar(&o.rate, "rate", "", "load: requests, such as 5/s, 300/min or 5/s (mean)")
	f.StringVar(&o.shape, "shape", "poisson", "how the rate goes on: poisson, bursts[:FACTOR], ramp, spike[:FACTOR]")
	f.StringVar(&o.prompt, "prompt", "1000", "tokens of a prompt: 1000, fixed:1000, lognormal:1000:0.8, bimodal:200:4000:0.2")
	f.StringVar(&o.output, "output", "300", "tokens of an answer, in the same forms")
	f.StringSliceVar(&o.shares, "share", nil, "how the load is split over routes, such as chat=0.7,nightly=0.3")
	f.Float64Var(&o.scale, "scale", 1, "how many times the load")
	f.DurationVar(&o.duration, "duration", 0, "how long requests come; a shorter trace starts again (default: 10m, or the trace)")
	f.DurationVar(&o.warmup, "warmup", 0, "the first part of it, which is not counted (default: a tenth, 1m at most)")
	f.StringArrayVar(&o.faults, "fault", nil, "kill:BACKEND@60s[+30s], drift:BACKEND:1.5@60s[+30s], redis_lost@60s[+30s]")
	f.StringSliceVar(&o.policies, "policy", []string{"pacer"}, "who places requests; several to compare, or all")
	f.StringArrayVar(&o.replicas, "replicas-of", nil, "BACKEND=4: so many of it; BACKEND=1..8: find the least that keeps the floors")
	f.Float64Var(&o.attainment, "attainment", 0, "share of requests that shall get what they are promised (default: the routes' own)")
	f.StringVar(&o.sweep, "sweep", "", "play the load at several factors, such as 0.5..2.0 or 0.5..2.0/7")
	f.Float64Var(&o.prefill, "prefill", 0, "prompt tokens/s of backends whose curve does not tell (default: as published curves of that speed)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all that is drawn")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVar(&o.asCSV, "csv", false, "print CSV: one row a run and route")
	return c
}

// answer plays what the flags ask for. given tells which flags were typed.
func (o *planOptions) answer(ctx context.Context, given func(flag string) bool, progress func(string)) (*planAnswer, error) {
	p, err := o.read(given)
	if err != nil {
		return nil, usageError{err}
	}
	if err := p.learnCurves(ctx, o); err != nil {
		return nil, err
	}
	if err := p.measureLoad(); err != nil {
		return nil, usageError{err}
	}
	runs, err := p.playAll(ctx, progress)
	if err != nil {
		return nil, err
	}
	return p.answer(runs), nil
}

// configuration returns the fleet, and how it is called.
func (o *planOptions) configuration() (cfg *config.Config, name string, err error) {
	if o.config == "" {
		cfg, err = config.Parse(exampleName, planExample, os.LookupEnv)
		return cfg, exampleName, err
	}
	cfg, err = config.Load(o.config)
	return cfg, o.config, err
}

// progressTo shows how far a plan is, on a terminal alone. An empty line ends
// it.
func progressTo(w io.Writer) func(string) {
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintf(w, "\r\x1b[K%s", line) }
}
