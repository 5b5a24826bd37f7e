package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/router"
)

func newExplainCommand() *cobra.Command {
	var q ask.DecisionsQuestion
	var minTPS float64
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain MODEL | explain --last N",
		Short: "Show why a request goes where it goes, or is refused",
		Long: `Ask a running gateway what would become of a request for MODEL now, without
sending it: every candidate with what runs there, the speed it would give, the
floors that must hold there, and the verdict. --last shows the decisions that
were made, the latest first.

n: sequences decoding; m: with a place there, which is what decides; tps: what one
stream gets with this request; low: its lower bound; protect: the highest floor
of those who run there; headroom: the bound over the floor it has to meet; warm:
what a prefix cache there is expected to have of the prompt, which --last knows.`,
		Example: `  pacer explain chat
  pacer explain chat --min-tps 45 --prompt-tokens 8000
  pacer explain nightly --class batch --json
  pacer explain --last 20`,
		Args: atMostOneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.Request.Model = args[0]
			}
			if cmd.Flags().Changed("min-tps") {
				q.Request.MinTPS = &minTPS
			}
			if err := checkExplain(&q, len(args) > 0, cmd.Flags().Changed); err != nil {
				return report.Usage(err)
			}
			raw, decisions, err := q.Ask(cmd.Context())
			if err != nil {
				return ignoreCanceled(err)
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return report.RawJSON(out, raw)
			}
			return ask.PrintDecisions(out, decisions, q.Last > 0, report.Width(out))
		},
	}
	f := c.Flags()
	f.StringVar(&q.Admin, "admin", ask.DefaultAdmin, "admin port of the gateway to ask")
	f.IntVar(&q.Last, "last", 0, "show so many of the last decisions instead")
	f.StringVar(&q.Request.Class, "class", "", "interactive or batch, instead of the route's")
	f.Float64Var(&minTPS, "min-tps", 0, "floor in tokens/s instead of the route's; 0 is none")
	f.IntVar(&q.Request.PromptTokens, "prompt-tokens", 0, "length of the prompt")
	f.BoolVar(&asJSON, "json", false, "print JSON, as the admin port has it")
	f.Lookup("min-tps").DefValue = "the route's"
	return c
}

// checkExplain compares the flags.
func checkExplain(q *ask.DecisionsQuestion, model bool, given func(flag string) bool) error {
	switch {
	case given("last") && (model || given("class") || given("min-tps") || given("prompt-tokens")):
		return errors.New("--last shows what was decided; leave out the request")
	case given("last") && (q.Last < 1 || q.Last > api.MaxDecisions):
		return fmt.Errorf("--last is %d; write a number from 1 to %d", q.Last, api.MaxDecisions)
	case given("last"):
		return nil
	case !model || q.Request.Model == "":
		return errors.New("name the model as a client does: pacer explain MODEL; or pacer explain --last N")
	case q.Request.Class != "" && q.Request.Class != router.Interactive.String() && q.Request.Class != router.Batch.String():
		return fmt.Errorf("--class is %.40q; write interactive or batch", q.Request.Class)
	case q.Request.MinTPS != nil && (!(*q.Request.MinTPS >= 0) || math.IsInf(*q.Request.MinTPS, 0)):
		return fmt.Errorf("--min-tps is %v; write tokens/s from 0, which is none", *q.Request.MinTPS)
	case q.Request.PromptTokens < 0:
		return fmt.Errorf("--prompt-tokens is %d; write a number from 0", q.Request.PromptTokens)
	}
	return nil
}
