package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/doctor"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// errReported ends a command whose mistake was printed already: run adds
// nothing to it.
var errReported = errors.New("reported")

// checked is what pacer check --json prints.
type checked struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Problems []checkedProblem `json:"problems"`
	Warnings []string         `json:"warnings"`
	Backends []checkedBackend `json:"backends"`
	Routes   []checkedRoute   `json:"routes"`
}

type checkedProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0 = the file as a whole
	Col     int    `json:"col"`
	Message string `json:"message"`
}

type checkedBackend struct {
	Name       string `json:"name"`
	URL        string `json:"url"`
	Kind       string `json:"kind"`
	Models     string `json:"models,omitempty"` // separate, or "" = shared
	Usage      string `json:"usage"`
	MetricsURL string `json:"metrics_url"` // without its query, which may hold a key; "" = none

	Engines *checkedEngines `json:"engines,omitempty"` // nil = it is one
}

type checkedRoute struct {
	Models  []string `json:"models"`
	Class   string   `json:"class"`
	MinTPS  float64  `json:"min_tps"`
	MaxTTFT float64  `json:"max_ttft_s"` // 0 = none
	Targets []string `json:"targets"`
}

func newCheckCommand() *cobra.Command {
	var asJSON, asSchema, probe bool
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration file",
		Long: `Read a configuration as serve would, with the variables of the environment and
the files that it names. Every problem goes to stderr as FILE:LINE:COL: what is
wrong; what to write instead. The exit code is 2 if there is one.

With --probe each backend is asked what it serves, and names that are wrong are
said: a line each, ok, warn or fail. The exit code is 1 if anything fails.

With --schema print the JSON Schema by which editors complete and check the
file: pacer check --schema > pacer.schema.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if asSchema && len(args) == 0 {
				return nil
			}
			if len(args) != 1 {
				return fmt.Errorf("check: want one file, got %d; write pacer check pacer.yaml", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if asSchema {
				_, err := cmd.OutOrStdout().Write(config.Schema())
				return err
			}
			cfg, err := config.Load(args[0])
			var print error
			if asJSON {
				print = json.NewEncoder(cmd.OutOrStdout()).Encode(checkReport(args[0], cfg, err))
			} else if err == nil {
				print = printChecked(cmd.OutOrStdout(), args[0], cfg)
			}
			if err != nil {
				return report.Usage(told(cmd, err))
			}
			if print != nil || !probe {
				return print
			}
			fmt.Fprintln(cmd.OutOrStdout())
			return printExamined(cmd.OutOrStdout(), doctor.Probe(cmd.Context(), doctor.Options{Config: cfg}), false)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&asSchema, "schema", false, "print the JSON Schema of the file")
	c.Flags().BoolVar(&probe, "probe", false, "ask each backend for its models, and compare the names")
	c.MarkFlagsMutuallyExclusive("json", "schema", "probe")
	return c
}

// checkReport is the outcome of a Load as a program reads it: lists are never
// null.
func checkReport(file string, cfg *config.Config, err error) checked {
	out := checked{
		File: file, OK: err == nil,
		Problems: []checkedProblem{}, Warnings: []string{}, Backends: []checkedBackend{}, Routes: []checkedRoute{},
	}
	var problems config.Errors
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			out.Problems = append(out.Problems, checkedProblem(p))
		}
	case err != nil:
		out.Problems = append(out.Problems, checkedProblem{File: file, Message: err.Error()})
	}
	if cfg == nil {
		return out
	}
	out.Warnings = append(out.Warnings, warningsOf(cfg)...)
	for _, b := range cfg.Backends {
		out.Backends = append(out.Backends, checkedBackend{Name: b.Name, URL: b.URL, Kind: b.Kind, Models: separateOf(b), Usage: usageOf(b), MetricsURL: pageOf(b), Engines: enginesOf(b)})
	}
	for _, r := range cfg.Routes {
		out.Routes = append(out.Routes, checkedRoute{
			Models: r.Models, Class: r.Class, MinTPS: r.SLO.MinTPS, MaxTTFT: r.SLO.MaxTTFT.Seconds(), Targets: targetNames(r),
		})
	}
	return out
}

// printChecked prints what a valid configuration sets up.
func printChecked(out io.Writer, file string, cfg *config.Config) error {
	w := report.NewWriter(out)
	fmt.Fprintf(w, "%s: ok\n", file)
	for _, warning := range warningsOf(cfg) {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	backends := report.Table{Head: []string{"BACKEND", "KIND", "URL", "USAGE", "METRICS", "PRIOR"}, Left: 6}
	for _, b := range cfg.Backends {
		backends.Add(b.Name, b.Kind, b.URL, usageOf(b), cmp.Or(pageOf(b), "none"), priorOf(b.Prior))
	}
	routes := report.Table{Head: []string{"ROUTE", "CLASS", "MIN TPS", "MAX TTFT", "TARGETS"}, Left: 5}
	for _, r := range cfg.Routes {
		floor, ttft := "none", "none"
		if r.SLO.MinTPS > 0 {
			floor = strconv.FormatFloat(r.SLO.MinTPS, 'g', 4, 64)
		}
		if r.SLO.MaxTTFT > 0 {
			ttft = r.SLO.MaxTTFT.String()
		}
		routes.Add(strings.Join(r.Models, ", "), r.Class, floor, ttft, strings.Join(targetNames(r), ", "))
	}
	for _, t := range []report.Table{backends, routes} {
		fmt.Fprintln(w)
		t.Print(w, 0)
	}
	for _, b := range cfg.Backends {
		if b.Separate() {
			fmt.Fprintf(w, "\n%s: each model is counted by itself\n", b.Name)
		}
	}
	fmt.Fprintf(w, "%s\ndata port %s (%d keys), admin port %s\n", engineLines(cfg), cfg.Listen, len(cfg.Keys), cfg.Admin.Listen)
	return w.Err()
}

// warningsOf are about what serve starts with all the same.
func warningsOf(cfg *config.Config) []string {
	return slices.Concat(cfg.Source().Warnings, cfg.Expiring(time.Now()), engineWarnings(cfg), guaranteeWarnings(cfg))
}

// targetNames are a route's targets as backend:model, or the backend alone
// where the client's model goes up unchanged.
func targetNames(r config.Route) []string {
	names := make([]string, len(r.Targets))
	for i, t := range r.Targets {
		names[i] = t.Backend
		if t.Model != "" {
			names[i] += ":" + t.Model
		}
	}
	return names
}

// separateOf says so where models are not shared, which is the rule.
func separateOf(b config.Backend) string {
	if b.Separate() {
		return b.Models
	}
	return ""
}

// usageOf is what the backend's streams are asked for. Those of some kinds tell
// their usage unasked.
func usageOf(b config.Backend) string {
	if upstream.Of(b.Kind).Usage.Unasked {
		return "unasked"
	}
	return b.Usage
}

// pageOf is the metrics_url without what is not for every eye.
func pageOf(b config.Backend) string {
	page, _, _ := strings.Cut(b.MetricsURL, "?")
	return page
}

func priorOf(p config.Prior) string {
	switch {
	case p.Preset != "":
		return p.Preset
	case len(p.Points) > 0:
		return fmt.Sprintf("%d points", len(p.Points))
	}
	return "none"
}
