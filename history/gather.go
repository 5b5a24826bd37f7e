package history

import (
	"fmt"
	"slices"
	"time"
)

// What one backend does to many routes is one thing that happens. Its routes notice
// at different seconds, so that a line for each would be a flood.
const (
	// gatherFor is how long further routes with the cause of a backend are gathered
	// after the line for the first, and endsFor how long the line of its end waits for
	// the last of them.
	gatherFor = 10 * time.Second
	endsFor   = 30 * time.Second
)

// shared names what routes have in common.
type shared struct {
	kind    Kind
	backend string
	began   bool
}

// gathered is a line that waits for more routes.
type gathered struct {
	line  Line
	since time.Time // of the first that it gathers, or the line that was said for the first
	said  bool      // a line was said; this one has those who came after it
}

// gather takes the lines of this second, and returns those that are to be said now:
// of routes with the cause of a backend the first at once, the others together. mu
// is held.
func (w *Watch) gather(now time.Time, lines []Line) (said []Line) {
	for _, l := range lines {
		if l.Of != OfRoute || l.backend == "" {
			said = append(said, l)
			continue
		}
		key := shared{l.Kind, l.backend, l.Began}
		if g := w.gathering[key]; g != nil {
			g.line.join(l)
			continue
		}
		g := &gathered{line: l, since: now}
		if l.Began {
			said = append(said, l)
			g.line, g.said = Line{Of: l.Of, Kind: l.Kind, Began: true, backend: l.backend, words: l.words, Text: l.Text}, true
		}
		w.gathering[key] = g
	}
	for key, g := range w.gathering {
		wait := endsFor
		if g.said {
			wait = gatherFor
		}
		if now.Sub(g.since) < wait && (key.began || w.have(key)) {
			continue
		}
		if len(g.line.Names) > 0 {
			said = append(said, g.line)
		}
		delete(w.gathering, key)
	}
	for i := range said {
		said[i].finish()
	}
	slices.SortStableFunc(said, func(a, b Line) int { return int(a.Kind) - int(b.Kind) })
	return said
}

// have reports whether a route has that cause still.
func (w *Watch) have(key shared) bool {
	for _, r := range w.routes {
		if r.has.Kind == key.kind && r.has.Backend == key.backend {
			return true
		}
	}
	return false
}

// join adds the routes of l, and what they lost.
func (l *Line) join(o Line) {
	if len(l.Names) == 0 {
		l.words, l.Text = o.words, o.Text
	}
	l.Names = append(l.Names, o.Names...)
	l.lasted = max(l.lasted, o.lasted)
	for i, n := range o.lost {
		l.lost[i] += n
	}
}

// finish writes the text of a line that says that something is over.
func (l *Line) finish() {
	if l.Began {
		return
	}
	who := plural(len(l.Names), "", l.Of.String()+"s") + ": "
	if len(l.Names) == 1 {
		who = subject(l.Of, l.Names[0])
	}
	l.Text = who + overText(l.lasted, l.words, l.lost)
}

// overText says for how long something was wrong, what, and what was lost.
func overText(lasted time.Duration, words string, lost [NumResults]uint64) string {
	text := "over after " + lasted.Round(time.Second).String() + ": " + words
	for _, x := range []struct {
		result Result
		word   string
	}{{Shed, "shed"}, {Missed, "missed"}, {Failed, "failed"}} {
		if n := lost[x.result]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, x.word)
		}
	}
	return text
}
