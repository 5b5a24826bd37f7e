package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/must"
)

// events opens the stream of events in a bubble of virtual time. next returns
// the next event; it blocks until there is one. stop hangs up and waits.
func (w *world) events(t *testing.T) (next func() wantEvent, stop func()) {
	t.Helper()
	data, stop := w.rawEvents(t)
	return func() wantEvent {
		t.Helper()
		text := data()
		var e wantEvent
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return e
	}, stop
}

// rawEvents is events as they come.
func (w *world) rawEvents(t *testing.T) (next func() []byte, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, out := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer out.Close()
		req := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9090/api/v1/events", nil).WithContext(ctx)
		w.handler.ServeHTTP(&pipeWriter{header: http.Header{}, Writer: out}, req)
	}()
	lines := bufio.NewReader(r)
	next = func() []byte {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream of events ended: %v", err)
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				return []byte(data)
			}
		}
	}
	return next, func() {
		cancel()
		r.Close()
		<-done
	}
}

type pipeWriter struct {
	header http.Header
	io.Writer
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) WriteHeader(int)     {}
func (w *pipeWriter) Flush()              {}

// wantEvent is an event with its drawings, which are written encoded.
type wantEvent struct {
	api.Event
	Targets []struct {
		api.EventTarget
		Learned *api.Drawing `json:"learned"`
	} `json:"targets"`
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		next, stop := w.events(t)
		defer stop()
		first := next()
		if len(first.Targets) != 3 || len(first.Routes.Routes) != 3 || first.DataURL != "http://127.0.0.1:8080" {
			t.Fatalf("got %d targets, %d routes, data port %q, want 3, 3 and http://127.0.0.1:8080", len(first.Targets), len(first.Routes.Routes), first.DataURL)
		}
		l := first.Targets[0].Learned
		if l == nil || len(l.Bins) != 11 || l.Support == nil || l.Support[1] != 40 {
			t.Fatalf("h200: got %+v, want 11 bins up to n = 40", l)
		}
		c := l.Curve
		if len(c.N) == 0 || len(c.TPS) != len(c.N) || len(c.Low) != len(c.N) || c.N[0] != 1 || c.N[len(c.N)-1] < 70 || c.N[len(c.N)-1] > 80 {
			t.Fatalf("h200: the curve is drawn at n = %v, want from 1 to about twice the support", c.N)
		}
		for i, n := range c.N {
			if !near(c.TPS[i], truth(n), 0.1) {
				t.Errorf("h200 at n=%d: got %v tok/s, want about %.4g", n, c.TPS[i], truth(n))
			}
		}
		if b := l.Bins[3]; !near(b.TPS, truth(b.N), 0.02) || api.Number(b.Prior).Known() {
			t.Errorf("h200 at n=%d: measured %v, want %.4g, and no prior", b.N, b.TPS, truth(b.N))
		}
		if b := first.Targets[2].Learned.Bins[0]; api.Number(b.TPS).Known() || !near(b.Prior, 70, 0.05) {
			t.Errorf("l40s at n=1: got %+v, want a prior of 70 and nothing measured", b)
		}

		// What the listener has is not sent again; what changes is.
		w.occupy(t, 1, 2)
		second := next()
		if gap := second.Time.Sub(first.Time); gap != time.Second {
			t.Errorf("the second event came after %s, want 1s", gap)
		}
		for _, target := range second.Targets {
			if target.Learned != nil {
				t.Errorf("%s: nothing was learned, but the curve is sent again", target.Backend)
			}
		}
		if f := second.Targets[0].InFlight; f.Waiting != 1 || f.Decoding != 2 {
			t.Errorf("h200: got %+v in flight, want 1 waiting and 2 decoding", f)
		}
		teach(w.book, time.Now(), l40s)
		third := next()
		if third.Targets[0].Learned != nil || third.Targets[2].Learned == nil || !api.Number(third.Targets[2].Learned.Bins[0].TPS).Known() {
			t.Errorf("after streams on l40s got %+v, want only its curve, measured", third.Targets)
		}
	})
}

func TestListenersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var stops []func()
		for range maxListeners {
			next, stop := w.events(t)
			next()
			stops = append(stops, stop)
		}
		rec := w.get("/api/v1/events")
		if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
			t.Errorf("listener %d: got %d, want 503 with Retry-After", maxListeners+1, rec.Code)
		}
		stops[0]()
		next, stop := w.events(t)
		next()
		stop()
		for _, stop := range stops[1:] {
			stop()
		}
	})
}

// Whoever asks within a second shares the work.
func TestOneFrameForAll(t *testing.T) {
	taken := 0
	f := frames{take: func(now time.Time) (*frame, error) {
		taken++
		return &frame{time: now}, nil
	}}
	now := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := f.at(now); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := f.at(now.Add(500 * time.Millisecond)); err != nil || taken != 1 {
		t.Errorf("%d frames were taken within half a second, want 1", taken)
	}
	if _, err := f.at(now.Add(time.Second)); err != nil || taken != 2 {
		t.Errorf("%d frames were taken after a second, want 2", taken)
	}
}

func TestDataURL(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:8080":   "http://127.0.0.1:8080",
		":8080":          "http://127.0.0.1:8080",
		"10.0.0.5:80":    "http://10.0.0.5:80",
		"127.0.0.1:0":    "",
		"[::]:8080":      "http://127.0.0.1:8080",
		"localhost:8080": "http://localhost:8080",
	} {
		p := &port{o: Options{Config: inForce(configListening(listen))}}
		if got := p.dataURL(); got != want {
			t.Errorf("listen %s: got %q, want %q", listen, got, want)
		}
	}
	p := &port{o: Options{Config: inForce(configListening("127.0.0.1:0")), DataURL: func() string { return "http://127.0.0.1:34567" }}}
	if got := p.dataURL(); got != "http://127.0.0.1:34567" {
		t.Errorf("got %q, want what the program said", got)
	}
}

// Budget: 0.1 ms a target (here 3); it is paid once a second, however many pages
// are open.
func BenchmarkFrame(b *testing.B) {
	w := newWorld(b)
	p := &port{o: Options{Config: inForce(configListening(":8080")), Router: w.router, Book: w.book, Metrics: w.metrics, Watch: w.watch}}
	b.ReportAllocs()
	for b.Loop() {
		must.Get(p.frame(time.Now(), history.Start))(b)
	}
}
