package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pacer-dev/pacer/config"
)

// defaultAdmin is the admin port of a gateway whose configuration names none.
const defaultAdmin = "http://127.0.0.1:9090"

// curvesOptions say what pacer curves shows, and from where.
type curvesOptions struct {
	files  []string // results of benchmarks; none = a gateway or a store
	admin  string   // URL of an admin port
	store  string   // URL of a store; "" = that of the configuration
	config string   // file that names the targets in a store; "" = ask a gateway

	backend      string  // "" = all
	levels       []int   // nil = every bin with evidence
	rho          float64 // prompt tokens per output token; NaN = the learned load
	promptTokens float64 // of a request; NaN = not asked

	// dial replaces the network in tests; nil means TCP.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func newCurvesCommand() *cobra.Command {
	var o curvesOptions
	var asJSON, asCSV bool
	var levels string
	c := &cobra.Command{
		Use:   "curves [FILE...]",
		Short: "Show the learned TPS-vs-concurrency curves",
		Long: `Show how many tokens per second ONE of n streams gets, as a running gateway
knows it (--admin), as a store does (--config, --store), or as the results of a
benchmark say (FILE...: CSV or JSON of pacer, vllm bench serve --save-result,
AIPerf or GenAI-Perf; several files are one curve).

--csv and --json of one --backend can be the prior of another: prior: { file: … }.`,
		Example: `  pacer curves
  pacer curves --backend big --n 1,8,32 --prompt-tokens 4000
  pacer curves -c pacer.yaml --store redis://redis:6379/0
  pacer curves results/*.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = args
			if err := o.check(cmd, levels); err != nil {
				return usageError{err}
			}
			if asJSON && asCSV {
				return usageError{errors.New("--json and --csv are given; keep one")}
			}
			answer, err := o.gather(cmd.Context())
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
			case asJSON:
				return printJSON(out, answer)
			case asCSV:
				return answer.csv(out)
			}
			return answer.print(out, widthOf(out))
		},
	}
	f := c.Flags()
	f.StringVar(&o.admin, "admin", defaultAdmin, "admin port of the gateway to ask")
	f.StringVarP(&o.config, "config", "c", "", "read the store, for the targets and floors of this configuration")
	f.StringVar(&o.store, "store", "", "URL of the store, instead of the configured one; needs --config")
	f.StringVar(&o.backend, "backend", "", "only this backend")
	f.StringVar(&levels, "n", "", "levels of concurrency, such as 1,2,4 (default: those with evidence)")
	f.Float64Var(&o.rho, "rho", math.NaN(), "at so many prompt tokens per output token, instead of the learned load")
	f.Float64Var(&o.promptTokens, "prompt-tokens", math.NaN(), "at so many prompt tokens a request, instead of the learned load")
	f.BoolVar(&asJSON, "json", false, "print JSON, as /api/v1/profiles has it")
	f.BoolVar(&asCSV, "csv", false, "print CSV")
	for _, name := range []string{"rho", "prompt-tokens"} {
		f.Lookup(name).DefValue = "0" // pflag hides a zero default, and NaN is none to show
	}
	return c
}

// check reads and compares the flags.
func (o *curvesOptions) check(cmd *cobra.Command, levels string) error {
	given := func(flags ...string) bool { return slices.ContainsFunc(flags, cmd.Flags().Changed) }
	switch {
	case len(o.files) > 0 && given("admin", "store", "config", "backend"):
		return errors.New("files are given, and a gateway or store; keep one")
	case len(o.files) > 0 && given("rho", "prompt-tokens"):
		return errors.New("a benchmark was run at one prompt load; --rho and --prompt-tokens need a learned curve")
	case given("admin") && given("store", "config"):
		return errors.New("--admin is given, and a store; keep one")
	case given("store") && !given("config"):
		return errors.New("--store needs --config FILE, which names the targets")
	case given("rho") && given("prompt-tokens"):
		return errors.New("--rho and --prompt-tokens are given; keep one")
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"rho", o.rho}, {"prompt-tokens", o.promptTokens}} {
		if given(f.name) && (!(f.value >= 0) || math.IsInf(f.value, 0)) {
			return fmt.Errorf("--%s is %v; write a number from 0", f.name, f.value)
		}
	}
	if !given("n") {
		return nil
	}
	var err error
	o.levels, err = readLevels(levels)
	return err
}

// readLevels reads the levels of --n.
func readLevels(text string) (levels []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > maxAsked {
			return nil, fmt.Errorf("--n: %.40q is no level of concurrency; write whole numbers from 1 to %d, such as 1,2,4", word, maxAsked)
		}
		levels = append(levels, n)
	}
	if len(levels) > maxLevels {
		return nil, fmt.Errorf("--n has %d levels; write up to %d", len(levels), maxLevels)
	}
	return levels, nil
}

// Bounds of one question, which are those of the API.
const (
	maxAsked  = 1 << 20
	maxLevels = 1024
)

// gather asks where the options say.
func (o *curvesOptions) gather(ctx context.Context) (*curvesAnswer, error) {
	var answer *curvesAnswer
	var err error
	switch {
	case len(o.files) > 0:
		answer, err = o.fromFiles()
	case o.config != "":
		answer, err = o.fromStore(ctx)
	default:
		answer, err = o.fromGateway(ctx)
	}
	if err != nil {
		return nil, err
	}
	if o.backend == "" {
		return answer, nil
	}
	known := answer.backends()
	answer.Targets = slices.DeleteFunc(answer.Targets, func(t curvesTarget) bool { return t.Backend != o.backend })
	if len(answer.Targets) == 0 {
		return nil, usageError{fmt.Errorf("no backend %q; known are %s", o.backend, strings.Join(known, ", "))}
	}
	return answer, nil
}

// backends are the names of the backends, each once.
func (a *curvesAnswer) backends() []string {
	var names []string
	for _, t := range a.Targets {
		if !slices.Contains(names, t.Backend) {
			names = append(names, t.Backend)
		}
	}
	return names
}

// widthOf returns the columns of the terminal; elsewhere $COLUMNS, or 80.
func widthOf(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return 80
}
