package profiles

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a Book. The zero value means the defaults.
type Options struct {
	// HalfLife is the occupied time after which a bin's evidence counts half.
	// Default: 600s.
	HalfLife time.Duration

	// Margin is taken off the curve for the deciding bound, as a share of it,
	// whatever streams deliver. Default, also for a value outside 0 to 1: it
	// begins at 0.10 and becomes, by backend, what the streams show that it takes.
	Margin float64
}

const defaultHalfLife = 600 * time.Second

// Book holds the profiles of all targets of this replica. It is safe for
// concurrent use.
//
// Lock order: Book.mu, then group.mu.
type Book struct {
	halfLife time.Duration
	margin   float64 // 0 = what the streams of a group show

	// profiles is replaced, never changed, under mu.
	profiles atomic.Pointer[map[Target]*profile]

	heart heart

	mu       sync.Mutex
	groups   map[GroupID]*group
	folds    uint64 // number of the last fold
	gathered int    // deltas that it returned
	epoch    atomic.Pointer[time.Time]
}

// NewBook returns an empty book.
func NewBook(o Options) *Book {
	b := &Book{halfLife: o.HalfLife, margin: o.Margin, groups: map[GroupID]*group{}}
	if b.halfLife <= 0 {
		b.halfLife = defaultHalfLife
	}
	if !(b.margin > 0 && b.margin < 1) {
		b.margin = 0
	}
	b.profiles.Store(&map[Target]*profile{})
	return b
}

// Open starts the measurement of one stream on t, and books the stream's
// prompt as prefilled when its first token arrives. Unknown targets are added.
func (b *Book) Open(t Target, o Open) *Stream {
	p := b.profile(t)
	sent := o.Sent
	if sent.IsZero() && o.Occupancy != nil {
		sent = o.Occupancy.origin
	}
	s := &Stream{
		profile: p, heart: &b.heart, occ: o.Occupancy, epoch: b.since(sent),
		sequences: max(o.Sequences, 1),
		start:     streamStart{ahead: o.Ahead, estimate: float64(min(max(o.PromptTokens, 0), maxPrompt))},
	}
	s.start.sent = sent.Sub(s.epoch)
	if s.start.waiting = o.Waiting; s.start.waiting == nil {
		s.start.waiting = b.Send(t, sent, o.PromptTokens)
	}
	if s.occ != nil {
		s.shift = s.epoch.Sub(s.occ.origin)
		_, s.start.sentN = s.occ.Load()
	}
	p.group.mu.Lock()
	s.start.hoped = min(float64(max(o.CachedTokens, 0)), s.start.estimate)
	if p.caches {
		s.start.cached = s.start.hoped
	}
	totals := p.totals()
	s.unit.each, s.unit.sure, s.unit.fill = totals.perChunk(), p.calibrated(), p.curve.Load().fill
	s.unit.measure, s.unit.perByte = totals.measure(), totals.perByte()
	p.group.mu.Unlock()
	return s
}

// Calibrated reports whether it is known how many tokens a chunk of t holds:
// finished streams have told their usage. Until then a stream that tells none
// is an estimate and no evidence.
func (b *Book) Calibrated(t Target) bool {
	p := b.profile(t)
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	return p.calibrated()
}

// since returns the instant that the times of all streams count from: the
// first that the book was told.
func (b *Book) since(now time.Time) time.Time {
	if e := b.epoch.Load(); e != nil {
		return *e
	}
	b.epoch.CompareAndSwap(nil, &now)
	return *b.epoch.Load()
}

// Ensure makes t known, so that it has a (still unknown) curve.
func (b *Book) Ensure(targets ...Target) {
	for _, t := range targets {
		b.profile(t)
	}
}

// Retain forgets every target but these, which become known, and every group
// that has none of them. What streams on a forgotten target gather from the last
// Fold on is lost; a store that has the target keeps what it has. A stream that
// is opened on it later makes it known again, until the next Retain.
func (b *Book) Retain(targets ...Target) {
	b.Ensure(targets...)
	b.mu.Lock()
	defer b.mu.Unlock()
	old := *b.profiles.Load()
	profiles := make(map[Target]*profile, len(targets))
	groups := map[GroupID]*group{}
	for _, t := range targets {
		profiles[t] = old[t]
		groups[t.GroupID()] = b.groups[t.GroupID()]
	}
	for _, g := range groups {
		g.mu.Lock()
		for i, p := range g.profiles {
			if profiles[p.target] != p { // its place stays: streams may still write there
				g.profiles[i] = b.newProfile(p.target, g, i)
			}
		}
		g.mu.Unlock()
	}
	b.profiles.Store(&profiles)
	b.groups = groups
}

// profile returns the profile of t, which it adds if need be.
func (b *Book) profile(t Target) *profile {
	if p := (*b.profiles.Load())[t]; p != nil {
		return p
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := *b.profiles.Load()
	if p := old[t]; p != nil {
		return p
	}
	g := b.group(t.GroupID())
	g.mu.Lock()
	var p *profile
	if i := slices.IndexFunc(g.profiles, func(p *profile) bool { return p.target == t }); i >= 0 {
		p = g.profiles[i] // it was forgotten
	} else {
		p = b.newProfile(t, g, len(g.profiles))
		g.profiles = append(g.profiles, p)
	}
	g.mu.Unlock()

	profiles := make(map[Target]*profile, len(old)+1)
	for t, p := range old {
		profiles[t] = p
	}
	profiles[t] = p
	b.profiles.Store(&profiles)
	return p
}

// newProfile returns a profile that knows nothing, for a place in g. mu is held.
func (b *Book) newProfile(t Target, g *group, index int) *profile {
	p := &profile{target: t, group: g, index: index, halfLife: b.halfLife}
	p.curve.Store(&Curve{margins: b.marginsOf(g)})
	return p
}

// Prior gives t what is believed before any evidence: points of a published
// or configured curve, and the seconds that one prompt token takes there, 0 when
// unknown. Evidence outweighs it after a few tens of steps. No
// valid point takes the prior away.
func (b *Book) Prior(t Target, points []PriorPoint, promptCost float64) {
	p := b.profile(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.prior = newPrior(points); p.prior != nil && promptCost > 0 && promptCost < maxTPOT {
		p.prior.cost = promptCost
	}
	p.group.mu.Lock()
	known := p.knows()
	p.group.mu.Unlock()
	p.draw(&known, b.marginsOf(p.group))
}

// marginsOf returns the margins of a group. mu is held.
func (b *Book) marginsOf(g *group) margins {
	if b.margin > 0 {
		return margins{b.margin, b.margin}
	}
	return g.margins
}

// Attain says which share of the streams in a group shall keep their floor,
// and by how much longer than it says they may take in all: those of the route
// that wants most. The margin is made so that they do. A share outside 0 to 1
// means 0.99; before it is called grace is 0.
func (b *Book) Attain(id GroupID, share float64, grace time.Duration) {
	if !(share > 0 && share < 1) {
		share = usualAttainment
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.group(id)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.attainment, g.grace = share, max(grace.Seconds(), 0)
}

// group returns the group called id, which it adds if need be. mu is held.
func (b *Book) group(id GroupID) *group {
	g := b.groups[id]
	if g == nil {
		g = &group{attainment: usualAttainment, margins: margins{all: startMargin}}
		b.groups[id] = g
	}
	return g
}

// Restarted says that a backend is back after it was down: its engine may have
// come back with other settings. The speed of its next windows is believed at
// once, slower as well as, step by step, faster. Unknown backends are ignored.
func (b *Book) Restarted(backend string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, g := range b.groups {
		if id.Backend != backend {
			continue
		}
		g.mu.Lock()
		g.drift.restarted()
		g.unjudged = judged{}
		g.mu.Unlock()
	}
}

// Fold closes the windows that ended before now and returns what each target
// gathered since the last Fold, to be pushed to the store. The deltas also
// count locally until Apply brings sums that contain them. It refits the curves
// of the targets that gathered something.
func (b *Book) Fold(now time.Time) []Delta {
	b.mu.Lock()
	defer b.mu.Unlock()
	deltas := b.gather(now)
	b.refit(func(*profile) bool { return true })
	return deltas
}

// Gather is Fold for who calls Apply or Refit at once. It refits only where rows wait: what
// is predicted of these goes by the curve.
func (b *Book) Gather(now time.Time) []Delta {
	b.mu.Lock()
	defer b.mu.Unlock()
	deltas := b.gather(now)
	b.refit(func(p *profile) bool { return len(p.waiting) > 0 })
	return deltas
}

// Refit refits the curves that Gather left.
func (b *Book) Refit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refit(func(*profile) bool { return true })
}

// refit refits the stale ones of these. mu is held.
func (b *Book) refit(these func(*profile) bool) {
	for _, p := range *b.profiles.Load() {
		if p.stale && these(p) {
			b.redraw(p)
		}
	}
}

// gather is Fold without drawing: curves that have to be drawn are stale. mu is held.
func (b *Book) gather(now time.Time) []Delta {
	b.folds++
	at := now.Sub(b.since(now))
	b.adapt()
	pooled := b.pool()
	deltas := make([]Delta, 0, b.gathered) // about as many as last time: each is some 11 KB
	for _, t := range b.Targets() {
		p := (*b.profiles.Load())[t]
		p.group.mu.Lock()
		p.group.closeUntil(at)
		p.learnRows(at)
		d, ok := p.cut(now, b.folds)
		p.group.mu.Unlock()
		if ok {
			deltas = append(deltas, d)
		}
		if ok || pooled[p.group] || b.marginsOf(p.group) != p.curve.Load().margins {
			p.stale = true
		}
	}
	b.gathered = len(deltas)
	return deltas
}

// redraw draws the curve of p from what is known. mu is held.
func (b *Book) redraw(p *profile) {
	p.group.mu.Lock()
	known := p.knows()
	p.group.mu.Unlock()
	p.draw(&known, b.marginsOf(p.group))
}

// adapt works out the margins of all groups. mu is held.
func (b *Book) adapt() {
	for _, g := range b.groups {
		g.adapt()
	}
}

// Apply replaces what is known of the targets by the store's sums, which
// contain every delta up to and including those acked; what Fold returned
// later is added on top. It refits the curves. acked are deltas as Fold
// returned them, or several of one target added up with Sums.Add. A target that
// the store has no sums of keeps what it had.
func (b *Book) Apply(now time.Time, sums map[Target]Sums, acked []Delta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	upTo := map[Target]uint64{}
	for _, d := range acked {
		upTo[d.Target] = max(upTo[d.Target], d.Sums.folded)
	}
	targets := b.Targets()
	rebased := make(map[*profile]bool, len(targets))
	for _, t := range targets {
		base, ok := sums[t]
		if !ok {
			continue
		}
		if base.Updated.After(now) {
			base.Updated = now // another replica's clock runs ahead
		}
		p := (*b.profiles.Load())[t]
		p.group.mu.Lock()
		before := p.known.Shifts
		if p.rebase(base, upTo[t]); p.known.Shifts > before {
			p.group.drift.rest(0) // another replica found it first
			p.group.unjudged = judged{}
			p.waiting = nil // they are of the speed before
		}
		p.group.mu.Unlock()
		rebased[p] = true
	}
	b.adapt()
	pooled := b.pool()
	for _, t := range targets {
		p := (*b.profiles.Load())[t]
		if rebased[p] || pooled[p.group] || p.stale {
			b.redraw(p)
		}
	}
}

// Curve returns the curve of t: an immutable snapshot, never nil. An unknown
// target has an unknown curve.
func (b *Book) Curve(t Target) *Curve {
	if p := (*b.profiles.Load())[t]; p != nil {
		return p.curve.Load()
	}
	return &Curve{margins: margins{all: cmp.Or(b.margin, startMargin)}}
}

// Targets returns all targets, sorted by backend, then model.
func (b *Book) Targets() []Target {
	profiles := *b.profiles.Load()
	targets := make([]Target, 0, len(profiles))
	for t := range profiles {
		targets = append(targets, t)
	}
	slices.SortFunc(targets, Target.compare)
	return targets
}
