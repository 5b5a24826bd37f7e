package main

import (
	"context"
	"time"

	"github.com/pacer-dev/pacer/history/disk"
)

// keepEvery is how often the history is written to state_dir.
const keepEvery = time.Minute

// remember takes over the history that is kept in state_dir, and from then on
// keeps it there. Whatever the disk does, requests are served: what cannot be read
// is said and begun anew, and what cannot be written is said once.
func (p *program) remember(dir string) {
	if dir == "" {
		return
	}
	past, err := disk.Load(dir)
	if err != nil {
		p.log.Error("the history of before cannot be used; a new one begins", "state_dir", dir, "error", err)
	}
	disk.Clean(dir)
	if past != nil {
		p.metrics.History().Restore(p.watch, past)
		p.log.Info("the history of before goes on", "state_dir", dir, "saved", past.Saved.UTC())
	}
	p.loops = append(p.loops, func(ctx context.Context) error { return p.keep(ctx, dir) })
}

// keep writes the history each minute, and once more when ctx ends.
func (p *program) keep(ctx context.Context, dir string) error {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	failed := false
	save := func() {
		err := disk.Save(dir, p.metrics.History().Past(time.Now(), p.watch))
		switch {
		case err != nil && !failed:
			p.log.Error("the history cannot be kept; what is on the disk stays, and it is tried again each minute", "state_dir", dir, "error", err)
		case err == nil && failed:
			p.log.Info("the history is kept again", "state_dir", dir)
		}
		failed = err != nil
	}
	for {
		select {
		case <-ctx.Done():
			save()
			return ctx.Err()
		case <-tick.C:
			save()
		}
	}
}
