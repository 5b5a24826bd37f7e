package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/pacer-dev/pacer/profiles"
)

// screen shows the demo's progress: bars that redraw themselves on a terminal,
// one line every five seconds elsewhere.
type screen struct {
	demo *demo
	tty  bool

	mu      sync.Mutex // guards what follows
	out     io.Writer
	drawn   int  // lines of the last frame, to go back over
	learned bool // the first learned point has been told
}

func newScreen(out io.Writer, d *demo) *screen {
	f, ok := out.(*os.File)
	return &screen{demo: d, out: out, tty: ok && term.IsTerminal(int(f.Fd()))}
}

func (s *screen) intro(dataURL, adminURL string) {
	fmt.Fprintf(s.out, "three simulated GPUs, one gateway at %s (policy %s), floor %g tokens/s\n", dataURL, s.demo.options.policy, demoFloor)
	for _, sim := range s.demo.fleet {
		fmt.Fprintf(s.out, "  %-22s published curve %s\n", sim.name, sim.preset.Name)
	}
	fmt.Fprintf(s.out, "watch it live: %s\n\n", adminURL)
}

// say writes one line of news.
func (s *screen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, "%6s  %s\n", s.clock(), text)
}

func (s *screen) clock() string {
	return time.Since(s.demo.started).Truncate(time.Second).String()
}

// run draws until ctx ends.
func (s *screen) run(ctx context.Context) {
	every := 5 * time.Second
	if s.tty {
		every = 500 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s.news()
		s.draw()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// news tells once when the first point of a curve has been learned.
func (s *screen) news() {
	if s.learned {
		return
	}
	for _, t := range s.demo.program.book.Targets() {
		for _, p := range s.demo.program.book.Curve(t).Points() {
			if p.Source == profiles.Learned && !math.IsNaN(p.TPS) {
				s.learned = true
				s.say(fmt.Sprintf("first learned point: %s gives %.1f tokens/s each to %d", t.Backend, p.TPS, p.N))
				return
			}
		}
	}
}

func (s *screen) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty {
		s.clear()
		s.frame()
		return
	}
	c := s.demo.tally.counts("chat")
	fmt.Fprintf(s.out, "%6s  %-18s running %3d ", s.clock(), s.demo.load.describe(time.Since(s.demo.started)), s.demo.load.users())
	for _, b := range s.demo.backends() {
		fmt.Fprintf(s.out, "| %s n=%d %s ", b.name, b.n, b.speed())
	}
	fmt.Fprintf(s.out, "| met %d missed %d shed %d failed %d\n", c.met, c.missed, c.shed, c.failed)
}

// clear goes back over the last frame.
func (s *screen) clear() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// barWidth is the width of a backend's bar; a full bar is the number of
// streams that the backend carries at the floor, as far as is known.
const barWidth = 40

func (s *screen) frame() {
	c := s.demo.tally.counts("chat")
	t := time.Since(s.demo.started)
	fmt.Fprintf(s.out, "%6s of %v  %s, %d interactive requests running\n", s.clock(), s.demo.options.duration, s.demo.load.describe(t), s.demo.load.users())
	for _, b := range s.demo.backends() {
		full := max(b.capacity, 1)
		filled := min(b.n*barWidth/full, barWidth)
		bar := strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
		fmt.Fprintf(s.out, "  %-22s %s n=%-3d of %-4s %s  %s\n", b.name, bar, b.n, b.carries(), b.speed(), b.health)
	}
	fmt.Fprintf(s.out, "  chat: met %d  missed %d  shed %d  failed %d of %d\n", c.met, c.missed, c.shed, c.failed, c.offered)
	s.drawn = 2 + len(s.demo.fleet)
}

// backendView is one backend as the screen shows it.
type backendView struct {
	name, health string
	n            int
	tps          float64 // learned, at n; NaN = unknown
	capacity     int     // streams it carries at the floor; 0 = unknown
}

func (b backendView) speed() string {
	if math.IsNaN(b.tps) || b.n == 0 {
		return "   –"
	}
	return fmt.Sprintf("%4.0f t/s", b.tps)
}

func (b backendView) carries() string {
	if b.capacity == 0 {
		return "?"
	}
	return fmt.Sprint(b.capacity)
}

func (d *demo) backends() []backendView {
	var out []backendView
	for i, l := range d.program.router.Loads() {
		curve := d.program.book.Curve(profiles.Target{Backend: l.Backend, Model: d.fleet[i].preset.Model})
		out = append(out, backendView{
			name: l.Backend, health: l.Health.String(), n: l.N,
			tps: curve.TPS(max(l.N, 1)), capacity: curve.MaxConcurrency(demoFloor),
		})
	}
	return out
}
