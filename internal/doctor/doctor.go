// Package doctor looks whether a configuration can work where it is to run: it
// resolves names, opens connections, shows keys, compares models, asks the store
// for its version and its clock, and counts file descriptors. Each thing looked at
// is one Finding, with the mend where something is wrong.
//
// It serves nothing and changes nothing. No request that it sends generates a
// token. Backends are looked at side by side, each step within Patience. No finding
// holds a secret.
package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
)

const (
	// atOnce is how many backends are looked at side by side.
	atOnce = 32

	// soon is how long before its end a certificate is worth a warning.
	soon = 14 * 24 * time.Hour
)

// Severity says how bad a finding is.
type Severity string

// The levels, as they are printed.
const (
	OK   Severity = "ok"
	Warn Severity = "warn" // it works, and may not for long, or not as was meant
	Fail Severity = "fail" // it does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Severity Severity `json:"level"`
	What     string   `json:"what"`
	Mend     string   `json:"mend,omitempty"` // "" for what is ok
}

// String returns the line for people: level: what; the mend.
func (f Finding) String() string {
	if f.Mend == "" {
		return string(f.Severity) + ": " + f.What
	}
	return string(f.Severity) + ": " + f.What + "; " + f.Mend
}

// findings grows by what is found.
type findings []Finding

func (f *findings) ok(format string, args ...any) {
	*f = append(*f, Finding{Severity: OK, What: fmt.Sprintf(format, args...)})
}

func (f *findings) warn(mend, format string, args ...any) {
	*f = append(*f, Finding{Severity: Warn, What: fmt.Sprintf(format, args...), Mend: mend})
}

func (f *findings) fail(mend, format string, args ...any) {
	*f = append(*f, Finding{Severity: Fail, What: fmt.Sprintf(format, args...), Mend: mend})
}

// said adds a text that is "what; the mend" already, as the configuration's are.
func (f *findings) said(severity Severity, text string) {
	what, mend, _ := strings.Cut(text, "; ")
	*f = append(*f, Finding{Severity: severity, What: what, Mend: mend})
}

// Options are what is looked at.
type Options struct {
	Config *config.Config // required

	// Room are the limits of the configuration that the machine does not keep, each
	// as "what; the mend".
	Room []string

	// Patience bounds each step. Default: 5s.
	Patience time.Duration
}

// Refused are the findings of a configuration that cannot be read.
func Refused(problems config.Errors) []Finding {
	var f findings
	for _, p := range problems {
		f.said(Fail, p.String())
	}
	return f
}

// begin fills in the default, and returns the configuration with the engines there are.
func (o *Options) begin(ctx context.Context) *config.Config {
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	return (&fleet.Discovery{Log: slog.New(slog.DiscardHandler)}).Of(ctx, o.Config)
}

// Examine looks at everything. It returns when all was looked at, or ctx ends.
func Examine(ctx context.Context, o Options) []Finding {
	cfg := o.begin(ctx)
	looks := []func(*findings){
		func(f *findings) { configuration(o.Config, f) },
		func(f *findings) { machine(o, f) },
		func(f *findings) { writable(o.Config.StateDir, f) },
		func(f *findings) { certificate(o.Config.TLS, f) },
		func(f *findings) { store(ctx, o, f) },
		func(f *findings) { pools(o.Config, cfg, f) },
	}
	looks = append(looks, backends(ctx, o.Patience, cfg)...)
	looks = append(looks, func(f *findings) { floors(cfg, f) })
	return look(looks)
}

// Probe asks each backend what it serves, and says which names are wrong.
func Probe(ctx context.Context, o Options) []Finding {
	cfg := o.begin(ctx)
	looks := []func(*findings){func(f *findings) { pools(o.Config, cfg, f) }}
	return look(append(looks, backends(ctx, o.Patience, cfg)...))
}

// backends are the looks at each backend.
func backends(ctx context.Context, patience time.Duration, cfg *config.Config) (looks []func(*findings)) {
	for _, b := range cfg.Backends {
		looks = append(looks, func(f *findings) { examineBackend(ctx, patience, cfg, b, f) })
	}
	return looks
}

// look does all that is to be looked at, several at once, and says what was found
// in their order.
func look(looks []func(*findings)) []Finding {
	found := make([]findings, len(looks))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, look := range looks {
		g.Go(func() error {
			look(&found[i])
			return nil
		})
	}
	_ = g.Wait() // no look returns an error
	return slices.Concat(found...)
}

// configuration says that it was read, and what it warns of.
func configuration(cfg *config.Config, f *findings) {
	f.ok("configuration: backends %d, routes %d, keys %d", len(cfg.Backends), len(cfg.Routes), len(cfg.Keys))
	for _, w := range slices.Concat(cfg.Source().Warnings, cfg.Expiring(time.Now())) {
		f.said(Warn, w)
	}
}

// pools looks whether each backend that stands for several engines has one now.
func pools(cfg, expanded *config.Config, f *findings) {
	for _, b := range cfg.Backends {
		if !b.Discover.On() {
			continue
		}
		engines := 0
		for _, e := range expanded.Backends {
			if strings.HasPrefix(e.Name, b.Name) && e.Address != "" {
				engines++
			}
		}
		if engines == 0 {
			f.fail("correct discover:, or start an engine", "backend %s: no engine is found", b.Name)
		} else {
			f.ok("backend %s: %d engines are found", b.Name, engines)
		}
	}
}

// describe is an error without its operation and address, which the line has.
func describe(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return text
}
