package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/report"
)

// reload puts another configuration into force, and says what is wrong with it
// all the same. Only one reload runs at a time: the caller sees to it.
func (p *program) reload(cfg *config.Config) error {
	news := cfg.WarningsSince(p.fleet.Config())
	needRestart, err := p.apply(cfg, "configuration reloaded")
	if err != nil {
		return err
	}
	for _, w := range news {
		p.log.Warn(w)
	}
	p.sayRoom(cfg)
	p.audit(context.Background(), "file", "config.reload", "")
	if len(needRestart) > 0 {
		p.log.Warn("these changes take a restart; the running values stay", "fields", strings.Join(needRestart, ", "))
	}
	return nil
}

// follow reloads what load returns whenever a file has changed or a signal
// comes on hup, and the engines that are discovered whenever they have, until
// ctx ends. A configuration that cannot be used is said and counted, and the one
// in force stays. base is what load returned last.
func (p *program) follow(ctx context.Context, base *config.Config, load func() (*config.Config, error), engines *fleet.Discovery, hup <-chan os.Signal) error {
	changed := make(chan struct{}, 1)
	watching := make(chan error, 1)
	go func() {
		watching <- config.Watch(ctx, p.fleet.Config, func() {
			select {
			case changed <- struct{}{}:
			default: // one is due already
			}
		})
	}()
	look := time.NewTicker(fleet.DiscoverEvery)
	defer look.Stop()
	file, refused := "", ""   // why the file, and the engines found last, could not be put into service
	var soon <-chan time.Time // a look is due, after news; nil = none
	for {
		why := cmp.Or(file, refused)
		p.refused.Store(&why)
		select {
		case <-ctx.Done():
			return <-watching
		case <-engines.News(): // mostly the first of several
			if soon == nil {
				soon = time.After(newsDelay)
			}
			continue
		case <-soon:
			soon = nil
			refused = p.discover(ctx, engines.Of(ctx, base), refused)
			continue
		case <-look.C:
			refused = p.discover(ctx, engines.Of(ctx, base), refused)
			continue
		case <-changed:
		case <-hup:
		}
		p.systemd.reloading()
		next, err := load()
		if err == nil {
			err = p.reload(engines.Of(ctx, next))
		}
		if err == nil {
			base = next
		}
		engines.Keep(base) // nobody watches what a refused configuration named
		p.systemd.ready()
		if err == nil && file != "" {
			p.log.Info("the refusal is over: the configuration is in force again as its file says")
		}
		file = inShort(err)
		p.say(err)
	}
}

// newsDelay is how long after the first news of engines they are put into service.
const newsDelay = 100 * time.Millisecond

// discover puts the engines of cfg into service if they are others than those in
// force. A refusal, which it returns, is said once, and tried again at the next
// look.
func (p *program) discover(ctx context.Context, cfg *config.Config, refused string) string {
	if ctx.Err() != nil || reflect.DeepEqual(cfg.Backends, p.fleet.Config().Backends) {
		return ""
	}
	_, err := p.apply(cfg, "engines discovered")
	if err == nil {
		return ""
	}
	why := "engines discovered: " + inShort(err)
	if why != refused {
		p.say(err)
	}
	return why
}

// say counts a reload, and says why it was refused.
func (p *program) say(err error) {
	p.metrics.Reloaded(err == nil)
	if err != nil {
		p.sayRefused(err)
	}
}

// longestWhy bounds a refusal where it stands among the causes, in characters.
const longestWhy = 160

// inShort is the first of the problems in one line, and how many more there are; ""
// = there is none.
func inShort(err error) string {
	if err == nil {
		return ""
	}
	first, more := err.Error(), ""
	problems := config.Errors(nil)
	if errors.As(err, &problems) && len(problems) > 0 {
		first = problems[0].String()
		if n := len(problems) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
	}
	return report.Shortened(report.Harmless(first), longestWhy) + more
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
