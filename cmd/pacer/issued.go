package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/keys/filekeys"
)

const (
	// keysEvery is how often it is looked whether another gateway has changed a key:
	// one that is revoked is refused within a second everywhere.
	keysEvery = 250 * time.Millisecond

	// mostNotes is how many entries of the audit log wait for the store.
	mostNotes = 1000
)

// issued is the keys that are handed out while the gateway runs.
type issued struct {
	ring *keys.Ring // nil = there is nowhere to keep any

	applying sync.Mutex     // held while a configuration comes into force; guards base
	base     *config.Config // as it stands in the file

	mu    sync.Mutex // guards notes; a leaf
	notes []note
}

// note is an entry of the audit log that waits.
type note struct {
	at           time.Time
	who, did, to string
}

// issuing finds where keys are kept. What is kept is read before the data port
// takes a request.
func (p *program) issuing(cfg *config.Config) error {
	if p.issued.ring == nil && cfg.StateDir != "" {
		files, err := filekeys.Open(cfg.StateDir)
		switch {
		case errors.Is(err, filekeys.ErrDirectory):
			p.log.Error("no keys can be handed out: there is nowhere to keep them", "state_dir", cfg.StateDir, "error", err)
		case err != nil:
			return err
		default:
			p.issued.ring = keys.New(files)
		}
	}
	if p.issued.ring == nil {
		return nil
	}
	before := p.start
	p.start = func(ctx context.Context) {
		before(ctx)
		if _, err := p.issued.ring.Refresh(ctx); err != nil {
			p.log.Error("the keys that were handed out cannot be read: they are refused until they can", "error", err)
		}
		p.applyKeys()
	}
	p.loops = append(p.loops, p.watchKeys)
	return nil
}

// apply puts cfg into force, with the keys that are handed out.
func (p *program) apply(cfg *config.Config, why string) (needRestart []string, err error) {
	p.issued.applying.Lock()
	defer p.issued.applying.Unlock()
	if needRestart, err = p.fleet.Apply(p.withKeys(cfg), why); err == nil {
		p.issued.base = cfg
	}
	return needRestart, err
}

// applyKeys puts the keys into force as they are now.
func (p *program) applyKeys() {
	p.issued.applying.Lock()
	defer p.issued.applying.Unlock()
	next := p.withKeys(p.issued.base)
	if slices.EqualFunc(next.Keys, p.fleet.Config().Keys, sameKey) {
		return
	}
	if _, err := p.fleet.Apply(next, "keys changed"); err != nil {
		p.log.Error("keys that were handed out cannot be put into force", "error", err)
	}
}

func sameKey(a, b config.Key) bool {
	return a.Name == b.Name && a.SHA256 == b.SHA256 && a.Expires.Equal(b.Expires) && a.Team == b.Team &&
		a.Limits == b.Limits && a.Budget == b.Budget && slices.Equal(a.Routes, b.Routes)
}

// withKeys returns cfg with the keys that are handed out. Those of the file go
// first. While there is none in the file either, the first one that was revoked
// stays, as one that has expired: a port does not open because a key is taken back.
func (p *program) withKeys(cfg *config.Config) *config.Config {
	if p.issued.ring == nil {
		return cfg
	}
	list := p.issued.ring.List()
	if len(list) == 0 {
		return cfg
	}
	next, names := *cfg, map[string]bool{}
	next.Keys = slices.Clone(cfg.Keys)
	for _, k := range cfg.Keys {
		names[k.Name] = true
	}
	for _, k := range list {
		if names[k.Spec.Name] || !k.Revoked.IsZero() {
			continue
		}
		one := issuedKey(k)
		next.Keys = append(next.Keys, one)
		if k.Old != (keys.Hash{}) && time.Now().Before(k.OldUntil) {
			one.SHA256 = k.Old
			if one.Expires.IsZero() || k.OldUntil.Before(one.Expires) {
				one.Expires = k.OldUntil
			}
			next.Keys = append(next.Keys, one)
		}
	}
	if len(next.Keys) == 0 {
		k := issuedKey(list[0])
		k.Expires = list[0].Revoked
		next.Keys = []config.Key{k}
	}
	return &next
}

// issuedKey is k as the configuration has keys.
func issuedKey(k keys.Key) config.Key {
	s := k.Spec
	out := config.Key{Name: s.Name, SHA256: k.Hash, Routes: s.Routes, Team: s.Team, Issued: true}
	if slices.Contains(s.Routes, "*") {
		out.Routes = nil
	}
	if s.Expires != nil {
		out.Expires = *s.Expires
	}
	if l := s.Limits; l != nil {
		out.Limits = config.KeyLimits{RequestsPerMinute: l.RequestsPerMinute, TokensPerMinute: l.TokensPerMinute, Concurrency: l.Concurrency}
	}
	if b := s.Budget; b != nil {
		out.Budget = config.Budget{USD: b.USD, Per: b.Per, Warn: b.Warn, Then: config.Then{Warn: b.Then == "warn", Spill: b.Spill}}
	}
	return out
}

// watchKeys takes over what other gateways change, and writes what waits for the
// audit log, until ctx ends.
func (p *program) watchKeys(ctx context.Context) error {
	failing := outage{alone: p.shared.alone}
	round := 0
	err := forEach(ctx, keysEvery, func(now time.Time) {
		round++
		_, err := p.issued.ring.Refresh(ctx)
		if ctx.Err() == nil && failing.tell(now, err) {
			p.log.Warn("the keys that are handed out cannot be read: those that are known are used", "error", err)
		}
		if err != nil {
			return
		}
		p.applyKeys() // also when the time of a secret before a rotation is over
		p.writeNotes(ctx)
		if round%14400 == 1 && p.filed() { // an hour
			if err := p.issued.ring.Sweep(ctx, now); err != nil && !errors.Is(err, keys.ErrConflict) {
				p.log.Warn("keys that were revoked long ago cannot be forgotten", "error", err)
			}
		}
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	p.writeNotes(last)
	return err
}

// filed reports whether the file has keys of its own. While it has none, what was
// revoked is not forgotten: it is what keeps the port closed.
func (p *program) filed() bool {
	p.issued.applying.Lock()
	defer p.issued.applying.Unlock()
	return p.issued.base != nil && len(p.issued.base.Keys) > 0
}

// audit has the audit log say who did what. It does not wait.
func (p *program) audit(_ context.Context, who, did, to string) {
	p.log.Info("audit", "who", who, "did", did, "to", to)
	if p.issued.ring == nil {
		return
	}
	p.issued.mu.Lock()
	defer p.issued.mu.Unlock()
	if len(p.issued.notes) < mostNotes {
		p.issued.notes = append(p.issued.notes, note{time.Now(), who, did, to})
	}
}

// writeNotes writes what waits; what cannot be written waits on.
func (p *program) writeNotes(ctx context.Context) {
	for {
		p.issued.mu.Lock()
		if len(p.issued.notes) == 0 {
			p.issued.mu.Unlock()
			return
		}
		n := p.issued.notes[0]
		p.issued.mu.Unlock()
		if err := p.issued.ring.Note(ctx, n.at, n.who, n.did, n.to); err != nil {
			return
		}
		p.issued.mu.Lock()
		p.issued.notes = p.issued.notes[1:]
		p.issued.mu.Unlock()
	}
}
