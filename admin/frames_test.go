package admin

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/chromium"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/router"
)

// stir keeps every route and backend of the largest fleet changing until the returned
// function is called: requests end, streams begin and end on each of them.
func (w *fleet) stir(t *testing.T) (still func()) {
	var names []string
	for _, b := range w.conf.Load().Backends {
		names = append(names, b.Name)
	}
	var running sync.WaitGroup
	done := make(chan struct{})
	running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		var leases []*router.Lease
		for turn := 0; ; turn++ {
			select {
			case <-done:
				for _, l := range leases {
					l.Done(time.Now(), 0)
				}
				return
			case now := <-tick.C:
				for i, r := range w.conf.Load().Routes {
					name := r.Models[0]
					w.metrics.Observe(telemetry.Exchange{
						Route: name, Backend: names[(turn+i)%len(names)], Outcome: "ok", Counted: true, Result: telemetry.Met,
						TPS: 20 + float64((turn+i)%40), TTFT: time.Duration(100+turn%200) * time.Millisecond,
					})
					d := w.router.Place(now, router.Request{Route: name, Arrived: now, PromptTokens: 10, MaxTokens: 100, Stream: true})
					if d.Lease != nil {
						d.Lease.FirstToken(now)
						leases = append(leases, d.Lease)
					}
				}
				for len(leases) > 400 {
					leases[0].Done(now, 0)
					leases = leases[1:]
				}
			}
		}
	})
	return func() { close(done); running.Wait() }
}

// TestPageFrames measures how smoothly the largest fleet is drawn while every row of it
// changes each second and the page is scrolled. The figure is for the log: what a frame
// takes depends on the machine and on what else runs there, so none is asserted.
func TestPageFrames(t *testing.T) {
	if racetest.On {
		t.Skip("the gateway of this process would be measured with the race detector")
	}
	w := newFleet(t, true)
	c := chromium.Start(t)
	openFleet(t, c, w.world, 1280, 900, false)
	defer w.stir(t)()
	c.Eval(settled, nil)
	var got struct{ Gaps, Tasks, Deltas []float64 }
	c.Eval(`new Promise((done) => {
		const gaps = [], tasks = [], deltas = [];
		new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration))).observe({ type: "longtask" });
		new MutationObserver((all) => deltas.push(new Set(all.map((m) => (m.target.nodeType === 1 ? m.target : m.target.parentElement)?.closest("tbody")?.id)).size))
			.observe(document.getElementById("route-table"), { subtree: true, childList: true, characterData: true, attributes: true });
		const end = performance.now() + 10_000;
		let last = 0, n = 0;
		const frame = (at) => {
			if (last) gaps.push(at - last);
			last = at;
			scrollTo(0, (n++ * 12) % Math.max(1, document.documentElement.scrollHeight - innerHeight));
			if (at < end) requestAnimationFrame(frame);
			else done({ gaps, tasks, deltas });
		};
		requestAnimationFrame(frame);
	})`, &got)
	if len(got.Deltas) < 5 || slices.Max(got.Deltas) < 30 {
		t.Fatalf("rows that changed at once: %v, want all 30 of them several times: nothing was measured", got.Deltas)
	}
	var sum, dropped float64
	for _, g := range got.Gaps {
		sum += g
		if g > 25 { // half a frame late at least: one was left out
			dropped++
		}
	}
	slices.Sort(got.Gaps)
	at := func(q float64) float64 { return got.Gaps[int(q*float64(len(got.Gaps)-1))] }
	t.Logf("%.1f frames/s; between two: p50 %.1f, p95 %.1f, p99 %.1f, longest %.1f ms; %.1f %% above 25 ms; %d updates of up to %.0f rows; tasks above 50 ms: %.0f",
		float64(len(got.Gaps))/sum*1000, at(0.5), at(0.95), at(0.99), at(1), 100*dropped/float64(len(got.Gaps)), len(got.Deltas), slices.Max(got.Deltas), got.Tasks)
}
