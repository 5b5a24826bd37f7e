package router

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// form is a curve in closed form: TPOT(n) = a + b·n + d·p seconds, with what
// the deciding bound takes off as profiles does it: a margin, 15 % more where
// it is extrapolated, nothing beyond twice the visited n.
type form struct {
	a, b, d float64
	visited int     // 0 = a prior, believed everywhere
	steps   float64 // 0 = plenty
	answer  float64
	margin  float64 // 0 = 10 %
	first   profiles.TTFT
	others  bool // it is what other models on the engine show
}

func (f form) Known() bool { return true }

func (f form) Borrowed() bool { return f.others }

func (f form) TPS(n int) float64 { return 1 / (f.a + f.b*float64(n)) }

func (f form) Low(n int, extraP float64) float64 {
	margin := f.margin
	if margin == 0 {
		margin = 0.1
	}
	low := (1 - margin) / (f.a + f.b*float64(n))
	switch {
	case f.visited > 0 && n > 2*f.visited:
		return 0
	case f.visited > 0 && n > f.visited:
		low *= 0.85
	}
	return low / (1 + low*(f.d*extraP))
}

func (f form) Support() (lo, hi int)          { return min(f.visited, 1), f.visited }
func (f form) MeanOutput() float64            { return f.answer }
func (f form) SecondsPerPromptToken() float64 { return f.d }
func (f form) Shape(n float64) float64        { return f.a + f.b*n }

func (f form) AtRho(n int, _ float64) profiles.Point {
	return profiles.Point{N: n, TPS: f.TPS(n), Low: f.Low(n, 0)}
}

func (f form) Scale() float64 { return 1 }

func (f form) PriorTPS(int) float64 { return math.NaN() }

func (f form) Shown() float64 {
	if f.margin == 0 {
		return 0.1
	}
	return f.margin
}

func (f form) TTFT() profiles.TTFT { return f.first }

func (f form) Seen(n int) float64 {
	if n > f.visited {
		return 0
	}
	return f.TPS(n)
}

func (f form) Steps() float64 {
	if f.steps == 0 {
		return 1e6
	}
	return f.steps
}

// carrying is a curve whose bound allows exactly n streams at floor, and on
// which one stream runs at solo tokens/s.
func carrying(n int, floor, solo float64) form {
	// 0.9/(a+b·n) = floor·1.0001 and a+b = 1/solo.
	at := 0.9 / (floor * 1.0001)
	b := (at - 1/solo) / float64(n-1)
	return form{a: 1/solo - b, b: b}
}

// at is the time base of all tests: they start here.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a router under test with a clock of its own.
type bench struct {
	*Router
	tb   testing.TB
	now  time.Time
	seed uint64
	topo Topology
}

// newBench configures one route "chat" with a floor of 30 over the backends
// named, unless routes are given.
func newBench(tb testing.TB, backends []string, routes ...Route) *bench {
	b := &bench{tb: tb, now: start, seed: 1}
	b.Router = New(Options{Rand: b.rand01})
	if _, measured := tb.(*testing.B); !measured {
		audited(tb, b.Router)
	}
	for _, name := range backends {
		b.topo.Backends = append(b.topo.Backends, Backend{Name: name})
	}
	if len(routes) == 0 {
		routes = []Route{{Name: "chat", SLO: SLO{MinTPS: 30}}}
	}
	for _, rt := range routes {
		if rt.Targets == nil {
			rt.Targets = targets(backends...)
		}
		b.topo.Routes = append(b.topo.Routes, rt)
	}
	b.configure()
	return b
}

func targets(backends ...string) []RouteTarget {
	var ts []RouteTarget
	for _, name := range backends {
		ts = append(ts, RouteTarget{Target: Target{Backend: name, Model: "m"}})
	}
	return ts
}

// seen is every candidate for req as Place would see it now; it reserves nothing.
func (b *bench) seen(req Request) []Candidate {
	rec, _ := b.Preview(b.now, req)
	return rec.Candidates
}

func (b *bench) rand01() float64 {
	b.seed = b.seed*6364136223846793005 + 1442695040888963407
	return float64(b.seed>>11) / (1 << 53)
}

func (b *bench) configure() []Grant { return b.Update(b.now, Configure{Topology: b.topo}) }

// learn hands a curve to model "m" of a backend, as Update(Curves) does.
func (b *bench) learn(backend string, c curve) []Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(b.now)
	b.Router.learn(Target{Backend: backend, Model: "m"}, c)
	return b.wake(b.now, nil)
}

func (b *bench) sleep(d time.Duration) { b.now = b.now.Add(d) }

func (b *bench) tick() []Grant { return b.Update(b.now, Tick{}) }

func (b *bench) health(backend string, h Health) []Grant {
	return b.Update(b.now, BackendHealth{Backend: backend, Health: h})
}

// place asks for a stream on route, changed by edit.
func (b *bench) place(route string, edit ...func(*Request)) Decision {
	req := Request{Route: route, Arrived: b.now, Stream: true}
	for _, e := range edit {
		e(&req)
	}
	return b.Place(b.now, req)
}

// fill places streams until one is not admitted, at most limit, and returns
// them.
func (b *bench) fill(route string, limit int, edit ...func(*Request)) []*Lease {
	var leases []*Lease
	for len(leases) < limit {
		d := b.place(route, edit...)
		if d.Lease == nil {
			if d.Ticket != nil {
				d.Ticket.Cancel(b.now)
			}
			break
		}
		leases = append(leases, d.Lease)
	}
	return leases
}

// wantFill fills route, and says of what there are others than want streams.
func (b *bench) wantFill(route string, want int, what string, edit ...func(*Request)) {
	b.tb.Helper()
	if got := len(b.fill(route, want+1, edit...)); got != want {
		b.tb.Errorf("%d %s, want %d", got, what, want)
	}
}

// reasons returns what Explain says of each target.
func (b *bench) reasons(route string, edit ...func(*Request)) []Reason {
	req := Request{Route: route, Stream: true}
	for _, e := range edit {
		e(&req)
	}
	var out []Reason
	for _, c := range b.seen(req) {
		out = append(out, c.Reason)
	}
	return out
}

func (b *bench) wantReason(route string, want Reason, edit ...func(*Request)) {
	b.tb.Helper()
	if got := b.reasons(route, edit...); len(got) != 1 || got[0] != want {
		b.tb.Errorf("%s: got %v, want %v", route, got, want)
	}
}

func (b *bench) wantRefusal(d Decision, want ShedReason) {
	b.tb.Helper()
	if d.Refusal == nil {
		b.tb.Fatalf("got %+v, want a refusal (%v)", d, want)
	}
	if d.Refusal.Reason != want {
		b.tb.Errorf("refused for %v, want %v", d.Refusal.Reason, want)
	}
}

// load returns the load of the i-th backend.
func (b *bench) load(i int) BackendLoad { return b.Loads()[i] }

func (b *bench) wantCap(want int, when string) {
	b.tb.Helper()
	if got := b.load(0).Cap; got != want {
		b.tb.Errorf("cap %d %s, want %d", got, when, want)
	}
}

func (b *bench) wantM(want int, when string) {
	b.tb.Helper()
	if got := b.load(0).M; got != want {
		b.tb.Errorf("m = %d %s, want %d", got, when, want)
	}
}

// run lets leases decode at tps tokens/s for d, ticking every 50 ms.
func (b *bench) run(leases []*Lease, tps float64, d time.Duration) []Grant {
	var grants []Grant
	began := b.now
	base := make([]float64, len(leases))
	for i, l := range leases {
		l.FirstToken(b.now)
		base[i] = math.Float64frombits(l.relayed.tokens.Load())
	}
	for end := b.now.Add(d); b.now.Before(end); {
		b.sleep(50 * time.Millisecond)
		for i, l := range leases {
			l.Progress(b.now, profiles.Count{Tokens: base[i] + tps*b.now.Sub(began).Seconds()})
		}
		grants = append(grants, b.tick()...)
	}
	return grants
}

// Edits of a request.
func prompt(n int) func(*Request)     { return func(r *Request) { r.PromptTokens = n } }
func wish(tps float64) func(*Request) { return func(r *Request) { r.MinTPS = &tps } }
func whole(r *Request)                { r.Stream = false }
func noDecode(r *Request)             { r.NoDecode, r.Stream = true, false }
func noQueue(r *Request)              { r.NoQueue = true }
func sequences(n int) func(*Request)  { return func(r *Request) { r.Sequences = n } }
func exclude(b string) func(*Request) { return func(r *Request) { r.Exclude = append(r.Exclude, b) } }
func waiter(w any) func(*Request)     { return func(r *Request) { r.Waiter = w } }
func queue(d time.Duration) []Step    { return []Step{{Kind: Queue, Wait: d}, {Kind: Shed}} }
func ttft(d time.Duration) func(*Request) {
	return func(r *Request) { r.MaxTTFT = &d }
}

// force places req on target, whatever runs there.
func (b *bench) force(req Request, target Target) Decision {
	if rt := b.routeOf[req.Route]; rt != nil {
		defer func(p Registered) { rt.policy = p }(rt.policy)
		rt.policy = Registered{Policy: onto(target), Regardless: true}
	}
	return b.Place(b.now, req)
}

// onto is the policy that knows one target.
type onto Target

func (o onto) Pick(c Choice) int {
	for i := range c.Len() {
		if c.Target(i) == Target(o) {
			return i
		}
	}
	return -1
}

// learnNow is learn, with what follows from it for guarantees at once.
func (b *bench) learnNow(backend string, c curve) {
	b.learn(backend, c)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holdPlaces()
}
