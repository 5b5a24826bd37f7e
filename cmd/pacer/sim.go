package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/sim"
)

// simIdleTimeout is how long a simulated engine keeps an idle connection:
// vLLM's five seconds, closed without a word.
const simIdleTimeout = 5 * time.Second

// simFlags is the command line of pacer sim.
type simFlags struct {
	listen, preset, model string
	maxNumSeqs            int
	kvTokens, block       int
	seed                  uint64
	speed                 float64
	behave, fault         []string
	list, asJSON          bool
}

func newSimCommand() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run a simulated inference engine",
		Long: `Run a simulated inference engine that speaks OpenAI's API as vLLM does and is as
fast, with any number of users, as a published curve says. What it really did is
at /sim/truth; POST /sim/reset clears that.

Behaviours (--behave, several with commas):
` + describe(sim.Behaviours()) + `
Faults (--fault KIND[:VALUE][@DELAY], or POST /sim/set {"KIND": VALUE}):
` + describe(sim.Faults()),
		Example: `  pacer sim --preset llama-3.1-70b/h200/vllm
  pacer sim --listen 127.0.0.1:0 --behave closes-after-stream --fault drift:1.5@30s`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.list {
				return listPresets(cmd.OutOrStdout(), f.asJSON)
			}
			if f.asJSON {
				return report.Usage(errors.New("--json goes with --list"))
			}
			return runSim(cmd.Context(), f, cmd.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:9101", "address to listen on; port 0 takes a free one")
	c.Flags().StringVar(&f.preset, "preset", "llama-3.1-70b/h200/vllm", "published curve: model[/gpu[/engine]]")
	c.Flags().StringVar(&f.model, "model", "", "a further name for the model (default: the preset's alone)")
	c.Flags().IntVar(&f.maxNumSeqs, "max-num-seqs", 256, "sequences that run together; more wait")
	c.Flags().IntVar(&f.kvTokens, "kv-tokens", 0, "room for prompts and answers together (default: no limit)")
	c.Flags().IntVar(&f.block, "prefix-block", 0, "tokens in a block of the prefix cache, such as 16 (default: no prefix cache); needs --kv-tokens")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the noise")
	c.Flags().Float64Var(&f.speed, "speed", 1, "how much faster than the curve")
	c.Flags().StringSliceVar(&f.behave, "behave", nil, "habits of real servers, see above")
	c.Flags().StringSliceVar(&f.fault, "fault", nil, "what goes wrong and when, see above")
	c.Flags().BoolVar(&f.list, "list", false, "print the presets and end")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the list as JSON")
	return c
}

// describe formats names and what they mean for a help text.
func describe(list []sim.Named) string {
	var b strings.Builder
	for _, n := range list {
		fmt.Fprintf(&b, "  %-34s %s\n", n.Name, n.Doc)
	}
	return b.String()
}

// runSim serves a simulated engine until ctx ends. Streams are cut then, as
// those of an engine that is told to stop.
func runSim(ctx context.Context, f simFlags, stderr io.Writer) error {
	engine, names, err := f.engine()
	if err != nil {
		return report.Usage(err)
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return report.Usage(fmt.Errorf("sim: --listen %q is no address; write host:port, such as 127.0.0.1:9101", f.listen))
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("sim: %w; choose another --listen address", err)
	}
	server := &http.Server{Handler: engine, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: simIdleTimeout}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return engine.Run(ctx) })
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("sim: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	fmt.Fprintf(stderr, "sim: ready http://%s model=%s\n", l.Addr(), names[0])
	return g.Wait()
}

// engine builds what the flags ask for, and the names it answers to, the one
// to be shown first. Every error is the command line's.
func (f simFlags) engine() (*sim.Server, []string, error) {
	p, ok := presets.Lookup(f.preset)
	if !ok {
		return nil, nil, fmt.Errorf("sim: no preset %q; pacer sim --list prints them", f.preset)
	}
	// In Options zero means the default; here it was typed.
	if f.maxNumSeqs < 1 {
		return nil, nil, fmt.Errorf("sim: --max-num-seqs is %d, must be at least 1", f.maxNumSeqs)
	}
	if !(f.speed > 0) {
		return nil, nil, fmt.Errorf("sim: --speed is %v, must be positive", f.speed)
	}
	names := slices.DeleteFunc([]string{f.model, p.Model}, func(name string) bool { return name == "" })
	engine, err := sim.NewServer(sim.Options{
		Names: slices.Compact(names), Model: arena.Published(p), MaxNumSeqs: f.maxNumSeqs, KVTokens: f.kvTokens, Block: f.block, Seed: f.seed, Speed: f.speed,
		Behaviours: f.behave, Faults: f.fault,
	})
	return engine, names, err
}

// listPresets prints the published curves.
func listPresets(w io.Writer, asJSON bool) error {
	list := presets.List()
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{"presets": list})
	}
	out := report.NewWriter(w)
	fmt.Fprintf(out, "%-34s %s\n", "PRESET", "USERS: TOKENS/S OF EACH")
	for _, p := range list {
		var points []string
		for _, at := range p.Points {
			points = append(points, fmt.Sprintf("%d: %.4g", at.N, at.TPS))
		}
		fmt.Fprintf(out, "%-34s %s\n", p.Name, strings.Join(points, "  "))
	}
	return out.Err()
}
