package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/profiles"
)

const (
	eventEvery = time.Second

	// eventWrite is how long a listener may take to accept one event before
	// it is let go; the page comes back by itself.
	eventWrite = 10 * time.Second

	// maxListeners bounds what open pages cost.
	maxListeners = 64
)

// serveEvents answers GET /api/v1/events.
func (p *port) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !p.listeners.enter() {
		w.Header().Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, "too_many_listeners", "too many pages are open; close one")
		return
	}
	defer p.listeners.leave()
	clientconn.Answering(r.Context())

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold the events back
	l := listener{w: w, rc: http.NewResponseController(w), has: map[profiles.Target]api.Encoded[api.Drawing]{}}
	if err := l.write([]byte("retry: 2000\n\n")); err != nil {
		return
	}
	tick := time.NewTicker(eventEvery)
	defer tick.Stop()
	for {
		f, err := p.frames.at(time.Now())
		if err != nil {
			return
		}
		if err := l.send(f, p.dataURL()); err != nil {
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
	w   http.ResponseWriter
	rc  *http.ResponseController
	has map[profiles.Target]api.Encoded[api.Drawing] // what it was last sent
}

func (l *listener) send(f *frame, dataURL string) error {
	e := api.Event{Time: f.time.UTC(), DataURL: dataURL, Targets: []api.EventTarget{}, Routes: f.routes}
	seen := make(map[profiles.Target]api.Encoded[api.Drawing], len(f.targets))
	for _, t := range f.targets {
		key := t.state.target
		et := api.EventTarget{Identity: t.state.Identity, State: t.state.State}
		if !bytes.Equal(l.has[key], t.learned) {
			et.Learned = t.learned
		}
		seen[key] = t.learned
		e.Targets = append(e.Targets, et)
	}
	l.has = seen
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return l.write(append(append([]byte("data: "), data...), '\n', '\n'))
}

func (l *listener) write(data []byte) error {
	// A writer that knows no deadline, as in tests, does without.
	_ = l.rc.SetWriteDeadline(time.Now().Add(eventWrite))
	if _, err := l.w.Write(data); err != nil {
		return err
	}
	return l.rc.Flush()
}
