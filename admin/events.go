package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/profiles"
)

const (
	eventEvery = time.Second

	// eventWrite is how long a listener may take to accept one event before
	// it is let go; the page comes back by itself.
	eventWrite = 10 * time.Second

	// maxEventMarks is how many marks of the timeline the first event has.
	maxEventMarks = 100

	// maxListeners bounds what open pages cost.
	maxListeners = 64
)

// serveEvents answers GET /api/v1/events.
func (p *port) serveEvents(w http.ResponseWriter, r *http.Request) {
	window, ok := windowOf(w, r, history.Start, history.Windows())
	if !ok {
		return
	}
	deltas, ok := wordOf(w, r, "deltas", "false", []string{"true", "false"})
	if !ok {
		return
	}
	select {
	case p.listeners <- struct{}{}:
		defer func() { <-p.listeners }()
	default:
		w.Header().Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, "too_many_listeners", "too many pages are open; close one")
		return
	}
	clientconn.Answering(r.Context())

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold the events back
	l := listener{w: w, rc: http.NewResponseController(w), deltas: deltas == "true"}
	if err := l.write([]byte("retry: 2000\n\n")); err != nil {
		return
	}
	tick := time.NewTicker(eventEvery)
	defer tick.Stop()
	for p.mayLook(r) { // a session ends, or is ended
		f, err := p.frames[window].at(time.Now())
		if err != nil {
			return
		}
		marks, version := p.o.Watch.Marks(l.version, maxEventMarks)
		l.version = version
		if err := l.send(f, p.dataURL(), marks); err != nil {
			return // gone, or too slow
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// listener is one open page. It belongs to the goroutine that serves it.
type listener struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	deltas  bool   // what has not changed is left out
	version uint64 // of the marks that it has

	drawings map[profiles.Target]api.Encoded[api.Drawing] // what it was last sent
	targets  map[profiles.Target][]byte                   // of these, the rest
	routes   map[string][]byte
}

// send sends what f has that l does not. Where something has come or gone, l is
// sent everything.
func (l *listener) send(f *frame, dataURL string, marks []history.Mark) error {
	e := api.Event{Time: f.time.UTC(), DataURL: dataURL, Marks: marksOf(marks), Targets: []api.EventTarget{}, Routes: f.routes}
	e.All = !l.deltas || !l.knows(f)
	e.Routes.Routes = []api.Route{}
	drawings := make(map[profiles.Target]api.Encoded[api.Drawing], len(f.targets))
	targets, routes := make(map[profiles.Target][]byte, len(f.targets)), make(map[string][]byte, len(f.routes.Routes))
	for i := range f.targets {
		t := &f.targets[i]
		key := t.state.target
		et := api.EventTarget{Identity: t.state.Identity, State: t.state.State}
		if !bytes.Equal(l.drawings[key], t.learned) {
			et.Learned = t.learned
		}
		drawings[key], targets[key] = t.learned, t.rest
		if e.All || et.Learned != nil || !bytes.Equal(l.targets[key], t.rest) {
			e.Targets = append(e.Targets, et)
		}
	}
	for i, r := range f.routes.Routes {
		routes[r.Model] = f.encoded[i]
		if e.All || !bytes.Equal(l.routes[r.Model], f.encoded[i]) {
			e.Routes.Routes = append(e.Routes.Routes, r)
		}
	}
	l.drawings, l.targets, l.routes = drawings, targets, routes
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return l.write(append(append([]byte("data: "), data...), '\n', '\n'))
}

// knows reports whether l has every name of f, and no other.
func (l *listener) knows(f *frame) bool {
	for i := range f.targets {
		if _, ok := l.targets[f.targets[i].state.target]; !ok {
			return false
		}
	}
	for i := range f.routes.Routes {
		if _, ok := l.routes[f.routes.Routes[i].Model]; !ok {
			return false
		}
	}
	return len(l.targets) == len(f.targets) && len(l.routes) == len(f.routes.Routes)
}

func (l *listener) write(data []byte) error {
	// A writer that knows no deadline, as in tests, does without.
	_ = l.rc.SetWriteDeadline(time.Now().Add(eventWrite))
	if _, err := l.w.Write(data); err != nil {
		return err
	}
	return l.rc.Flush()
}
