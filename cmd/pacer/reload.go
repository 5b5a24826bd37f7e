package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/router"
)

// reload puts another configuration into force. It is worked out in full before
// anything changes, so that a bad one changes nothing. Requests under way keep
// what they began with: a backend that is gone serves those that it has.
//
// Only one reload runs at a time: the caller sees to it.
func (p *program) reload(cfg *config.Config) error {
	needRestart, err := p.apply(cfg, "configuration reloaded")
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		p.log.Warn(w)
	}
	p.sayRoom(cfg)
	if len(needRestart) > 0 {
		p.log.Warn("these changes take a restart; the running values stay", "fields", strings.Join(needRestart, ", "))
	}
	return nil
}

// apply is reload without its warnings; what is said when it is done. It returns
// the names of the fields that it left as they are.
func (p *program) apply(cfg *config.Config, what string) (needRestart []string, err error) {
	old := p.conf.Load()
	cfg, needRestart = withRunning(old, cfg)
	x, err := p.plan(cfg)
	if err != nil {
		return nil, err
	}
	p.believe(x)
	p.metrics.Configure(routeClasses(x.topo), backendNames(cfg))
	var grants []router.Grant
	err = p.gateway.Configure(cfg, backendsOf(x.members), func() {
		grants = p.router.Update(time.Now(), router.Configure{Topology: x.topo})
		p.conf.Store(cfg)
	})
	if err != nil {
		return nil, err
	}
	p.gateway.Deliver(grants)
	for _, m := range p.fleet.adopt(x.members) {
		if was := backendNamed(old, m.name); was != nil && was.Engine() != m.link.conf.Engine() {
			p.book.Restarted(m.name) // another engine: what was learned may not hold
		}
		m.announce()
	}
	p.tell(router.Curves{ByTarget: p.curves()})
	if p.level != nil {
		p.level.Set(levelOf(cfg.Log))
	}
	p.log.Info(what, differences(old, cfg)...)
	return needRestart, nil
}

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
	keep("limits.header", old.Limits.Header, cfg.Limits.Header, func() { next.Limits.Header = old.Limits.Header })
	return &next, fields
}

func backendNamed(cfg *config.Config, name string) *config.Backend {
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

// follow reloads what load returns whenever a file has changed or a signal
// comes on hup, and the engines that are discovered whenever they have, until
// ctx ends. A configuration that cannot be used is said and counted, and the one
// in force stays. base is what load returned last.
func (p *program) follow(ctx context.Context, base *config.Config, load func() (*config.Config, error), engines *discovery, hup <-chan os.Signal) error {
	changed := make(chan struct{}, 1)
	watching := make(chan error, 1)
	go func() {
		watching <- config.Watch(ctx, p.conf.Load, func() {
			select {
			case changed <- struct{}{}:
			default: // one is due already
			}
		})
	}()
	look := time.NewTicker(discoverEvery)
	defer look.Stop()
	refused := "" // why the engines found last could not be put into service
	for {
		select {
		case <-ctx.Done():
			return <-watching
		case <-look.C:
			refused = p.discover(ctx, engines.of(ctx, base), refused)
			continue
		case <-changed:
		case <-hup:
		}
		p.systemd.reloading()
		next, err := load()
		if err == nil {
			err = p.reload(engines.of(ctx, next))
		}
		if err == nil {
			base = next
			engines.keep(base)
		}
		p.systemd.ready()
		p.say(err)
	}
}

// discover puts the engines of cfg into service if they are others than those in
// force. A refusal, which it returns, is said once, and tried again at the next
// look.
func (p *program) discover(ctx context.Context, cfg *config.Config, refused string) string {
	if ctx.Err() != nil || reflect.DeepEqual(cfg.Backends, p.conf.Load().Backends) {
		return ""
	}
	_, err := p.apply(cfg, "engines discovered")
	if err == nil {
		return ""
	}
	if err.Error() != refused {
		p.say(err)
	}
	return err.Error()
}

// say counts a reload, and says why it was refused.
func (p *program) say(err error) {
	p.metrics.Reloaded(err == nil)
	if err != nil {
		p.sayRefused(err)
	}
}

// sayRefused writes a line for each thing that is wrong.
func (p *program) sayRefused(err error) {
	problems := config.Errors(nil)
	if !errors.As(err, &problems) {
		p.log.Error("the new configuration is refused; the old one stays", "error", err)
		return
	}
	for _, problem := range problems {
		p.log.Error("the new configuration is refused; the old one stays", "problem", fmt.Sprint(problem))
	}
}

// levelOf is the log level that is configured.
func levelOf(l config.Log) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}
