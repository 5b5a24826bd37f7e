package demo

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

	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// screen shows the demo's progress: bars that redraw themselves on a terminal,
// one line every five seconds elsewhere.
type screen struct {
	demo *demo
	tty  *os.File // nil = not a terminal

	mu      sync.Mutex // guards what follows
	out     io.Writer
	drawn   int  // lines of the last frame, to go back over
	learned bool // the first learned point has been told
}

func newScreen(out io.Writer, d *demo) *screen {
	return &screen{demo: d, out: out, tty: report.Terminal(out)}
}

func (s *screen) intro(dataURL, adminURL string) {
	fmt.Fprintf(s.out, "three simulated GPUs, one gateway at %s (policy %s), floor %g tokens/s\n", dataURL, s.demo.options.Policy, floorTPS)
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
	if s.tty != nil {
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
	for _, t := range s.demo.gateway.Book.Targets() {
		for _, p := range s.demo.gateway.Book.Curve(t).Points() {
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
	if s.tty != nil {
		s.clear()
		s.frame()
		return
	}
	c := s.demo.tally.counts("chat")
	fmt.Fprintf(s.out, "%6s  %-18s %3d interactive running ", s.clock(), s.demo.load.describe(time.Since(s.demo.started)), s.demo.load.users())
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

// besideBar is how many columns of a backend's line are not its bar.
const besideBar = 52

// frame draws the bars. A full bar is the number of streams that the backend
// carries at the floor, as far as is known. Lines are cut to the terminal's
// width, so that clear finds as many as were written.
func (s *screen) frame() {
	width, _, err := term.GetSize(int(s.tty.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	c := s.demo.tally.counts("chat")
	lines := []string{fmt.Sprintf("%6s of %v  %s, %d interactive requests running", s.clock(), s.demo.options.Duration,
		s.demo.load.describe(time.Since(s.demo.started)), s.demo.load.users())}
	bar := max(min(width-besideBar, 40), 5)
	for _, b := range s.demo.backends() {
		lines = append(lines, fmt.Sprintf("  %-19s %s n=%-3d of %-4s %s %s", b.name, b.bar(bar), b.n, b.carries(), b.speed(), b.health))
	}
	lines = append(lines, fmt.Sprintf("  chat: met %d  missed %d  shed %d  failed %d of %d", c.met, c.missed, c.shed, c.failed, c.offered))
	for _, line := range lines {
		if r := []rune(line); len(r) >= width {
			line = string(r[:width-1])
		}
		fmt.Fprintln(s.out, line)
	}
	s.drawn = len(lines)
}

// backendView is one backend as the screen shows it.
type backendView struct {
	name, health string
	n            int
	tps          float64 // learned, at n; NaN = unknown
	capacity     int     // streams it carries at the floor; 0 = unknown
}

// bar draws n against the capacity; without a known one it stays empty.
func (b backendView) bar(width int) string {
	filled := 0
	if b.capacity > 0 {
		filled = min(b.n*width/b.capacity, width)
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}

func (b backendView) speed() string {
	if math.IsNaN(b.tps) || b.n == 0 {
		return "   –    "
	}
	return fmt.Sprintf("%4.0f t/s", b.tps)
}

func (b backendView) carries() string {
	if b.capacity == 0 {
		return "?"
	}
	return fmt.Sprint(b.capacity)
}

// healthOf is the word for how a backend is.
func healthOf(l router.BackendLoad) string {
	if l.Hung && l.Health == router.Up {
		return "hung"
	}
	return l.Health.String()
}

func (d *demo) backends() []backendView {
	var out []backendView
	for i, l := range d.gateway.Router.Loads() {
		curve := d.gateway.Book.Curve(profiles.Target{Backend: l.Backend, Model: d.fleet[i].preset.Model})
		out = append(out, backendView{
			name: l.Backend, health: healthOf(l), n: l.N,
			tps: curve.TPS(max(l.N, 1)), capacity: curve.MaxConcurrency(floorTPS),
		})
	}
	return out
}
