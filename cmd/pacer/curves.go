package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/report"
)

func newCurvesCommand() *cobra.Command {
	var q ask.CurvesQuestion
	var as form
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
			q.Files = args
			if err := checkCurves(&q, cmd, levels); err != nil {
				return report.Usage(err)
			}
			if err := as.check(); err != nil {
				return err
			}
			answer, err := q.Ask(cmd.Context())
			if err != nil {
				return ignoreCanceled(told(cmd, err))
			}
			return as.print(cmd.OutOrStdout(), answer)
		},
	}
	f := c.Flags()
	f.StringVar(&q.Admin, "admin", ask.DefaultAdmin, "admin port of the gateway to ask")
	f.StringVarP(&q.Config, "config", "c", "", "read the store, for the targets and floors of this configuration")
	f.StringVar(&q.Store, "store", "", "URL of the store, instead of the configured one; needs --config")
	f.StringVar(&q.Backend, "backend", "", "only this backend")
	f.StringVar(&levels, "n", "", "levels of concurrency, such as 1,2,4 (default: those with evidence)")
	f.Float64Var(&q.Rho, "rho", math.NaN(), "at so many prompt tokens per output token, instead of the learned load")
	f.Float64Var(&q.PromptTokens, "prompt-tokens", math.NaN(), "at so many prompt tokens a request, instead of the learned load")
	f.BoolVar(&as.json, "json", false, "print JSON, as /api/v1/profiles has it")
	f.BoolVar(&as.csv, "csv", false, "print CSV")
	for _, name := range []string{"rho", "prompt-tokens"} {
		f.Lookup(name).DefValue = "0" // pflag hides a zero default, and NaN is none to show
	}
	return c
}

// checkCurves reads and compares the flags.
func checkCurves(q *ask.CurvesQuestion, cmd *cobra.Command, levels string) error {
	given := func(flags ...string) bool { return slices.ContainsFunc(flags, cmd.Flags().Changed) }
	switch {
	case len(q.Files) > 0 && given("admin", "store", "config", "backend"):
		return errors.New("files are given, and a gateway or store; keep one")
	case len(q.Files) > 0 && given("rho", "prompt-tokens"):
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
	}{{"rho", q.Rho}, {"prompt-tokens", q.PromptTokens}} {
		if given(f.name) && (!(f.value >= 0) || math.IsInf(f.value, 0)) {
			return fmt.Errorf("--%s is %v; write a number from 0", f.name, f.value)
		}
	}
	if !given("n") {
		return nil
	}
	var err error
	q.Levels, err = readLevels(levels)
	return err
}

// readLevels reads the levels of --n.
func readLevels(text string) (levels []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > api.MaxLevel {
			return nil, fmt.Errorf("--n: %.40q is no level of concurrency; write whole numbers from 1 to %d, such as 1,2,4", word, api.MaxLevel)
		}
		levels = append(levels, n)
	}
	if len(levels) > api.MaxLevels {
		return nil, fmt.Errorf("--n has %d levels; write up to %d", len(levels), api.MaxLevels)
	}
	return levels, nil
}
