package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pacer-dev/pacer/gateway"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/router"
)

// demoOptions are the flags of pacer demo.
type demoOptions struct {
	duration time.Duration
	policy   string // pacer | round-robin
	replay   string // trace file; "" = the scenario of ramp, spike and kill
	jsonFile string
	admin    string
	seed     uint64
	network  options // the network that the demo lives on; the zero value is TCP on loopback
}

func newDemoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work: three simulated GPUs, a load that ramps and spikes, a backend that dies",
		Long: `Runs three simulated GPUs with published curves, a gateway in front of them, and
users: interactive ones on a route with a floor of 30 tokens/s, and batch without.
The interactive users ramp from 1 to 50, spike to 200, and one backend is killed
and comes back. At the end a table says what the users got, and how the learned
curves compare with the true ones. Nothing leaves this machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.policy != "pacer" && o.policy != "round-robin" {
				return report.Usage(fmt.Errorf("--policy %q: want pacer or round-robin", o.policy))
			}
			if o.duration < 10*time.Second || o.duration > 24*time.Hour {
				return report.Usage(fmt.Errorf("--duration %v: want 10s to 24h", o.duration))
			}
			if _, _, err := net.SplitHostPort(o.admin); err != nil {
				return report.Usage(fmt.Errorf("--admin %q: want host:port, as 127.0.0.1:9090", o.admin))
			}
			return runDemo(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.DurationVar(&o.duration, "duration", 2*time.Minute, "how long the load runs")
	f.StringVar(&o.policy, "policy", "pacer", "who places requests: pacer, or round-robin to compare with")
	f.StringVar(&o.replay, "replay", "", "replay the first minutes of a request trace (CSV: arrival_s,prompt_tokens,output_tokens) instead")
	f.StringVar(&o.jsonFile, "json", "", "write the report to this file as well")
	f.StringVar(&o.admin, "admin", "127.0.0.1:0", "address of the page")
	f.Uint64Var(&o.seed, "seed", 1, "seed of users and engines")
	return c
}

// demo is one running demo.
type demo struct {
	options demoOptions
	fleet   []*simulated
	program *program
	tally   *tally
	load    load
	client  *loadgen.Client
	started time.Time
	screen  *screen
}

func runDemo(ctx context.Context, o demoOptions, out io.Writer) error {
	load, err := newLoad(o)
	if err != nil {
		return report.Usage(err)
	}
	var file *os.File
	if o.jsonFile != "" { // opened first: a mistake should not cost a whole run
		if file, err = os.Create(o.jsonFile); err != nil {
			return report.Usage(fmt.Errorf("--json: %w", err))
		}
		defer file.Close()
	}
	d := &demo{options: o, load: load, tally: newTally(demoFloor, demoGrace)}
	if d.fleet, err = startFleet(o.seed, o.network); err != nil {
		return err
	}
	defer stopFleet(d.fleet)

	cfg, err := demoConfig(d.fleet, o.admin)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	wiring := o.network
	wiring.placer = d.placer()
	if d.program, err = wire(cfg, log, wiring); err != nil {
		return err
	}
	if err := d.run(ctx, out); err != nil {
		return err
	}
	said := d.report(ctx.Err() != nil)
	said.print(out, report.Width(out))
	if file == nil {
		return nil
	}
	enc := json.NewEncoder(file)
	enc.SetIndent("", "  ")
	if err := enc.Encode(said); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return file.Close()
}

// placer returns what replaces the router's policy; nil for Pacer's own.
func (d *demo) placer() func(*router.Router, router.Topology) gateway.Placer {
	if d.options.policy != "round-robin" {
		return nil
	}
	return func(r *router.Router, t router.Topology) gateway.Placer { return newRoundRobin(r, t) }
}

// run starts gateway, screen and load, and ends them in the opposite order.
func (d *demo) run(ctx context.Context, out io.Writer) error {
	gatewayCtx, stopGateway := context.WithCancel(context.WithoutCancel(ctx))
	defer stopGateway()
	addresses := make(chan [2]string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- d.program.run(gatewayCtx, func(data, admin string) { addresses <- [2]string{data, admin} })
	}()
	select {
	case err := <-ended:
		return err
	case a := <-addresses:
		transport := newClientTransport(d.options.network)
		defer transport.CloseIdleConnections()
		d.client = &loadgen.Client{BaseURL: a[0] + "/v1", HTTP: &http.Client{Transport: transport}}
		d.screen = newScreen(out, d)
		d.screen.intro(a[0], a[1])
	}

	d.started = time.Now()
	loadCtx, stopLoad := context.WithTimeout(ctx, d.options.duration)
	defer stopLoad()
	g, gctx := errgroup.WithContext(loadCtx)
	g.Go(func() error { return d.load.run(gctx, d) })
	g.Go(func() error { d.screen.run(gctx); return nil })
	err := g.Wait()
	stopGateway()
	if endErr := <-ended; err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = endErr
	}
	return err
}
