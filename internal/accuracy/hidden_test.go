package accuracy

import (
	"slices"

	"github.com/pacer-dev/pacer/router"
)

// moveHidden lets the hidden tenant come and go: every few seconds it wants
// another number of sequences, from none to twice the mean. Those that ended
// are followed by others.
func (w *world) moveHidden(ended []*request) {
	for _, r := range ended {
		i := slices.Index(w.hiddenRunning, r)
		w.hiddenRunning = slices.Delete(w.hiddenRunning, i, i+1)
		w.startHidden()
	}
	if w.now < w.hiddenTurn {
		return
	}
	w.hiddenTurn = w.now + seconds(2+8*w.random.ExpFloat64())
	want := w.random.IntN(int(2*w.hidden) + 1)
	for len(w.hiddenRunning) > want {
		last := len(w.hiddenRunning) - 1
		w.cancel(w.hiddenRunning[last])
		w.hiddenRunning = w.hiddenRunning[:last]
	}
	for len(w.hiddenRunning) < want {
		w.startHidden()
	}
}

// startHidden sends a request of the hidden tenant.
func (w *world) startHidden() {
	r := &request{index: -1, prompt: 1, answer: 1 << 20}
	if w.alike {
		list := conversations()
		like := list[w.random.IntN(len(list))]
		r.prompt, r.answer = max(like.PromptTokens, 1), like.OutputTokens
	}
	w.start(r)
	w.hiddenRunning = append(w.hiddenRunning, r)
}

// scrape reads the engine's own count, as of its last step.
func (w *world) scrape() {
	w.scraped += seconds(0.9 + 0.2*w.random.Float64())
	for _, o := range w.watchers {
		o.n.Update(at(w.now), router.EngineLoad{
			Backend: target.Backend, Running: w.engines[0].Running(), Waiting: w.engines[0].Waiting(), At: at(w.now),
		})
	}
}

// newRouter returns a router that counts the sequences of the target.
func newRouter() *router.Router {
	r := router.New(router.Options{Rand: func() float64 { return 0 }})
	r.Update(start, router.Configure{Topology: router.Topology{
		Backends: []router.Backend{{Name: target.Backend}},
		Routes:   []router.Route{{Name: "r", Targets: []router.RouteTarget{{Target: target}}}},
	}})
	return r
}
