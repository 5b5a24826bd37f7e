package main

import (
	"context"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/statefile"
	"github.com/pacer-dev/pacer/usage"
	"github.com/pacer-dev/pacer/usage/notify"
)

const (
	// spendingEvery is how often it is looked who runs what, and what there is to tell.
	spendingEvery = 200 * time.Millisecond

	// keepUsageEvery is how often usage is written to state_dir: a crash costs as much.
	keepUsageEvery = 5 * time.Second
)

// usageFile is what a gateway without a store keeps of usage and budgets.
var usageFile = statefile.File{Name: "usage.bin", Form: "pacer usage 1\n", Most: 256 << 20, Plain: 256 << 20}

// spending builds what stands around p.usage: who owns which machine second, who is
// told of budgets, and, without a store, what is kept in state_dir.
func (p *program) spending(cfg *config.Config) {
	p.notify = notify.New(notify.Options{
		Hooks:  func() []notify.Hook { return hooksOf(p.fleet.Config()) },
		Client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: p.options.dial, IdleConnTimeout: 30 * time.Second}},
		Log:    p.log,
	})
	p.loops = append(p.loops, p.notify.Run, p.watchSpending)
	if !cfg.Store.Memory || cfg.StateDir == "" {
		return
	}
	var past usage.Past
	kept, err := usageFile.Load(cfg.StateDir, &past)
	if err != nil {
		p.log.Error("the usage of before cannot be used; it begins anew", "state_dir", cfg.StateDir, "error", err)
	}
	if kept {
		p.usage.Restore(&past)
	}
	p.loops = append(p.loops, func(ctx context.Context) error { return p.keepUsage(ctx, cfg.StateDir) })
}

func hooksOf(cfg *config.Config) []notify.Hook {
	var out []notify.Hook
	for _, w := range cfg.Webhooks {
		out = append(out, notify.Hook{URL: w.URL.Reveal(), Slack: w.Format == "slack", Secret: w.Secret.Reveal()})
	}
	return out
}

// watchSpending tells the book what runs where, and the webhooks what the book has
// to say, until ctx ends.
func (p *program) watchSpending(ctx context.Context) error {
	rounds := 0
	return forEach(ctx, spendingEvery, func(now time.Time) {
		running := map[string]int{}
		for _, l := range p.router.Loads() {
			running[l.Backend] = l.M
		}
		p.usage.Sample(now, running)
		for _, n := range p.usage.Notices() {
			p.notify.Tell(now, n)
		}
		if rounds%3000 == 0 {
			p.usage.Forget(now)
		}
		rounds++
	})
}

// keepUsage writes the usage to dir, and once more when ctx ends.
func (p *program) keepUsage(ctx context.Context, dir string) error {
	last := uint64(0)
	return p.keepFile(ctx, keepUsageEvery, "the usage", dir, func() error {
		changes := p.usage.Changes()
		if changes == last {
			return nil
		}
		err := usageFile.Save(dir, p.usage.Past())
		if err == nil {
			last = changes
		}
		return err
	})
}

// usageCells are the cells of [from, to) of all replicas; false = of this one alone,
// because the store does not answer.
func (p *program) usageCells(ctx context.Context, from, to usage.Hour) (cells []usage.Cell, all bool) {
	if p.usageStore == nil {
		return p.usage.Cells(from, to), true
	}
	cells, err := p.usageStore.Cells(ctx, from, to)
	if err != nil {
		return p.usage.All(from, to), false
	}
	return cells, true
}
