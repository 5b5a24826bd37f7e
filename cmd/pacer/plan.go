package main

import (
	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/plan"
	"github.com/pacer-dev/pacer/internal/report"
)

func newPlanCommand() *cobra.Command {
	var q plan.Question
	var as form
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
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := as.check(); err != nil {
				return err
			}
			q.Given = cmd.Flags().Changed
			answer, err := q.Answer(cmd.Context(), report.Progress(cmd.ErrOrStderr()))
			if err != nil {
				return ignoreCanceled(told(cmd, err))
			}
			return as.print(cmd.OutOrStdout(), answer)
		},
	}
	f := c.Flags()
	f.StringVarP(&q.Config, "config", "c", "", "the fleet: backends, routes, floors, prices (default: an example)")
	f.StringVar(&q.Admin, "admin", "", "admin port of a gateway whose learned curves are to be used")
	f.StringVar(&q.Store, "store", "", "URL of a store whose learned curves are to be used")
	f.StringVar(&q.Trace, "trace", "", "load: a CSV of arrival_s,prompt_tokens,output_tokens, or with Azure's columns")
	f.StringVar(&q.Rate, "rate", "", "load: requests, such as 5/s, 300/min or 5/s (mean)")
	f.StringVar(&q.Shape, "shape", "poisson", "how the rate goes on: poisson, bursts[:FACTOR], ramp, spike[:FACTOR]")
	f.StringVar(&q.Prompt, "prompt", "1000", "tokens of a prompt: 1000, fixed:1000, lognormal:1000:0.8, bimodal:200:4000:0.2")
	f.StringVar(&q.Output, "output", "300", "tokens of an answer, in the same forms")
	f.StringSliceVar(&q.Shares, "share", nil, "how the load is split over routes, such as chat=0.7,nightly=0.3")
	f.Float64Var(&q.Scale, "scale", 1, "how many times the load")
	f.DurationVar(&q.Duration, "duration", 0, "how long requests come; a shorter trace starts again (default: 10m, or the trace)")
	f.DurationVar(&q.Warmup, "warmup", 0, "the first part of it, which is not counted (default: a tenth, 1m at most)")
	f.StringArrayVar(&q.Faults, "fault", nil, "kill:BACKEND@60s[+30s], drift:BACKEND:1.5@60s[+30s], redis_lost@60s[+30s]")
	f.StringSliceVar(&q.Policies, "policy", []string{"pacer"}, "who places requests; several to compare, or all")
	f.StringArrayVar(&q.Replicas, "replicas-of", nil, "BACKEND=4: so many of it; BACKEND=1..8: find the least that keeps the floors")
	f.Float64Var(&q.Attainment, "attainment", 0, "share of requests that shall get what they are promised (default: the routes' own)")
	f.StringVar(&q.Sweep, "sweep", "", "play the load at several factors, such as 0.5..2.0 or 0.5..2.0/7")
	f.IntVar(&q.Slots, "slots", 0, "sequences that engines run at once of which no gateway has learned it (default: 256, or as far as the curve goes)")
	f.Float64Var(&q.Prefill, "prefill", 0, "prompt tokens/s of backends whose curve does not tell (default: as published curves of that speed)")
	f.Uint64Var(&q.Seed, "seed", 1, "seed of all that is drawn")
	f.BoolVar(&as.json, "json", false, "print JSON")
	f.BoolVar(&as.csv, "csv", false, "print CSV: one row a run and route")
	return c
}
