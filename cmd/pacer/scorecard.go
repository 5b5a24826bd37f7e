package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/report"
)

func newScorecardCommand() *cobra.Command {
	var q ask.ScorecardQuestion
	var asJSON bool
	c := &cobra.Command{
		Use:   "scorecard",
		Short: "Show the targets of each route side by side: speed, errors, cache, cost",
		Long: `Show the targets of each route of a running gateway side by side, as live traffic
found them, in Markdown. Where the admin port asks for a token, it is read from
PACER_ADMIN_TOKEN.`,
		Example: `  pacer scorecard
  pacer scorecard --model chat --n 16 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("n") && (q.N < 1 || q.N > api.MaxLevel) {
				return report.Usage(fmt.Errorf("--n %d: write a whole number from 1 to %d", q.N, api.MaxLevel))
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
	return c
}
