package history

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/keep"
)

// Watch finds out what is wrong, from a Snapshot each second and what the Ring
// counted. It is safe for concurrent use.
//
// Lock order: Watch.mu before Ring.mu.
type Watch struct {
	ring *Ring

	mu       sync.Mutex // guards what follows
	routes   map[string]*routeWatch
	backends map[string]*backendWatch
	store    state
	file     state // the configuration
	lines    timeline
	breakers map[string]uint64 // open marks, by backend
	causes   []Standing        // the worst first
	total    int               // routes there are
	losing   []string          // routes that lose requests, and why is not said yet

	gathering map[shared]*gathered
	foreign   map[markOf]uint64 // marks of other replicas, and what stands for each
	shedding  float64           // per second, of all routes with a cause
}

// NewWatch returns a Watch over what ring counts.
func NewWatch(ring *Ring) *Watch {
	return &Watch{ring: ring, routes: map[string]*routeWatch{}, backends: map[string]*backendWatch{}, breakers: map[string]uint64{}, gathering: map[shared]*gathered{}}
}

// Line is what the log is to say: that a cause has begun, or is over.
type Line struct {
	Of    Of
	Names []string // all that it is of; "" = the gateway
	Kind  Kind
	Began bool
	Text  string

	// What the text of an end is made of, of all of Names.
	backend string // whose cause it is; "" = none alone
	words   string
	lasted  time.Duration // the longest
	lost    [NumResults]uint64
}

// Tick takes the snapshot of a second, and returns what is to be said about it:
// one line where a cause begins and one where it ends, of several routes or
// backends with the same words, or the cause of one backend, one for all.
func (w *Watch) Tick(now time.Time, s Snapshot) []Line {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total = len(s.Routes)
	w.follow(now, &s)
	var said []Line
	for i := range s.Backends {
		b := &s.Backends[i]
		bw := w.backends[b.Name]
		w.breaker(now, b)
		if series := w.ring.Backend(b.Name); series != nil {
			bw.fails(series.pulse().results[Failed])
		}
		said = w.step(now, said, &bw.state, OfBackend, b.Name, bw.cause(now, b), "", nil)
		bw.note(now)
	}
	w.shedding, w.losing = 0, nil
	for i := range s.Routes {
		r := &s.Routes[i]
		rw := w.routes[r.Name]
		series := w.ring.Route(r.Name)
		if series == nil {
			continue
		}
		rw.hear(series.pulse())
		c, mark := w.routeCause(now, rw, r)
		said = w.step(now, said, &rw.state, OfRoute, r.Name, c, mark, &rw.heard[0])
		switch {
		case rw.has.Kind != None:
			w.shedding += rw.of(shedOf) / pulseSeconds
		case c.Kind != None:
			w.losing = append(w.losing, r.Name)
		}
	}
	c := Cause{}
	if s.Store.Shared && !s.Store.Up {
		c = Cause{Kind: StoreDown, Words: "store down: curves, load and limits are not shared"}
	}
	said = w.step(now, said, &w.store, OfGateway, "", c, "", nil)
	c = Cause{}
	if s.Refused != "" {
		c = Cause{Kind: ConfigRefused, Words: "configuration refused: " + s.Refused}
	}
	said = w.step(now, said, &w.file, OfGateway, "", c, "", nil)
	w.collect()
	return w.gather(now, said)
}

// endMarks ends marks as they are.
func (w *Watch) endMarks(now time.Time, ids ...uint64) {
	for _, id := range ids {
		w.lines.end(id, now, "")
	}
}

// follow makes those of s the routes and backends that are looked at. The marks of
// what is gone end, and nothing is said of it: its reload is a mark.
func (w *Watch) follow(now time.Time, s *Snapshot) {
	var goneRoutes map[string]*routeWatch
	w.routes, goneRoutes = keep.Map(w.routes, names(s.Routes, func(r *Route) string { return r.Name }), func(string) *routeWatch { return &routeWatch{} })
	for _, rw := range goneRoutes {
		w.endMarks(now, rw.marks...)
	}
	var goneBackends map[string]*backendWatch
	w.backends, goneBackends = keep.Map(w.backends, names(s.Backends, func(b *Backend) string { return b.Name }), func(string) *backendWatch { return &backendWatch{} })
	for name, bw := range goneBackends {
		w.endMarks(now, bw.marks...)
		if id, open := w.breakers[name]; open {
			w.endMarks(now, id)
			delete(w.breakers, name)
		}
	}
}

func names[T any](of []T, name func(*T) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range of {
			if !yield(name(&of[i])) {
				return
			}
		}
	}
}

// step moves one state on, with its marks: one of the kind of its cause, or for a
// route, whose counts are counted, one of each kind that its users have noticed.
func (w *Watch) step(now time.Time, said []Line, s *state, of Of, name string, c Cause, noticed string, counted *pulse) []Line {
	was, x := s.step(now, c)
	if x.ended {
		l := Line{Of: of, Names: []string{name}, Kind: was.Kind, backend: was.Backend, words: was.Words, lasted: now.Sub(was.Since)}
		if counted != nil {
			l.lost = counted.since(&s.counted)
		}
		for _, id := range s.marks {
			w.lines.end(id, now, subject(of, name)+overText(l.lasted, l.words, l.lost))
		}
		s.marks, s.noted = nil, nil
		said = say(said, l)
	}
	began := now
	if x.began {
		began = s.has.Since
		if counted != nil {
			s.counted = *counted
		}
		said = say(said, Line{Of: of, Names: []string{name}, Kind: s.has.Kind, Began: true, Text: s.has.Text(), backend: s.has.Backend, words: s.has.Words})
	}
	if s.has.Kind == None || c.Kind != s.has.Kind {
		return said
	}
	text := subject(of, name) + s.has.Text()
	if x.began || now.Sub(s.told) >= retellAfter {
		for _, id := range s.marks {
			w.lines.retell(id, text)
		}
		s.told = now
	}
	if kind := cmp.Or(noticed, kinds[s.has.Kind].mark); !slices.Contains(s.noted, kind) {
		s.noted = append(s.noted, kind)
		s.marks = append(s.marks, w.lines.add(Mark{Time: began, Kind: kind, Of: of, Name: name, Text: text}))
	}
	return said
}

// say adds a line, or its name to one that says the same.
func say(said []Line, n Line) []Line {
	for i := range said {
		if l := &said[i]; l.Of == n.Of && l.Began == n.Began && l.Kind == n.Kind && l.words == n.words && l.Text == n.Text {
			l.join(n)
			return said
		}
	}
	return append(said, n)
}

// breaker keeps the mark of a breaker that is open.
func (w *Watch) breaker(now time.Time, b *Backend) {
	id, open := w.breakers[b.Name]
	switch {
	case b.BreakerOpen && !open:
		w.breakers[b.Name] = w.lines.add(Mark{Time: now, Kind: "breaker", Of: OfBackend, Name: b.Name, Text: subject(OfBackend, b.Name) + "breaker open"})
	case !b.BreakerOpen && open:
		w.lines.end(id, now, "")
		delete(w.breakers, b.Name)
	}
}

// collect lists what is wrong, the worst first: routes before backends before the
// gateway, and of each the worst kind.
func (w *Watch) collect() {
	w.causes = w.causes[:0:0] // readers have the one before
	add := func(of Of, name string, s *state) {
		if s.has.Kind != None {
			w.causes = append(w.causes, Standing{of, name, s.has})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.routes)) {
		add(OfRoute, name, &w.routes[name].state)
	}
	for _, name := range slices.Sorted(maps.Keys(w.backends)) {
		add(OfBackend, name, &w.backends[name].state)
	}
	add(OfGateway, "", &w.store)
	add(OfGateway, "", &w.file)
	rank := [...]int{OfRoute: 0, OfBackend: 1, OfGateway: 2}
	slices.SortStableFunc(w.causes, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(rank[a.Of], rank[b.Of]), cmp.Compare(a.Kind, b.Kind))
	})
}

// Note adds a mark of what has no length: a start, a reload.
func (w *Watch) Note(now time.Time, kind, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines.add(Mark{Time: now, Ended: now, Kind: kind, Of: OfGateway, Text: text})
}

// Causes returns everything that is wrong, the worst first. It is not to be
// changed.
func (w *Watch) Causes() []Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.causes
}

// Losing returns the routes that lose more requests than they may, and of which why
// is not said yet. It is not to be changed.
func (w *Watch) Losing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.losing
}

// Marks returns those that were added or changed after version, the latest
// first, limit at most; and the version to ask with next.
func (w *Watch) Marks(version uint64, limit int) (marks []Mark, next uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range slices.Backward(w.lines.marks) {
		if len(marks) == limit {
			break
		}
		if m.Version > version {
			marks = append(marks, m)
		}
	}
	return marks, w.lines.version
}

// Delivered returns the speed of the streams on a backend over what its curves
// say, over the last seconds; NaN while too little runs.
func (w *Watch) Delivered(backend string) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.backends[backend]; b != nil {
		return b.ratio
	}
	return math.NaN()
}

// Speed returns how fast a backend is, of what was learned before it changed; NaN
// while that is not known.
func (w *Watch) Speed(backend string) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.backends[backend]; b != nil {
		return b.speed
	}
	return math.NaN()
}

// Verdict is what is wrong, in one line.
type Verdict struct {
	State string // ok, warn or bad
	Text  string
	Since time.Time // of the oldest cause; zero = there is none
}

// Verdict returns what is wrong now: what users suffer from, and behind it what is wrong
// with the gateway. That is never left out. The file that is refused may be the one that
// was to help them.
func (w *Watch) Verdict() Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.causes) == 0 && len(w.losing) == 1:
		return Verdict{State: "warn", Text: w.losing[0] + " loses requests; why is looked into"}
	case len(w.causes) == 0 && len(w.losing) > 1:
		return Verdict{State: "warn", Text: fmt.Sprintf("%d of %d routes lose requests; why is looked into", len(w.losing), w.total)}
	case len(w.causes) == 0:
		return Verdict{State: "ok", Text: fmt.Sprintf("%s what %s", plural(w.total, "route keeps", "routes keep"), "was promised")}
	}
	v := Verdict{State: "warn", Since: w.causes[0].Since}
	routes := 0
	var whys, own []why
	for _, c := range w.causes {
		if c.Since.Before(v.Since) {
			v.Since = c.Since
		}
		switch {
		case c.Of == OfRoute:
			v.State = "bad"
			routes++
		case c.Of == OfBackend && v.State == "bad": // the routes say it
			continue
		case c.Of == OfGateway:
			own = c.among(own)
			continue
		}
		whys = c.among(whys)
	}
	v.Text = inWords(whys)
	if routes > 0 {
		v.Text = fmt.Sprintf("%d of %s below what was promised: %s", routes, plural(w.total, "route", "routes"), v.Text)
	}
	if w.shedding >= 0.1 {
		v.Text += fmt.Sprintf(", shedding %.3g/s in the last %d s", w.shedding, pulseSeconds)
	}
	if len(whys) > 0 && len(own) > 0 {
		v.Text += "; "
	}
	v.Text += inWords(own)
	return v
}

// why is a cause as the verdict says it, and all that have it.
type why struct {
	of    Of
	text  string
	names []string
}

// among adds s to those that say the same, or as another one.
func (s Standing) among(whys []why) []why {
	text := s.Text()
	if s.Of == OfRoute && s.Backend != "" && !strings.Contains(s.Words, "("+s.Backend+", ") {
		text += " (backend " + s.Backend + ")"
	}
	i := slices.IndexFunc(whys, func(y why) bool { return y.of == s.Of && y.text == text })
	if i < 0 {
		return append(whys, why{s.Of, text, []string{s.Name}})
	}
	whys[i].names = append(whys[i].names, s.Name)
	return whys
}

// Of many causes the verdict says the first mostWhys, and of many names how many.
const mostWhys, mostNames = 3, 2

func inWords(whys []why) string {
	var said []string
	for _, y := range whys[:min(len(whys), mostWhys)] {
		who := subject(y.of, y.names[0])
		switch n := len(y.names); {
		case n > mostNames:
			who = plural(n, "", y.of.String()+"s") + ": "
		case n > 1:
			who = y.of.String() + "s " + strings.Join(y.names, ", ") + ": "
		}
		said = append(said, who+y.text)
	}
	return strings.Join(said, "; ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
