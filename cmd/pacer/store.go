package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/storemove"
	"github.com/pacer-dev/pacer/profiles"
)

func newStoreCommand() *cobra.Command {
	return family("store", "Take what was learned elsewhere", newStoreExportCommand(), newStoreImportCommand(), newStoreMigrateCommand())
}

func newStoreExportCommand() *cobra.Command {
	var file, to string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the learned curves as a file",
		Long: `Write the curves of the configured targets, as the store holds them, as JSON: the
levels for people, the sums for pacer store import. Without Redis they are read from
state_dir, where a running gateway writes them each minute.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(configFile(file))
			if err != nil {
				return report.Usage(err)
			}
			f, where, err := storemove.Export(cmd.Context(), cfg)
			if err != nil {
				return fmt.Errorf("store export: %w", err)
			}
			if to == "" || to == "-" {
				return f.Write(cmd.OutOrStdout())
			}
			if err := f.Save(to); err != nil {
				return fmt.Errorf("store export: %w", err)
			}
			fmt.Fprintf(report.NewWriter(cmd.ErrOrStderr()), "%d curves of %s are in %s\n", len(f.Curves), where, to)
			return nil
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configUsage)
	c.Flags().StringVarP(&to, "out", "o", "", "file to write, instead of standard output")
	return c
}

// importedCurves is what pacer store import --json prints.
type importedCurves struct {
	Store   string   `json:"store"`
	Taken   []string `json:"taken"`
	Left    []string `json:"left"`
	Unknown []string `json:"unknown"`
}

func newStoreImportCommand() *cobra.Command {
	var file string
	var replace, asJSON bool
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Put the curves of a file into the store",
		Long: `Put the curves of FILE (- is standard input), which pacer store export has written,
into the store of the configuration. A target that has a curve keeps it, unless
--replace is given. Gateways on Redis take them over within seconds. Without Redis
they go to state_dir, and the gateway must not be running: it would write its own.`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(configFile(file))
			if err != nil {
				return report.Usage(err)
			}
			in, done, err := openInput(cmd.InOrStdin(), args[0])
			if err != nil {
				return report.Usage(fmt.Errorf("store import: %w", err))
			}
			defer done()
			got, err := storemove.Import(cmd.Context(), cfg, in, replace)
			if err != nil {
				return fmt.Errorf("store import: %s: %w", args[0], err)
			}
			out := importedCurves{Store: got.Where, Taken: namesOf(got.Taken), Left: namesOf(got.Left), Unknown: namesOf(got.Unknown)}
			if asJSON {
				return report.JSON(cmd.OutOrStdout(), out)
			}
			w := report.NewWriter(cmd.OutOrStdout())
			fmt.Fprintf(w, "%d curves are in %s\n", len(out.Taken), out.Store)
			for _, name := range out.Left {
				fmt.Fprintf(w, "%s: left as it was, since it has a curve; --replace puts the one of the file in its place\n", name)
			}
			for _, name := range out.Unknown {
				fmt.Fprintf(w, "%s: the configuration has no such target; its curve is of no use until it has\n", name)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configUsage)
	c.Flags().BoolVar(&replace, "replace", false, "put the curves in the place of those that are there")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newStoreMigrateCommand() *cobra.Command {
	var file, to string
	var asJSON bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Copy a store into another",
		Long: `Copy all that the store of one configuration holds into the store of another: curves,
keys that were handed out, usage, budgets, batch jobs, history. The old store keeps
everything, and what the new one has already stays. The prefix may differ; where one of
the stores is memory with a state_dir, only curves move. Budgets, usage and keys go to
store.global of the new configuration, where it has one.

Stop the gateways first, or what they write meanwhile stays behind.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return report.Usage(errors.New("store migrate: --to is missing; name the configuration with the new store"))
			}
			from, err := loadConfig(configFile(file))
			if err != nil {
				return report.Usage(err)
			}
			next, err := loadConfig(to)
			if err != nil {
				return report.Usage(err)
			}
			m, err := storemove.Migrate(cmd.Context(), from, next)
			if err != nil {
				return fmt.Errorf("store migrate: %w", err)
			}
			if asJSON {
				return report.JSON(cmd.OutOrStdout(), m)
			}
			fmt.Fprintf(report.NewWriter(cmd.OutOrStdout()), "from %s to %s: %d copied, %d were there and stay\n", m.From, m.To, m.Copied, m.Left)
			return nil
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configUsage+", with the old store")
	c.Flags().StringVar(&to, "to", "", "configuration with the new store")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func openInput(stdin io.Reader, name string) (io.Reader, func() error, error) {
	if name == "-" {
		return stdin, func() error { return nil }, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

// namesOf writes targets for people.
func namesOf(targets []profiles.Target) []string {
	names := []string{}
	for _, t := range targets {
		name := t.Backend
		if t.Model != "" {
			name += " " + t.Model
		}
		names = append(names, name)
	}
	return names
}
