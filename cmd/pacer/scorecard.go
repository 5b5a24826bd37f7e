package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/bench"
	"github.com/pacer-dev/pacer/internal/report"
)

func newScorecardCommand() *cobra.Command {
	var q ask.ScorecardQuestion
	var asJSON bool
	var files []string
	var usdPerHour []float64
	c := &cobra.Command{
		Use:   "scorecard",
		Short: "Show the targets of each route side by side: speed, errors, cache, cost",
		Long: `Show the targets of each route of a running gateway side by side, as live traffic
found them, in Markdown. Where the admin port asks for a token, it is read from
PACER_ADMIN_TOKEN. With --bench no gateway is asked: the results of pacer bench --json
are compared, one for each target.`,
		Example: `  pacer scorecard
  pacer scorecard --model chat --n 16 --json
  pacer scorecard --bench a.json,b.json --n 16 --usd-per-hour 3.50,2.00`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("n") && (q.N < 1 || q.N > api.MaxLevel) {
				return report.Usage(fmt.Errorf("--n %d: write a whole number from 1 to %d", q.N, api.MaxLevel))
			}
			if len(files) > 0 {
				return benchScorecard(cmd.OutOrStdout(), files, q.N, usdPerHour, asJSON)
			}
			if len(usdPerHour) > 0 {
				return report.Usage(errors.New("--usd-per-hour is for --bench; a gateway takes usd_per_hour from its configuration"))
			}
			q.Token = os.Getenv("PACER_ADMIN_TOKEN")
			card, err := q.Ask(cmd.Context())
			if err != nil {
				return ignoreCanceled(err)
			}
			if asJSON {
				return report.JSON(cmd.OutOrStdout(), card)
			}
			return ask.PrintScorecard(cmd.OutOrStdout(), card)
		},
	}
	f := c.Flags()
	f.StringVar(&q.Admin, "admin", ask.DefaultAdmin, "admin port of the gateway to ask")
	f.StringVar(&q.Model, "model", "", "only the route of this model")
	f.IntVar(&q.N, "n", 0, "level of concurrency to compare at (default: n of the busiest target now)")
	f.BoolVar(&asJSON, "json", false, "print JSON, as /api/v1/scorecard has it")
	f.StringSliceVar(&files, "bench", nil, "results of pacer bench --json to compare instead, one for each target")
	f.Float64SliceVar(&usdPerHour, "usd-per-hour", nil, "with --bench: what each target costs an hour, in their order")
	c.MarkFlagsMutuallyExclusive("bench", "admin")
	c.MarkFlagsMutuallyExclusive("bench", "model")
	return c
}

// benchScorecard compares the results in files at n users.
func benchScorecard(out io.Writer, files []string, n int, usdPerHour []float64, asJSON bool) error {
	answers, err := readAnswers("scorecard --bench", files)
	if err != nil {
		return err
	}
	card, err := bench.NewCard(answers, n, usdPerHour)
	if err != nil {
		return report.Usage(fmt.Errorf("scorecard --bench: %w", err))
	}
	if asJSON {
		return report.JSON(out, card)
	}
	return card.Print(out)
}
