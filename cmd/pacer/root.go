package main

import (
	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/report"
)

// newRootCommand returns the pacer command with all its subcommands.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "pacer",
		Short: "A gateway that keeps a tokens-per-second floor on any mix of OpenAI-compatible backends",
		Long: `Pacer relays OpenAI-compatible requests to several inference backends. From the
streams it relays it learns how fast each backend serves one user when n users
share it, and sends each request to a backend that still meets the floor of its
route, without breaking the floor of those already streaming.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return report.Usage(err) })
	root.AddCommand(
		newServeCommand(),
		newDemoCommand(),
		newSimCommand(),
		newCheckCommand(),
		newCurvesCommand(),
		newExplainCommand(),
		newPlanCommand(),
		newBenchCommand(),
		newHealthCommand(),
		newVersionCommand(),
	)
	for _, c := range append(root.Commands(), root) {
		if check := c.Args; check != nil {
			c.Args = func(cmd *cobra.Command, args []string) error {
				if err := check(cmd, args); err != nil {
					return report.Usage(err)
				}
				return nil
			}
		}
	}
	return root
}
