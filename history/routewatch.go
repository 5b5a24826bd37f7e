package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// pulseSeconds is over how long a route is judged, and slowSeconds where so few
	// ask that pulseSeconds would rarely hold hurtLeast of them.
	pulseSeconds = 10
	slowSeconds  = 60
)

const (
	// hurtLeast is how many requests have to have missed what was promised, within
	// pulseSeconds, and hurtShare of how many where the route has no goal.
	hurtLeast = 2
	hurtShare = 0.05
)

// routeWatch is what is known of one route beside its state. The zero value has
// seen nothing.
type routeWatch struct {
	state
	heard [slowSeconds + 1]pulse // the latest first
	many  int                    // how many of them there are
}

func (w *routeWatch) hear(p pulse) {
	copy(w.heard[1:], w.heard[:])
	w.heard[0] = p
	w.many = min(w.many+1, len(w.heard))
}

// of is how much f has grown within pulseSeconds.
func (w *routeWatch) of(f func(*pulse) float64) float64 { return w.within(pulseSeconds, f) }

// within is how much f has grown within so many seconds.
func (w *routeWatch) within(seconds int, f func(*pulse) float64) float64 {
	return f(&w.heard[0]) - f(&w.heard[min(w.many-1, seconds)])
}

// over is the seconds over which the route is judged now: pulseSeconds, or slowSeconds
// where few ask, nobody was served of late, and most were not before.
func (w *routeWatch) over() int {
	lost, served := w.within(slowSeconds, lostOf), w.within(slowSeconds, servedOf)
	if lost+served <= hurtLeast*slowSeconds/pulseSeconds && lost > served && w.of(servedOf) == 0 {
		return slowSeconds
	}
	return pulseSeconds
}

func shedOf(p *pulse) float64   { return float64(p.results[Shed]) }
func missedOf(p *pulse) float64 { return float64(p.results[Missed]) }
func failedOf(p *pulse) float64 { return float64(p.results[Failed]) }
func backOf(p *pulse) float64   { return float64(p.back) }
func metOf(p *pulse) float64    { return float64(p.results[Met]) }
func lostOf(p *pulse) float64   { return shedOf(p) + missedOf(p) + failedOf(p) }
func servedOf(p *pulse) float64 { return float64(p.results[Met] + p.results[Unmeasured]) }

func reasonOf(r Reason) func(*pulse) float64 {
	return func(p *pulse) float64 { return float64(p.sheds[r]) }
}

// since is what was lost since before, by result.
func (p *pulse) since(before *pulse) (lost [NumResults]uint64) {
	for _, r := range []Result{Shed, Missed, Failed} {
		lost[r] = p.results[r] - before.results[r]
	}
	return lost
}

// routeCause returns what is wrong with r now, and the kind of the mark: what its
// users notice of it. mu is held.
func (w *Watch) routeCause(now time.Time, rw *routeWatch, r *Route) (c Cause, mark string) {
	if out, n := w.worst(now, r.Backends, 0, isOut); n > 0 && n == len(r.Backends) {
		return out.forRoute(n, len(r.Backends)), "errors"
	}
	over := rw.over()
	of := func(f func(*pulse) float64) float64 { return rw.within(over, f) }
	shed, missed, failed := of(shedOf), of(missedOf), of(failedOf)
	allowed := hurtShare
	if r.Goal > 0 {
		allowed = 1 - r.Goal
	}
	bad := shed + missed + failed
	hurt := bad >= hurtLeast && bad > allowed*(bad+of(metOf))
	switch {
	case r.Unattainable:
		if slow, _ := w.worst(now, r.Backends, pulseSeconds*time.Second, func(k Kind) bool { return k == Slower }); slow.Kind != None {
			return slow.forRoute(1, 1), "floor"
		}
		return Cause{Kind: FloorUnattainable, Words: unattainable(r)}, "floor"
	case !hurt:
		return Cause{}, ""
	case failed >= shed && failed >= missed:
		mark = "errors"
	case shed >= missed:
		mark = "shedding"
	default:
		mark = "floor"
	}
	// What was lost of late may be due to what is over already.
	asked := rw.asked(r)
	explains := func(k Kind) bool {
		if mark == "shedding" && isOut(k) && r.Bound && asked > float64(r.Capacity+r.Out) {
			return false // with all of them in service it would be too much as well
		}
		if mark == "floor" {
			return k == Slower || isOut(k) // who refuses, or errs, makes nobody late who was let in
		}
		return mark == "errors" && k < FloorUnattainable || k == Slower || k < UpstreamErrors
	}
	at := r.Backends
	if mark == "errors" {
		at = w.failing(now, r.Backends)
	}
	if x, n := w.worst(now, at, recently, explains); n > 0 {
		return x.forRoute(n, len(r.Backends)), mark
	}
	switch {
	case mark == "errors":
		c = Cause{Kind: UpstreamErrors, Words: fmt.Sprintf("%.0f requests failed within %d s", failed, over)}
		if len(at) > 0 && len(at) < len(r.Backends) {
			c.Backend = at[0]
			c = c.forRoute(len(at), len(r.Backends))
		}
		return c, mark
	case mark == "floor":
		return Cause{Kind: FloorMissed, Words: fmt.Sprintf("%.0f streams of %.0f missed what was promised, within %d s", missed, missed+of(metOf), over)}, mark
	case of(reasonOf(Unattainable)) > shed/2: // by what they ask for themselves, or many sequences at once
		return Cause{Kind: FloorUnattainable, Words: unattainable(r)}, "floor"
	case of(reasonOf(ByTTFT)) > shed/2:
		return Cause{Kind: TTFT, Words: "first tokens would be late"}, mark
	}
	return Cause{Kind: Overload, Words: rw.overload(r)}, mark
}

// recently is how old a cause may be that explains what was lost of late.
const recently = (pulseSeconds + clearAfter) * time.Second

// failing are those of names at which requests failed of late, the most first, and those
// that were out meanwhile; all of them where nobody knows where requests failed. What is
// wrong elsewhere failed nobody.
func (w *Watch) failing(now time.Time, names []string) []string {
	var at []string
	known := false
	for _, name := range names {
		if b := w.backends[name]; b != nil && (b.failures() > 0 || isOut(b.last.Kind) && now.Sub(b.lastAt) <= recently) {
			at = append(at, name)
			known = known || b.failures() > 0
		}
	}
	if !known {
		return names
	}
	slices.SortStableFunc(at, func(a, b string) int { return cmp.Compare(w.backends[b].failures(), w.backends[a].failures()) })
	return at
}

// forRoute is the cause of a backend as that of a route with so many backends, of
// which so many have one.
func (c Cause) forRoute(have, all int) Cause {
	if all > 1 {
		c.Words = fmt.Sprintf("%s (%s, %d of %d backends)", c.Words, c.Backend, have, all)
	}
	return c
}

// unattainable says whose floor it is: the route's, unless an engine is known to
// give that.
func unattainable(r *Route) string {
	switch {
	case r.Floor == 0 || r.Capacity > 1 || r.Best >= r.Floor: // one place may be for who shows what it takes
		return "requests ask for more than any engine gives alone"
	case r.Best > 0:
		return fmt.Sprintf("floor above what any engine gives alone (%s of %s)", figure(r.Best), figure(r.Floor))
	}
	return fmt.Sprintf("floor above what any engine gives alone (floor %s)", figure(r.Floor))
}

// figure is v as people write it.
func figure(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// asked is how many streams users ask for: those that run, and as many more as those who
// were refused would be. Who comes back as told is one user, however often it is refused.
// Who waits counts where nobody was refused: else those who come back would, again.
func (w *routeWatch) asked(r *Route) float64 {
	p := &w.heard[0]
	more, shed := float64(r.Waiting), w.of(shedOf)
	if shed > 0 && p.served > 0 {
		more = max(shed-w.of(backOf), 0) / pulseSeconds * p.duration / p.served
	}
	return float64(r.Load) + more
}

// overload says how many streams users ask for, of how many that fit.
func (w *routeWatch) overload(r *Route) string {
	words := w.load(r)
	if key := w.heard[0].crowd; key != "" {
		words += ", mostly of key " + key
	}
	return words
}

func (w *routeWatch) load(r *Route) string {
	if !r.Bound || r.Capacity == 0 {
		return "load above capacity"
	}
	asked := w.asked(r)
	if asked <= float64(r.Capacity) { // too few have ended to say how many that is
		return "load above capacity"
	}
	return fmt.Sprintf("load above capacity: %.0f of %d", asked, r.Capacity)
}
