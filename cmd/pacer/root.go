package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/spelling"
)

// newRootCommand returns the pacer command with all its subcommands.
func newRootCommand() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "pacer",
		Short: "A gateway that keeps a tokens-per-second floor on any mix of OpenAI-compatible backends",
		Long: `Pacer relays OpenAI-compatible requests to several inference backends. From the
streams it relays it learns how fast each backend serves one user when n users
share it, and sends each request to a backend that still meets the floor of its
route, without breaking the floor of those already streaming.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          oneOfCommands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), currentBuild())
				return err
			}
			return cmd.Help()
		},
	}
	// Not cobra's own flag: a template of its makes the linker keep every method
	// there is, 8 MB of them.
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newServeCommand(),
		newPickerCommand(),
		newDemoCommand(),
		newSimCommand(),
		newCheckCommand(),
		newDoctorCommand(),
		newSLOCommand(), newImportCommand(), newStoreCommand(),
		newCurvesCommand(),
		newExplainCommand(),
		newPlanCommand(),
		newKeysCommand(),
		newTopCommand(),
		newScorecardCommand(),
		newBenchCommand(),
		newHealthCommand(),
		newVersionCommand(),
	)
	badUsage(root)
	return root
}

// family is a command that does nothing but hold others.
func family(use, short string, members ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: oneOfCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(members...)
	return c
}

// oneOfCommands says which command was likely meant.
func oneOfCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	return fmt.Errorf("unknown command %.40q; %s", args[0], spelling.Meant(args[0], known))
}

// badUsage makes wrong arguments of c, and of all commands below it, bad usage.
func badUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return report.Usage(err)
			}
			return nil
		}
	}
	for _, below := range c.Commands() {
		badUsage(below)
	}
}

// flagError says which flag was likely meant, or what its value should be.
func flagError(cmd *cobra.Command, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		want := map[string]string{
			"int": "a whole number", "int64": "a whole number", "uint": "a whole number, not below 0", "uint64": "a whole number, not below 0",
			"float64": "a number", "bool": "true or false", "duration": "a duration such as 30s or 5m",
		}[invalid.GetFlag().Value.Type()]
		if want != "" {
			err = fmt.Errorf("--%s: %.200q is not %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
		return report.Usage(err)
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return report.Usage(err)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := spelling.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		err = fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return report.Usage(err)
}
