package accuracy

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	stores "github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/router/peers"
	"github.com/pacer-dev/pacer/share"
	"github.com/pacer-dev/pacer/sim"
)

// site is so many gateways in front of one engine, which share a store and tell each
// other of their loads as they do through Redis: each writes its own report and then
// reads the newest of the others.
type site struct {
	gateways []*watcher
	told     []peers.Report // the newest of each
	random   *rand.Rand
}

// newSite makes one. Of all requests each gateway relays as many.
func newSite(gateways int) *site {
	s := &site{told: make([]peers.Report, gateways), random: rand.New(rand.NewPCG(1, uint64(gateways)))}
	store := &stores.Memory{Now: func() time.Time { return start }}
	for i := range gateways {
		o := promised(time.Second)
		o.site, o.place, o.store, o.name = s, i, store, string(rune('a'+i))
		o.sees = func(request int) bool { return spread(request)%gateways == i }
		o.tellsAt = share.Every * time.Duration(i) / time.Duration(gateways)
		s.gateways = append(s.gateways, o)
	}
	return s
}

// spread is a number of a request that has nothing to do with its order.
func spread(request int) int {
	x := uint32(request) * 0x9e3779b1
	return int((x ^ x>>15) * 0x85ebca6b >> 8)
}

// tell is one exchange of o with the other gateways of its site.
func (o *watcher) tell(now time.Time) {
	o.tellsAt += share.Every + time.Duration(o.site.random.IntN(int(10*time.Millisecond)))
	o.site.told[o.place] = peers.Of(now, o.n.Own(now), nil)
	others := map[string]peers.Report{}
	for i, other := range o.site.gateways {
		if i != o.place {
			others[other.name] = o.site.told[i]
		}
	}
	remote, _ := peers.Remote(share.State{Replicas: len(o.site.gateways)}, others, nil)
	o.n.Update(now, remote)
}

// nextTold is when a gateway tells next, and which.
func (w *world) nextTold() (at time.Duration, next *watcher) {
	for _, o := range w.watchers {
		if o.site != nil && len(o.site.gateways) > 1 && (next == nil || o.tellsAt < at) {
			at, next = o.tellsAt, o
		}
	}
	return at, next
}

// newGateway returns the router of one of so many gateways.
func newGateway(gateways int) *router.Router {
	r := newRouter()
	r.Update(start, router.Configure{Topology: router.Topology{
		Backends: []router.Backend{{Name: target.Backend}},
		Routes:   []router.Route{{Name: "r", Targets: []router.RouteTarget{{Target: target}}}},
		Replicas: gateways,
	}})
	return r
}

// fleets are how many gateways a gatewaysRow has, one of which is what the others are held
// against.
var fleets = [...]int{1, 3, 8}

// gatewaysRow lets one, three and eight gateways relay the same streams. Those of several
// hear late of each other's.
func gatewaysRow(name string, k *known, three, eight errs, why string) row {
	return row{name: "gateways, " + name, measure: func(t *testing.T) []line {
		truth := k.truth()
		var off [len(fleets)][]sight
		var costs [len(fleets)][]float64
		for seed := range uint64(seeds()) {
			var sites [len(fleets)]*site
			var all []*watcher
			for i, gateways := range fleets {
				sites[i] = newSite(gateways)
				all = append(all, sites[i].gateways...)
			}
			w := newWorld(k.setup, *gatewaysFrom+seed, all...)
			w.run(100e3)
			w.fold()
			w.fold() // the first reads what the last one pushed
			levels, rho := w.visited(), rhoOf(w.levels)
			for i, s := range sites {
				c := s.gateways[0].book.Curve(target)
				off[i] = append(off[i], see(levels, c, func(n int) float64 {
					if n > maxN {
						return math.NaN()
					}
					return truth.tpsAt(n, rho*float64(n))
				}))
				fit, _ := c.Fit()
				costs[i] = append(costs[i], 1e6*fit.D)
			}
		}
		l := line{what: "as shown by 1, 3 and 8 gateways, " + name + ", 100k", why: why}
		gates := [...]errs{{}, three, eight}
		for i, gateways := range fleets {
			var medians, p90s, above []float64
			for _, v := range off[i] {
				medians, p90s, above = append(medians, v.shown.median), append(p90s, v.shown.p90), append(above, v.above)
			}
			of := fmt.Sprintf("%d: ", gateways)
			l.figures = append(l.figures,
				figure{name: of + "median", got: median(medians), goal: 2.5, gate: gates[i].median},
				figure{name: of + "p90", got: median(p90s), goal: 6, gate: gates[i].p90},
				figure{name: of + "worst run", got: slices.Max(medians)},
				figure{name: of + "bound above the truth at worst %", got: slices.Max(above)},
				figure{name: of + "µs of a prompt token", got: median(costs[i])},
			)
		}
		return []line{l}
	}}
}

var gatewaysFrom = flag.Uint64("gatewaysfrom", 0, "the first seed of the rows of several gateways")

// Loads of which n changes faster than gateways hear of each other.
var (
	quick       = sim.EngineOptions{Model: sim.Model{A: 0.003, C: 0.0005, D: 30e-6}, Noise: 0.1, PrefillBatch: 2048}
	quickShort  = knownBy(setup{engine: quick, load: promptless(bursts(8, completions)), jitter: longJitter}, truthTokens/4)
	quickSteady = knownBy(setup{engine: quick, load: promptless(steady(4, conversations)), jitter: longJitter}, truthTokens/3)
	quickTraced = knownBy(setup{engine: quick, load: replay(conversations, 0.7), jitter: longJitter}, truthTokens/3)
)

// TestGatewaysOfForms is gatewaysRow of engines of other forms, to look at: it holds nothing.
func TestGatewaysOfForms(t *testing.T) {
	if !*gatewaysForms {
		t.Skip("a table to look at: -gatewaysforms")
	}
	list := []row{
		gatewaysRow("S1", s1, errs{}, errs{}, ""), gatewaysRow("S3", s3, errs{}, errs{}, ""), gatewaysRow("S4", s4, errs{}, errs{}, ""), gatewaysRow("S6", s6, errs{}, errs{}, ""), gatewaysRow("S7", s7, errs{}, errs{}, ""), gatewaysRow("long prefills", longPrefills, errs{}, errs{}, ""),
		gatewaysRow("QA short", quickShort, errs{}, errs{}, ""), gatewaysRow("QB steady", quickSteady, errs{}, errs{}, ""), gatewaysRow("QC traced", quickTraced, errs{}, errs{}, ""), gatewaysRow("16 a chunk", coalesced16, errs{}, errs{}, ""), gatewaysRow("opens 50", opening50, errs{}, errs{}, ""),
	}
	for _, f := range slices.Concat(forms, apart) {
		list = append(list, gatewaysRow(f.name, f.known, errs{}, errs{}, ""))
	}
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			for _, l := range r.measure(t) {
				var b strings.Builder
				for _, f := range l.figures {
					fmt.Fprintf(&b, " %s", number(f.got))
					if strings.Contains(f.name, "µs") {
						b.WriteString(" |")
					}
				}
				fmt.Printf("%-60.60s |%s\n", r.name, b.String())
			}
		})
	}
}

var gatewaysForms = flag.Bool("gatewaysforms", false, "print what gateways show of engines of all forms")
