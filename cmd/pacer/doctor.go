package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/doctor"
	"github.com/pacer-dev/pacer/internal/report"
)

// examined is what pacer doctor --json prints.
type examined struct {
	OK       bool             `json:"ok"` // nothing fails
	Findings []doctor.Finding `json:"findings"`
}

func newDoctorCommand() *cobra.Command {
	var (
		file   string
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether a configuration works here: names, TLS, keys, models, store",
		Long: `Look whether a configuration can work on this machine: names, connections,
certificates, keys, models, the store and its clock, open files, floors. Each
finding is a line: ok, warn or fail, what it is, and after a semicolon the mend.
Nothing is changed and no token generated. The exit code is 1 if anything fails.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := examine(cmd.Context(), file)
			if err != nil {
				return err
			}
			return printExamined(cmd.OutOrStdout(), findings, asJSON)
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configUsage)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// examine looks at the configuration in file as serve would read it.
func examine(ctx context.Context, file string) ([]doctor.Finding, error) {
	cfg, err := loadConfig(configFile(file))
	if problems := config.Errors(nil); errors.As(err, &problems) {
		return doctor.Refused(problems), nil
	}
	if err != nil {
		return nil, report.Usage(err)
	}
	here := room{descriptors: mayOpen(), memory: containerMemory()}
	return doctor.Examine(ctx, doctor.Options{Config: cfg, Room: here.problems(cfg.Limits)}), nil
}

func printExamined(out io.Writer, findings []doctor.Finding, asJSON bool) error {
	ill := slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.Fail })
	if asJSON {
		if err := report.JSON(out, examined{OK: !ill, Findings: findings}); err != nil {
			return err
		}
	} else {
		w := report.NewWriter(out)
		for _, f := range findings {
			fmt.Fprintln(w, f)
		}
		if err := w.Err(); err != nil {
			return err
		}
	}
	if ill {
		return errReported
	}
	return nil
}
