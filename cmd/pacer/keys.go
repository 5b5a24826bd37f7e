package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/report"
)

// newKeysCommand has a command below it for each thing that can be done to keys.
func newKeysCommand() *cobra.Command {
	var m ask.Manager
	var tokenFile string
	var asJSON bool
	c := &cobra.Command{
		Use:   "keys",
		Short: "Hand out, list, rotate and revoke keys of a running gateway",
		Long: `Hand out, list, rotate and revoke keys of a running gateway, over its admin port.
The admin token is read from PACER_ADMIN_TOKEN or --token-file, and needs the role
admin. A secret is printed once and kept nowhere. All gateways that share a Redis
know of a change within a second.`,
		Example: `  pacer keys create mobile --routes chat --budget 500
  pacer keys list
  pacer keys rotate mobile --grace 1h
  pacer keys revoke mobile
  pacer keys audit`,
		Args: oneOfCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := c.PersistentFlags()
	f.StringVar(&m.Admin, "admin", ask.DefaultAdmin, "admin port of the gateway to ask")
	f.StringVar(&tokenFile, "token-file", "", "file that holds the admin token, instead of PACER_ADMIN_TOKEN")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	run := func(name, short string, args cobra.PositionalArgs, do keyAction) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if m.Token, err = adminToken(tokenFile); err != nil {
				return err
			}
			answer, text, err := do(cmd, args)
			if err != nil {
				return ignoreCanceled(err)
			}
			if asJSON {
				return report.JSON(cmd.OutOrStdout(), answer)
			}
			return text()
		}}
	}
	secret := func(cmd *cobra.Command, k *api.NewKey) func() error {
		return func() error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", k.Secret)
			if err == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "the secret of %s, told this once: keep it\n", k.Key.Name)
			}
			return err
		}
	}
	c.AddCommand(
		run("list", "List all keys", noArgument, func(cmd *cobra.Command, _ []string) (any, func() error, error) {
			keys, err := m.Keys(cmd.Context())
			return keys, func() error { return ask.PrintKeys(cmd.OutOrStdout(), keys.Keys) }, err
		}),
		run("revoke NAME", "Take a key back", oneArgument, func(cmd *cobra.Command, args []string) (any, func() error, error) {
			k, err := m.Revoke(cmd.Context(), args[0])
			return k, func() error { _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is revoked\n", k.Name); return err }, err
		}),
		run("audit", "List who changed what, the latest first", noArgument, func(cmd *cobra.Command, _ []string) (any, func() error, error) {
			a, err := m.Audit(cmd.Context())
			return a, func() error { return ask.PrintAudit(cmd.OutOrStdout(), a.Entries) }, err
		}),
	)
	var grace time.Duration
	rotate := run("rotate NAME", "Give a key another secret", oneArgument, func(cmd *cobra.Command, args []string) (any, func() error, error) {
		k, err := m.Rotate(cmd.Context(), args[0], grace)
		return k, secret(cmd, k), err
	})
	rotate.Flags().DurationVar(&grace, "grace", 0, "how long the old secret is taken as well, up to 720h")

	c.AddCommand(newKeyCreation(&m, run, secret), rotate)
	return c
}

// adminToken reads the token from a file, else from the environment.
func adminToken(file string) (string, error) {
	if file == "" {
		return os.Getenv("PACER_ADMIN_TOKEN"), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", report.Usage(fmt.Errorf("--token-file: %w", err))
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// keyAction does what a command says, and returns what came, as JSON has it and as
// what writes it for people.
type keyAction func(cmd *cobra.Command, args []string) (answer any, text func() error, err error)

// newKeyCreation is the command that hands out a key. run makes a command of what it
// does, and secret writes a key that is told once.
func newKeyCreation(m *ask.Manager, run func(name, short string, args cobra.PositionalArgs, do keyAction) *cobra.Command, secret func(*cobra.Command, *api.NewKey) func() error) *cobra.Command {
	var spec api.KeySpec
	var limits api.KeyLimits
	var budget api.KeyBudget
	var expires, then string
	create := run("create NAME", "Hand out a key, and print its secret", oneArgument, func(cmd *cobra.Command, args []string) (any, func() error, error) {
		spec.Name = args[0]
		if expires != "" {
			at, err := momentOf(time.Now(), expires)
			if err != nil {
				return nil, nil, report.Usage(err)
			}
			spec.Expires = &at
		}
		if limits != (api.KeyLimits{}) {
			spec.Limits = &limits
		}
		if route, spills := strings.CutPrefix(then, "spill:"); spills {
			budget.Then, budget.Spill = "spill", route
		} else {
			budget.Then = then
		}
		switch {
		case cmd.Flags().Changed("budget"): // the gateway refuses one that is none
			spec.Budget = &budget
		case cmd.Flags().Changed("per") || cmd.Flags().Changed("then"):
			return nil, nil, report.Usage(errors.New("--per and --then are about --budget; write it too"))
		}
		k, err := m.Create(cmd.Context(), spec)
		return k, secret(cmd, k), err
	})
	cf := create.Flags()
	cf.StringSliceVar(&spec.Routes, "routes", nil, "models that the key may use (default: all)")
	cf.StringVar(&spec.Team, "team", "", "whom its usage is added up with")
	cf.StringVar(&expires, "expires", "", "from when on it is refused: a time, a day, or how long it lives, such as 720h (default: never)")
	cf.IntVar(&limits.RequestsPerMinute, "requests-per-minute", 0, "most requests in a minute (default: any number)")
	cf.IntVar(&limits.TokensPerMinute, "tokens-per-minute", 0, "most tokens in a minute (default: any number)")
	cf.IntVar(&limits.Concurrency, "concurrency", 0, "most requests at once (default: any number)")
	cf.Float64Var(&budget.USD, "budget", 0, "USD that it may spend (default: any amount)")
	cf.StringVar(&budget.Per, "per", "month", "within a day, week or month")
	cf.StringVar(&then, "then", "refuse", "when all is spent: refuse, warn or spill:ROUTE")
	return create
}

// momentOf reads a time, a day in UTC, or how long from now on.
func momentOf(now time.Time, text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--expires %.40q is no time; write one such as 2027-01-31T00:00:00Z, 2027-01-31 or 720h", text)
}
