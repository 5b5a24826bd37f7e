package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/baseline"
	"github.com/pacer-dev/pacer/internal/demo"
	"github.com/pacer-dev/pacer/internal/report"
)

func newDemoCommand() *cobra.Command {
	var o demo.Options
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work: three simulated GPUs, a load that ramps and spikes, a backend that dies",
		Long: `Runs three simulated GPUs with published curves, a gateway in front of them, and
users: interactive ones on a route with a floor of 30 tokens/s, and batch without.
The interactive users ramp from 1 to 50, spike to 200, and one backend is killed
and comes back. At the end a table says what the users got, and how the learned
curves compare with the true ones. Nothing leaves this machine.`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Policy != "pacer" && o.Policy != "round-robin" {
				return report.Usage(fmt.Errorf("--policy %q: want pacer or round-robin", o.Policy))
			}
			if o.Duration < 10*time.Second || o.Duration > 24*time.Hour {
				return report.Usage(fmt.Errorf("--duration %v: want 10s to 24h", o.Duration))
			}
			if _, _, err := net.SplitHostPort(o.Admin); err != nil {
				return report.Usage(fmt.Errorf("--admin %q: want host:port, as 127.0.0.1:9090", o.Admin))
			}
			return runDemo(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.DurationVar(&o.Duration, "duration", 2*time.Minute, "how long the load runs")
	f.StringVar(&o.Policy, "policy", "pacer", "who places requests: pacer, or round-robin to compare with")
	f.StringVar(&o.Replay, "replay", "", "replay the first minutes of a request trace (CSV: arrival_s,prompt_tokens,output_tokens) instead")
	f.StringVar(&o.JSONFile, "json", "", "write the report to this `FILE` as well")
	f.StringVar(&o.Admin, "admin", "127.0.0.1:0", "address of the page")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of users and engines")
	return c
}

// runDemo runs a demo of this program.
func runDemo(ctx context.Context, o demo.Options, out io.Writer) error {
	wiring := options{dial: o.Dial, listen: o.Listen}
	if o.Policy == "round-robin" {
		wiring.policies = baseline.Policies(baseline.Options{})
	}
	o.Wire = func(cfg *config.Config) (*demo.Gateway, error) {
		if wiring.policies != nil {
			for i := range cfg.Routes {
				cfg.Routes[i].Prefer = string(baseline.RoundRobin)
			}
		}
		p, err := wire(cfg, slog.New(slog.DiscardHandler), wiring)
		if err != nil {
			return nil, err
		}
		return &demo.Gateway{Book: p.book, Router: p.router, Run: p.run}, nil
	}
	return demo.Run(ctx, o, out)
}
