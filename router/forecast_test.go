package router

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/profiles"
)

func TestLengths(t *testing.T) {
	var h lengths
	h.prepare()
	// Nothing known: exponential with the usual mean, a quarter octave at a time.
	for _, x := range []float64{64, 256, 1024} {
		if got, want := h.ended(0, x), 1-math.Exp(-x/usualAnswer); math.Abs(got-want) > 0.01 {
			t.Errorf("of unknown lengths %.3f end within %g tokens, want %.3f", got, x, want)
		}
	}
	for i := range 400 {
		h.add([]float64{60, 60, 60, 60, 1200}[i%5])
	}
	h.prepare()
	for _, c := range []struct{ from, to, want float64 }{
		{0, 40, 0}, {0, 100, 0.8}, {0, 2000, 1}, {100, 800, 0}, {100, 2000, 1}, {1100, 1300, 1}, {5000, 1e6, 1},
	} {
		if got := h.ended(c.from, c.to); math.Abs(got-c.want) > 0.05 {
			t.Errorf("after %g tokens %.3f end within %g, want %.2f", c.from, got, c.to, c.want)
		}
	}
	if got := h.mean(0); math.Abs(got-288) > 10 {
		t.Errorf("mean %.0f, want 288", got)
	}
	for range 2000 { // what is long past does not count
		h.add(500)
	}
	h.prepare()
	if got := h.ended(0, 300); got > 0.02 {
		t.Errorf("%.3f are short, and there has been none for long", got)
	}
}

func TestLengthsAreADistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h lengths
		for range rapid.IntRange(0, 50).Draw(t, "answers") {
			h.add(rapid.Float64Range(0, 1e7).Draw(t, "tokens"))
		}
		h.prepare()
		from := rapid.Float64Range(0, 1e6).Draw(t, "from")
		a := from + rapid.Float64Range(0, 1e6).Draw(t, "a")
		b := a + rapid.Float64Range(0, 1e6).Draw(t, "b")
		x, y := h.ended(from, a), h.ended(from, b)
		if !(x >= -1e-9 && x <= y+1e-9 && y <= 1+1e-9) {
			t.Fatalf("from %g: %g ended by %g, %g by %g", from, x, a, y, b)
		}
	})
	for i := range lengthBins {
		if lo := lengthEdges[i]; lengthBin(lo) != i || i > 0 && lengthBin(math.Nextafter(lo, 0)) != i-1 {
			t.Errorf("bin %d begins at %g, which is in bin %d", i, lo, lengthBin(lo))
		}
	}
}

// Streams of one length that have got so far end when they have got there.
func TestForecastGoesByHowFarStreamsGot(t *testing.T) {
	b := newBench(t, []string{"x"})
	c := carrying(10, 30, 60)
	b.learn("x", c)
	for range 400 {
		l := b.place("chat").Lease
		l.Done(b.now, 300)
	}
	streams := b.fill("chat", 10)
	v := c.TPS(10) // some 33 tokens/s
	for i, l := range streams {
		l.FirstToken(b.now)
		b.now = start.Add(time.Duration(i+1) * time.Millisecond)
		l.Progress(b.now, profiles.Count{Tokens: float64(30 * i)}) // 0, 30 … 270
	}
	a := newAsk(b.now, b.routes[0], &Request{Route: "chat"})
	places, known := b.places(&a)
	if !known {
		t.Fatal("nothing is known")
	}
	for _, k := range []int{1, 3, 5, 9} {
		want := float64(30*k) / v
		if got, ok := untilPlace(&places, float64(k)); !ok || math.Abs(got.Seconds()-want) > 0.25*want+0.3 {
			t.Errorf("place %d in %v, want %.2f s", k, got, want)
		}
	}
	// One who needs two places less there waits for three to end.
	strict := newAsk(b.now, b.routes[0], &Request{Route: "chat", MinTPS: new(float64)})
	strict.floor = c.Low(8, 0)
	if got := strict.missing(b.routes[0].models[0], b.routes[0].models[0].group.present()); got != 3 {
		t.Errorf("%d have to end, want 3", got)
	}
	later, _ := b.places(&strict)
	got, _ := untilPlace(&later, 1)
	if want, _ := untilPlace(&places, 3); got != want {
		t.Errorf("the first place for a strict one in %v, want that of the third, %v", got, want)
	}
}

// In the long run places come free as fast as answers end, however long they
// are; and a forecast that is wrong is corrected by what comes of it.
func TestForecastAgainstASimulation(t *testing.T) {
	for _, c := range []struct {
		name   string
		length func(*rand.Rand) float64
		slower float64 // than the curve says
	}{
		{"fixed", func(*rand.Rand) float64 { return 300 }, 1},
		{"exponential", func(r *rand.Rand) float64 { return 1 + 300*r.ExpFloat64() }, 1},
		{"short and long", func(r *rand.Rand) float64 {
			if r.Float64() < 0.8 {
				return 60
			}
			return 1260
		}, 1},
		{"slower than known", func(r *rand.Rand) float64 { return 1 + 300*r.ExpFloat64() }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			const streams = 40
			r := rand.New(rand.NewPCG(1, 2))
			b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 25 / c.slower}})
			curve := carrying(streams, 30, 60)
			b.learn("x", curve)
			v := curve.TPS(streams) / c.slower
			lease, got, want := make([]*Lease, streams), make([]float64, streams), make([]float64, streams)
			begin := func(i int) {
				lease[i] = b.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}).Lease
				lease[i].FirstToken(b.now)
				got[i], want[i] = 0, c.length(r)
			}
			for i := range lease {
				begin(i)
				got[i] = want[i] * r.Float64()
			}
			ended := []time.Time{}
			type forecast struct {
				made   time.Time
				places [forecastSteps]float64
			}
			var forecasts []forecast
			for step := range 20 * 180 {
				b.sleep(50 * time.Millisecond)
				for i := range lease {
					if got[i] += v * 0.05; got[i] >= want[i] {
						lease[i].Done(b.now, want[i])
						ended = append(ended, b.now)
						begin(i)
					}
					lease[i].Progress(b.now, profiles.Count{Tokens: got[i]})
				}
				a := newAsk(b.now, b.routes[0], &Request{Route: "chat"})
				places, _ := b.places(&a)
				if step >= 20*60 && step%200 == 0 && step < 20*150 {
					forecasts = append(forecasts, forecast{b.now, places})
				}
			}
			for _, horizon := range []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second} {
				predicted, came := 0.0, 0
				for _, f := range forecasts {
					predicted += placesBy(&f.places, horizon)
					for _, at := range ended {
						if at.After(f.made) && !at.After(f.made.Add(horizon)) {
							came++
						}
					}
				}
				ratio := predicted / float64(came)
				t.Logf("within %v: predicted %.0f, came %d (%.2f)", horizon, predicted, came, ratio)
				if ratio < 0.7 || ratio > 1.35 {
					t.Errorf("within %v: predicted %.0f, came %d", horizon, predicted, came)
				}
			}
		})
	}
}

// The promises against a plain list of them.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p promises
		type open struct {
			at, from, since time.Time
			key             uint64
			tenant          string
		}
		var list []open
		now := time.Unix(rapid.SampledFrom([]int64{-1 << 35, -3, 0, 1 << 31}).Draw(t, "epoch"), 0)
		for range rapid.IntRange(1, 200).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 300, 2000, 9000, 100_000}).Draw(t, "ms")) * time.Millisecond)
			list = slices.DeleteFunc(list, func(o open) bool { return o.at.Unix() <= now.Unix()-promiseLate })
			key := rapid.Uint64Range(0, 3).Draw(t, "key")
			tenant := []string{"", "b"}[key%2]
			if rapid.Bool().Draw(t, "make") {
				at := now.Add(time.Duration(rapid.IntRange(1000, 60_000).Draw(t, "told")) * time.Millisecond)
				p.make(now, promise{at: at, since: now, tenant: tenant}, key)
				list = append(list, open{at, at.Add(-max(promiseEarly, at.Sub(now)/8)), now, key, tenant})
			} else {
				first := -1
				for i, o := range list {
					if key != 0 && o.key == key && (first < 0 || o.at.Before(list[first].at)) {
						first = i
					}
				}
				ok := first >= 0 && !now.Before(list[first].from)
				kept, got := p.keep(now, key)
				if got != ok {
					t.Fatalf("recognised %v, want %v", got, ok)
				}
				if ok {
					// Of several for one time it may be any.
					same := slices.IndexFunc(list, func(o open) bool {
						return o.key == key && o.at.Equal(list[first].at) && o.since.Equal(kept.since)
					})
					if same < 0 {
						t.Fatalf("refused first at %v, want %v", kept.since, list[first].since)
					}
					list = slices.Delete(list, same, same+1)
				}
			}
			end := now.Add(time.Duration(rapid.IntRange(0, 70).Draw(t, "end")) * time.Second)
			due, own, others, keyed := 0, 0, 0, 0
			for _, o := range list {
				if o.at.Unix() <= end.Unix() {
					due++
					if o.tenant == tenant {
						own++
					}
				}
				if o.tenant != tenant {
					others++
				}
				if o.key != 0 {
					keyed++
				}
			}
			// All of them are expected at most.
			most := float64(own + min(others, own+1))
			if got := p.before(now, end, tenant); got > most+1e-9 || got < 0 || due > 0 && !(got > 0) {
				t.Fatalf("%v before %v, want at most %v of the %d", got, end, most, due)
			}
			sum := 0
			for _, tenant := range p.tenants {
				sum += tenant.open
			}
			if sum != len(list) || p.open != len(list) || p.keyed != keyed {
				t.Fatalf("%d open, %d by tenant, %d recognisable, want %d and %d", p.open, sum, p.keyed, len(list), keyed)
			}
			if got := p.expected(now); got < 0 || got > float64(len(list))+1e-9 {
				t.Fatalf("%v expected of %d", got, len(list))
			}
		}
	})
}

// The promises of a key are in the order of their slots, also when the clock of the
// wall was set back between two of them: they are compared by that clock alone.
func TestPromisesGoByTheClockOfTheirSlots(t *testing.T) {
	var p promises
	now := time.Now()
	p.make(now, promise{at: now.Add(10 * time.Second), since: now, tenant: "a"}, 7)
	if q := p.byKey[7][0]; q.at != q.at.Round(0) || q.from != q.from.Round(0) {
		t.Errorf("a promise for %v, kept from %v, goes by the monotonic clock too", q.at, q.from)
	}
}

func TestPromisesAreBounded(t *testing.T) {
	var p promises
	made := 0
	for i := range 3 * mostPromises {
		if p.full(start, fmt.Sprint(i)) {
			continue
		}
		p.make(start, promise{at: start.Add(30 * time.Second), since: start, tenant: fmt.Sprint(i)}, uint64(i+1))
		made++
	}
	if made != mostPromises || p.keyed != made || len(p.byKey) != made || p.open != made || len(p.tenants) != made {
		t.Errorf("%d recognisable of %d, %d tenants, want %d", p.keyed, p.open, len(p.tenants), mostPromises)
	}
	var alone promises
	for i := range mostPromises {
		if !alone.full(start, "greedy") {
			alone.make(start, promise{at: start.Add(30 * time.Second), since: start, tenant: "greedy"}, uint64(i+1))
		}
	}
	if alone.open != mostPromises/2 || alone.full(start, "other") {
		t.Errorf("one tenant has %d promises, want half of %d; another one is kept out: %v", alone.open, mostPromises, alone.full(start, "other"))
	}
	late := start.Add(time.Minute)
	if p.full(late, "") || p.keyed != 0 || len(p.byKey) != 0 || p.open != 0 || len(p.tenants) != 0 {
		t.Errorf("%d recognisable of %d, %d tenants a minute later", p.keyed, p.open, len(p.tenants))
	}
	for i := range 3 * mostRecords { // what is kept at once leaves little behind
		p.make(late, promise{at: late.Add(time.Second), since: late, tenant: fmt.Sprint(i)}, 7)
		p.keep(late.Add(time.Second), 7)
	}
	if kept := len(p.slot(late.Add(time.Second).Unix()).keys); kept > 1 || len(p.tenants) > mostRecords+1 {
		t.Errorf("%d keys of kept promises are left, and %d tenants", kept, len(p.tenants))
	}
}

// A crowd that never comes is not waited for: of those who are told, as many are
// expected as came of late, and who comes is not put behind a crowd of strangers
// that does not.
func TestWhoDoesNotComeIsNotExpected(t *testing.T) {
	var p promises
	now := start
	for i := range 2000 { // each second ten of a crowd, and one who comes
		p.make(now, promise{at: now.Add(5 * time.Second), since: now, tenant: fmt.Sprint("crowd ", i)}, uint64(i+1))
		if i%10 == 0 {
			p.make(now, promise{at: now.Add(5 * time.Second), since: now, tenant: "faithful"}, uint64(1_000_000+i))
		}
		if back := i - 50; back >= 0 && back%10 == 0 {
			if _, ok := p.keep(now, uint64(1_000_000+back)); !ok {
				t.Fatal("who comes as told is not recognised")
			}
		}
		now = now.Add(100 * time.Millisecond)
	}
	if got := p.expected(now); got > 15 {
		t.Errorf("%.0f are expected of %d, want about 5", got, p.open)
	}
	if share, strangers := p.shares("faithful"); share < 0.9 || strangers > 0.1 {
		t.Errorf("%.2f of the faithful come, and %.2f of the strangers, as it sees them", share, strangers)
	}
	if _, strangers := p.shares("crowd"); strangers != 1 {
		t.Errorf("%.2f of the strangers, as they see each other", strangers)
	}
}

// Who has come as told is remembered, when many others were told since.
func TestTenantsAreForgottenOneByOne(t *testing.T) {
	var p promises
	now := start
	come := func(name string, key uint64) {
		p.make(now, promise{at: now.Add(time.Second), since: now, tenant: name}, key)
		now = now.Add(time.Second)
		if _, ok := p.keep(now, key); !ok {
			t.Fatal("who comes as told is not recognised")
		}
	}
	for i := range mostRecords - 1 {
		come(fmt.Sprint("early ", i), uint64(i+1))
	}
	come("regular", 1<<32)
	for i := range mostRecords - 1 { // as many as are remembered
		come(fmt.Sprint("late ", i), uint64(i+1))
	}
	come("regular", 1<<32)
	come("one more", 1)
	if len(p.tenants) != mostRecords || p.idle.count != mostRecords || p.tenants["late 0"] != nil || p.tenants["late 1"] == nil {
		t.Errorf("%d are remembered, %d idle, the first of the late ones %v, want %d without that one", len(p.tenants), p.idle.count, p.tenants["late 0"], mostRecords)
	}
	if r := p.tenants["regular"]; r == nil || r.record.told < 1.9 {
		t.Errorf("of the regular one it is known %+v, want two promises", r)
	}
}

// The sums over tenants against a loop over all of them.
func TestCrowdAgainstALoop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c crowd
		type member struct {
			count  int
			weight float64
		}
		var list []member
		for range rapid.IntRange(1, 100).Draw(t, "events") {
			if n := len(list); n > 0 && rapid.Bool().Draw(t, "leaves") {
				i := rapid.IntRange(0, n-1).Draw(t, "who")
				c.remove(list[i].count, list[i].weight)
				list = slices.Delete(list, i, i+1)
			} else {
				m := member{rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(0, mostPromises)).Draw(t, "count"), rapid.Float64Range(0.02, 1).Draw(t, "weight")}
				c.add(m.count, m.weight)
				list = append(list, m)
			}
		}
		most := rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, mostPromises)).Draw(t, "most")
		want := 0.0
		for _, m := range list {
			want += m.weight * float64(min(m.count, most))
		}
		got := c.upTo(most)
		if got < want-1e-6*(want+1) || got > want+1e-6*(want+1) && (most <= 8 || got > 1.2*want) {
			t.Fatalf("%v of at most %d each, want %v", got, most, want)
		}
	})
}
