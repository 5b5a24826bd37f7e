package fleet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/config"
)

// withRunning returns cfg with those values of old that cannot change while the
// program runs, and the names of those that cfg has otherwise.
func withRunning(old, cfg *config.Config) (*config.Config, []string) {
	next := *cfg
	var fields []string
	keep := func(name string, running, asked any, restore func()) {
		if !reflect.DeepEqual(running, asked) {
			fields = append(fields, name)
			restore()
		}
	}
	keep("listen", old.Listen, cfg.Listen, func() { next.Listen = old.Listen })
	keep("admin.listen", old.Admin.Listen, cfg.Admin.Listen, func() { next.Admin.Listen = old.Admin.Listen })
	keep("store", old.Store, cfg.Store, func() { next.Store = old.Store })
	keep("log.format", old.Log.Format, cfg.Log.Format, func() { next.Log.Format = old.Log.Format })
	keep("tls", old.TLS, cfg.TLS, func() { next.TLS = old.TLS })
	keep("relay", old.Relay, cfg.Relay, func() { next.Relay = old.Relay })
	keep("state_dir", old.StateDir, cfg.StateDir, func() { next.StateDir = old.StateDir })
	keep("limits.header", old.Limits.Header, cfg.Limits.Header, func() { next.Limits.Header = old.Limits.Header })
	return &next, fields
}

// backendNamed is nil when cfg is nil, or has none.
func backendNamed(cfg *config.Config, name string) *config.Backend {
	if cfg == nil {
		return nil
	}
	for i := range cfg.Backends {
		if cfg.Backends[i].Name == name {
			return &cfg.Backends[i]
		}
	}
	return nil
}

// differences says in a log line's terms what a reload has changed.
func differences(old, cfg *config.Config) []any {
	var out []any
	say := func(what string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			out = append(out, what, strings.Join(names, ", "))
		}
	}
	compare := func(what string, before, after map[string]any) {
		var added, removed, changed []string
		for name, v := range after {
			was, ok := before[name]
			switch {
			case !ok:
				added = append(added, name)
			case !reflect.DeepEqual(was, v):
				changed = append(changed, name)
			}
		}
		for name := range before {
			if _, ok := after[name]; !ok {
				removed = append(removed, name)
			}
		}
		say(what+"_added", added)
		say(what+"_removed", removed)
		say(what+"_changed", changed)
	}
	compare("backends", byName(old.Backends, func(b config.Backend) []string { return []string{b.Name} }), byName(cfg.Backends, func(b config.Backend) []string { return []string{b.Name} }))
	compare("routes", byName(old.Routes, func(r config.Route) []string { return r.Models }), byName(cfg.Routes, func(r config.Route) []string { return r.Models }))
	compare("keys", byName(old.Keys, func(k config.Key) []string { return []string{k.Name} }), byName(cfg.Keys, func(k config.Key) []string { return []string{k.Name} }))
	return out
}

func byName[T any](list []T, names func(T) []string) map[string]any {
	out := map[string]any{}
	for _, x := range list {
		for _, name := range names(x) {
			out[name] = x
		}
	}
	return out
}

// mostSummary bounds a summary, in bytes.
const mostSummary = 300

// summary is what differences says, in one line: ": backends_added c; …".
func summary(differences []any) string {
	var b strings.Builder
	for i := 0; i+1 < len(differences); i += 2 {
		fmt.Fprintf(&b, "; %s %s", strings.ReplaceAll(differences[i].(string), "_", " "), differences[i+1])
	}
	text := strings.Replace(b.String(), "; ", ": ", 1)
	if len(text) > mostSummary {
		text = strings.ToValidUTF8(text[:mostSummary], "") + "…"
	}
	return text
}
