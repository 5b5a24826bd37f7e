package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/importer"
	"github.com/pacer-dev/pacer/internal/report"
)

// importable are the configurations that can be read, by their words.
var importable = []struct {
	word, short string
	read        func([]byte) (importer.Result, error)
}{
	{"litellm", "a config.yaml of LiteLLM's proxy", importer.LiteLLM},
	{"vllm-router", "the command line of vllm-router or sglang-router, in a file", importer.Flags},
	{"nginx", "the upstream blocks of an nginx.conf", importer.Nginx},
}

func newImportCommand() *cobra.Command {
	c := family("import", "Make a configuration from another gateway's")
	for _, of := range importable {
		c.AddCommand(newImportFrom(of.word, of.short, of.read))
	}
	return c
}

// imported is what pacer import --json prints.
type imported struct {
	YAML     string             `json:"yaml"` // "" = there is none
	Findings []importer.Finding `json:"findings"`
}

func newImportFrom(word, short string, read func([]byte) (importer.Result, error)) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   word + " FILE",
		Short: "From " + short,
		Long: `Read FILE (- is standard input), print pacer.yaml, and say on stderr what has no counterpart: a line each,
FILE:LINE: what; what to do. The exit code is 1 if nothing could be made of it.
Keys that stand in FILE stand in what is printed.`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readImport(cmd.InOrStdin(), args[0])
			if err != nil {
				return report.Usage(err)
			}
			result, err := read(text)
			if asJSON {
				out := imported{YAML: string(result.YAML), Findings: append([]importer.Finding{}, result.Findings...)}
				if e := json.NewEncoder(cmd.OutOrStdout()).Encode(out); e != nil {
					return e
				}
			} else {
				printImport(cmd, args[0], result)
			}
			if err != nil {
				return fmt.Errorf("import %s: %s: %w", word, args[0], err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the file and what to know about it as one JSON object")
	return c
}

func printImport(cmd *cobra.Command, name string, result importer.Result) {
	_, _ = cmd.OutOrStdout().Write(result.YAML)
	to := report.NewWriter(cmd.ErrOrStderr())
	for _, f := range result.Findings {
		if f.Line == 0 {
			fmt.Fprintf(to, "%s: %s; %s\n", name, f.What, f.Do)
			continue
		}
		fmt.Fprintf(to, "%s:%d: %s; %s\n", name, f.Line, f.What, f.Do)
	}
}

// mostImported bounds a file that is imported, in bytes.
const mostImported = 4 << 20

func readImport(in io.Reader, name string) ([]byte, error) {
	in, done, err := openInput(in, name)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	defer done()
	text, err := io.ReadAll(io.LimitReader(in, mostImported+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("import: %w", err)
	case len(text) > mostImported:
		return nil, errors.New("import: the file has more than 4 MiB")
	case strings.TrimSpace(string(text)) == "":
		return nil, fmt.Errorf("import: %s is empty", name)
	}
	return text, nil
}
