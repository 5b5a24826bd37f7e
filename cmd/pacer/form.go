package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/report"
)

// form is how an answer is printed; the zero value is for people.
type form struct{ json, csv bool }

func (f form) check() error {
	if f.json && f.csv {
		return report.Usage(errors.New("--json and --csv are given; keep one"))
	}
	return nil
}

// print prints an answer that has all forms.
func (f form) print(out io.Writer, answer interface {
	CSV(out io.Writer) error
	Print(out io.Writer, width int) error
},
) error {
	switch {
	case f.json:
		return report.JSON(out, answer)
	case f.csv:
		return answer.CSV(out)
	}
	return answer.Print(out, report.Width(out))
}

// told prints the problems of a configuration bare, so that each line begins with
// its place, and returns what the command ends with. Another err is returned as it is.
func told(cmd *cobra.Command, err error) error {
	var problems config.Errors
	if !errors.As(err, &problems) {
		return err
	}
	fmt.Fprintln(report.NewWriter(cmd.ErrOrStderr()), problems)
	return report.Usage(errReported)
}
