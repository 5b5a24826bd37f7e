// Package importer turns the configuration of another gateway into one for Pacer:
// LiteLLM's config.yaml, the flags of vllm-router, and upstreams of nginx.
//
// What it writes is a configuration that Pacer takes, or it says that there is
// none. What has no counterpart is a Finding each, with what to do about it: what
// is left out without a word would be missed on the first day.
package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/config"
)

// Finding is something of the other configuration that did not go over as it was.
type Finding struct {
	Line int    `json:"line"` // of the other file, from 1; 0 = the file as a whole
	What string `json:"what"`
	Do   string `json:"do"`
}

// Result is a configuration for Pacer, and what is to know about it.
type Result struct {
	YAML     []byte    // nil = there is none, and Findings say why
	Findings []Finding // by line
}

// ErrEmpty reports a file in which nothing was found that requests could go to.
var ErrEmpty = errors.New("it names no engine that requests could go to")

// file is pacer.yaml as it is written.
type file struct {
	Listen   string    `yaml:"listen,omitempty"`
	Store    any       `yaml:"store,omitempty"`
	Timeouts *timeouts `yaml:"timeouts,omitempty"`
	Backends []backend `yaml:"backends"`
	Routes   []route   `yaml:"routes"`
	Keys     []key     `yaml:"keys,omitempty"`
	Teams    []team    `yaml:"teams,omitempty"`
}

type timeouts struct {
	FirstByte string `yaml:"first_byte,omitempty"`
	Total     string `yaml:"total,omitempty"`
}

type store struct {
	Addrs    []string `yaml:"addrs,flow"`
	Password string   `yaml:"password,omitempty"`
}

type backend struct {
	Name           string            `yaml:"name"`
	URL            string            `yaml:"url,omitempty"`
	Kind           string            `yaml:"kind,omitempty"`
	Region         string            `yaml:"region,omitempty"`
	Project        string            `yaml:"project,omitempty"`
	APIKey         string            `yaml:"api_key,omitempty"`
	Headers        map[string]string `yaml:"headers,omitempty"`
	Models         string            `yaml:"models,omitempty"`
	MaxConcurrency int               `yaml:"max_concurrency,omitempty"`
	Price          *price            `yaml:"price,omitempty,flow"`
	DropParams     bool              `yaml:"drop_params,omitempty"`
}

type price struct {
	Input  float64 `yaml:"input"`
	Output float64 `yaml:"output"`
}

type route struct {
	Models       []string           `yaml:"models,flow"`
	Targets      []target           `yaml:"targets"`
	Prefer       string             `yaml:"prefer,omitempty"`
	Affinity     string             `yaml:"affinity,omitempty"`
	Split        map[string]float64 `yaml:"split,omitempty,flow"`
	LongPrompts  string             `yaml:"context_fallback,omitempty"`
	OnInfeasible []map[string]any   `yaml:"on_infeasible,omitempty,flow"`
}

type target struct {
	Backend string `yaml:"backend"`
	Model   string `yaml:"model,omitempty"`
}

type key struct {
	Name string `yaml:"name"`
	Key  string `yaml:"key"`
	Team string `yaml:"team,omitempty"`
}

type team struct {
	Name   string `yaml:"name"`
	Budget budget `yaml:"budget,flow"`
}

type budget struct {
	USD float64 `yaml:"usd"`
	Per string  `yaml:"per"`
}

// result is a file being made.
type result struct {
	file     file
	from     string // what it comes from, for its first line
	findings []Finding
}

func (r *result) note(line int, do, format string, args ...any) {
	r.findings = append(r.findings, Finding{Line: line, What: fmt.Sprintf(format, args...), Do: do})
}

// name makes a name for a backend out of words: one that Pacer takes, and that no
// other backend has.
func (r *result) name(words ...string) string {
	clean := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
			return c
		}
		return '-'
	}, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "-"))
	clean = strings.Trim(cmp.Or(clean, "backend"), "-.")
	clean = clean[:min(len(clean), 56)]
	for n, name := 2, clean; ; n++ {
		if !slices.ContainsFunc(r.file.Backends, func(b backend) bool { return b.Name == name }) {
			return name
		}
		name = fmt.Sprintf("%s-%d", clean, n)
	}
}

// write returns the file, if Pacer takes it; else what Pacer says of it is among
// the findings.
func (r *result) write() (Result, error) {
	if len(r.file.Backends) == 0 || len(r.file.Routes) == 0 {
		return Result{Findings: r.sorted()}, ErrEmpty
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Made from %s by pacer import. Look at it with: pacer check FILE\n", r.from)
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(r.file), e.Close()); err != nil {
		return Result{}, err
	}
	_, err := config.Parse("pacer.yaml", out.Bytes(), stand)
	if err != nil {
		var problems config.Errors
		if !errors.As(err, &problems) {
			return Result{}, err
		}
		for _, p := range problems {
			what, do, _ := strings.Cut(p.Message, "; ")
			r.note(0, do, "pacer does not take what was made of it: %s", what)
		}
		return Result{Findings: r.sorted()}, err
	}
	return Result{YAML: out.Bytes(), Findings: r.sorted()}, nil
}

// stand is a value for every variable: what it will be is not known here.
func stand(name string) (string, bool) {
	if strings.Contains(name, "REDIS") {
		return "redis://variable.invalid:6379/0", true
	}
	if strings.HasSuffix(name, "URL") || strings.HasSuffix(name, "BASE") || strings.HasSuffix(name, "ENDPOINT") {
		return "https://variable.invalid/v1", true
	}
	return "variable", true
}

func (r *result) sorted() []Finding {
	slices.SortStableFunc(r.findings, func(a, b Finding) int { return a.Line - b.Line })
	return r.findings
}
