package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/history/disk"
	"github.com/pacer-dev/pacer/internal/atomicfile"
	"github.com/pacer-dev/pacer/internal/storemove"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/curvesfile"
	"github.com/pacer-dev/pacer/profiles/learn"
)

const (
	// keepEvery is how often the history is written to state_dir.
	keepEvery = time.Minute

	// mostBefore is how many processes before this one are remembered by name: those of
	// the last hour count.
	mostBefore = 64
)

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
	if past != nil {
		p.metrics.History().Restore(p.watch, past)
		p.shared.before = past.Replicas
		p.log.Info("the history of before goes on", "state_dir", dir, "saved", past.Saved.UTC())
	}
	p.loops = append(p.loops, func(ctx context.Context) error { return p.keep(ctx, dir) })
}

// keep writes the history each minute, and once more when ctx ends.
func (p *program) keep(ctx context.Context, dir string) error {
	cut := false
	return p.keepFile(ctx, keepEvery, "the history", dir, func() error {
		past := p.metrics.History().Past(time.Now(), p.watch)
		past.Replicas = append(slices.Clone(p.shared.before[max(len(p.shared.before)-mostBefore, 0):]), p.shared.replica)
		kept, err := disk.Save(dir, past)
		if err == nil && kept < 1 && !cut {
			cut = true
			p.log.Warn("the history is more than a file holds; its oldest part is not kept over a restart", "state_dir", dir, "kept_share", kept)
		}
		return err
	})
}

// keepFile calls save so often, and once more when ctx ends. That it fails is said
// once, and so is that it works again.
func (p *program) keepFile(ctx context.Context, every time.Duration, what, dir string, save func() error) error {
	failed := false
	once := func() {
		err := save()
		switch {
		case err != nil && !failed:
			p.log.Error(what+" cannot be kept; what is on the disk stays, and it is tried again", "state_dir", dir, "error", err)
		case err == nil && failed:
			p.log.Info(what+" can be kept again", "state_dir", dir)
		}
		failed = err != nil
	}
	err := forEach(ctx, every, func(time.Time) { once() })
	once()
	return err
}

// rememberCurves takes over the curves that are kept in state_dir, for a gateway without
// Redis. What is no such file is moved aside. What a failing disk or missing rights hide
// may be whole: it stays, and false says that nothing may be written over it.
func (p *program) rememberCurves(store *learn.Memory, dir string) (keep bool) {
	path := storemove.CurvesFile(dir)
	atomicfile.Clean(path)
	file, err := curvesfile.Load(path)
	var sums map[profiles.Target]profiles.Sums
	if err == nil && file != nil {
		sums, err = file.Sums()
	}
	if hidden := (*fs.PathError)(nil); errors.As(err, &hidden) {
		p.log.Error("the curves of before cannot be read, and are learned anew; their file stays as it is, and this gateway keeps none", "file", path, "error", err)
		return false
	}
	if err != nil {
		aside := path + ".unreadable"
		err = errors.Join(err, os.Rename(path, aside))
		p.log.Error("the curves of before cannot be used, and are learned anew; the file is moved aside", "file", aside, "error", err)
		return true
	}
	if len(sums) == 0 {
		return true
	}
	if _, err := store.Adopt(context.Background(), sums, true); err == nil {
		p.log.Info("the curves of before go on", "file", path, "targets", len(sums), "saved", file.Saved)
	}
	return true
}

// learnAndKeep runs learn and keeps its curves in dir. They are written once more when
// learn has handed over what it knew at the end.
func (p *program) learnAndKeep(run func(context.Context) error, store *learn.Memory, dir string) func(context.Context) error {
	save := func() error {
		return curvesfile.New(time.Now(), store.All()).Save(storemove.CurvesFile(dir))
	}
	return func(ctx context.Context) error {
		learned := make(chan error, 1)
		kept, end := context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			defer end()
			learned <- run(ctx)
		}()
		_ = p.keepFile(kept, keepEvery, "the curves", dir, save) // it ends because kept does
		return <-learned
	}
}
