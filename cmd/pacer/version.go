package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// What a build says of itself, set by -ldflags "-X main.version=…". Where they
// are not set (go install, go build), the Go tool has noted what it knows.
var (
	version  = ""
	revision = "" // the commit
	date     = "" // of the commit, RFC 3339
)

// licenses are the terms of Pacer and of all that is in the program. make notices
// writes them.
//
//go:embed licenses.txt
var licenses string

// build is what pacer version prints.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func currentBuild() build {
	b := build{Version: version, Revision: revision, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	noted := map[string]string{}
	for _, s := range info.Settings {
		noted[s.Key] = s.Value
	}
	b.Version = cmp.Or(b.Version, info.Main.Version, "unknown")
	b.Revision = cmp.Or(b.Revision, noted["vcs.revision"])
	b.Date = cmp.Or(b.Date, noted["vcs.time"])
	return b
}

// String is one line.
func (b build) String() string {
	words := []string{"pacer", b.Version, b.Revision, b.Date, b.Go, b.Platform}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

func newVersionCommand() *cobra.Command {
	var asJSON, asLicenses, asSBOM bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or what is in the program",
		Args:  noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			switch {
			case asLicenses:
				_, err := io.WriteString(out, licenses)
				return err
			case asSBOM:
				return writeSBOM(out)
			case asJSON:
				return json.NewEncoder(out).Encode(currentBuild())
			}
			_, err := fmt.Fprintln(out, currentBuild())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&asLicenses, "licenses", false, "print the licenses of Pacer and of the modules in it")
	c.Flags().BoolVar(&asSBOM, "sbom", false, "print the modules in it, as CycloneDX 1.6 JSON")
	c.MarkFlagsMutuallyExclusive("json", "licenses", "sbom")
	return c
}
