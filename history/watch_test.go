package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// story is a watch over one route on one backend, told second by second.
type story struct {
	ring  *Ring
	watch *Watch
	now   time.Time
	said  []Line
}

func newStory() *story {
	r := NewRing(noon)
	r.Configure([]string{"chat"}, []string{"a"})
	return &story{ring: r, watch: NewWatch(r), now: noon}
}

// healthy is how everything is when nothing is wrong.
func healthy() Snapshot {
	return Snapshot{
		Backends: []Backend{{Name: "a", Scale: math.NaN()}},
		Routes:   []Route{{Name: "chat", Goal: 0.99, Floor: 30, Best: math.NaN(), Free: math.NaN(), Backends: []string{"a"}}},
	}
}

// tell plays so many seconds, in each of which so many requests end so.
func (s *story) tell(seconds int, snapshot Snapshot, results map[Result]int) {
	for range seconds {
		for result, n := range results {
			for range n {
				s.ring.Route("chat").Add(Outcome{Result: result, Duration: 2})
			}
		}
		s.said = append(s.said, s.watch.Tick(s.now, snapshot)...)
		s.ring.Advance(s.now)
		s.now = s.now.Add(time.Second)
	}
}

func (s *story) causes() string {
	var out []string
	for _, c := range s.watch.Causes() {
		out = append(out, c.Of.String()+" "+c.Name+": "+c.Text())
	}
	return strings.Join(out, "; ")
}

func (s *story) wantCauses(t *testing.T, when, want string) {
	t.Helper()
	if got := s.causes(); got != want {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// storyOfTwo is half a minute of a route on two backends that are well.
func storyOfTwo() (s *story, both Snapshot) {
	s, both = newStory(), healthy()
	s.ring.Configure([]string{"chat"}, []string{"a", "b"})
	both.Backends = append(both.Backends, Backend{Name: "b", Scale: math.NaN()})
	both.Routes[0].Backends = []string{"a", "b"}
	s.tell(30, both, map[Result]int{Met: 5})
	return s, both
}

// A burst of failures at a backend that never failed is its own.
func TestTheFirstBurstOfFailuresCounts(t *testing.T) {
	s, both := storyOfTwo()
	for range 8 {
		s.ring.Backend("b").Add(Outcome{Result: Failed})
	}
	both.Backends[0].Faults = []Fault{{Status: 429, Message: "rate limit reached", Last: s.now, Count: 9}}
	s.tell(1, both, map[Result]int{Met: 5, Failed: 8})
	s.tell(4, both, map[Result]int{Met: 5})
	s.wantCauses(t, "b failed at once, and a is full", "route chat: 8 requests failed within 10 s (b, 1 of 2 backends) since 12:00 UTC; backend a: quota: upstream 429 since 12:00 UTC")
}

// What fails at one backend is not the fault of another one, whatever is wrong there: its
// 429s move on, and cost nobody an answer.
func TestFailuresAreOfTheBackendWhereTheyHappen(t *testing.T) {
	s, both := storyOfTwo()
	for range 12 {
		both.Backends[0].Faults = []Fault{{Status: 429, Message: "rate limit reached", Last: s.now, Count: 9}}
		s.ring.Backend("b").Add(Outcome{Result: Failed})
		s.tell(1, both, map[Result]int{Met: 5, Failed: 1})
	}
	s.wantCauses(t, "b fails, and a is full", "route chat: 10 requests failed within 10 s (b, 1 of 2 backends) since 12:00 UTC; backend a: quota: upstream 429 since 12:00 UTC")
}

// What was out, and is well again, is not among those that fail now.
func TestWhatIsWellAgainDoesNotFail(t *testing.T) {
	s, both := storyOfTwo()
	both.Backends[0].Health = IsDown
	s.tell(5, both, map[Result]int{Met: 5})
	both.Backends[0].Health = IsUp
	s.tell(18, both, map[Result]int{Met: 5})
	for range 12 {
		s.ring.Backend("b").Add(Outcome{Result: Failed})
		s.tell(1, both, map[Result]int{Met: 5, Failed: 1})
	}
	s.wantCauses(t, "b fails, and a was out before", "route chat: 10 requests failed within 10 s (b, 1 of 2 backends) since 12:00 UTC")
}

// Where one key floods the others, its limits are what helps, and no engine.
func TestWhoFloodsIsNamed(t *testing.T) {
	s := newStory()
	s.tell(30, healthy(), map[Result]int{Met: 20})
	full := healthy()
	full.Routes[0].Bound, full.Routes[0].Capacity, full.Routes[0].Load = true, 58, 58
	for range 30 {
		for i := range 20 {
			s.ring.Route("chat").Add(Outcome{Result: Shed, Duration: 2, Key: []string{"mobile", "mobile", "mobile", "mobile", "web", "mobile", "mobile", "mobile", "mobile", "mobile"}[i%10]})
		}
		s.tell(1, full, map[Result]int{Met: 20})
	}
	s.wantCauses(t, "", "route chat: load above capacity: 98 of 58, mostly of key mobile since 12:00 UTC")
}

// An API that says 429 makes nobody late who streams elsewhere.
func TestAQuotaMakesNobodyLate(t *testing.T) {
	s, both := storyOfTwo()
	for range 12 {
		both.Backends[0].Faults = []Fault{{Status: 429, Message: "rate limit reached", Last: s.now, Count: 9}}
		s.tell(1, both, map[Result]int{Met: 5, Missed: 1})
	}
	s.wantCauses(t, "a is full, and streams at b are late", "route chat: 10 streams of 60 missed what was promised, within 10 s since 12:00 UTC; backend a: quota: upstream 429 since 12:00 UTC")
}

// Who comes back as told and is refused again is one user: of 50 refusals a second 30 are
// of such, so 20 a second ask for more than there is, for 2 s each. Those in line are
// among them.
func TestWhoComesBackAsksOnce(t *testing.T) {
	s := newStory()
	s.tell(30, healthy(), map[Result]int{Met: 20})
	full := healthy()
	full.Routes[0].Bound, full.Routes[0].Capacity, full.Routes[0].Load, full.Routes[0].Waiting = true, 58, 58, 65
	for range 30 {
		for range 30 {
			s.ring.Route("chat").Add(Outcome{Result: Shed, Duration: 2, Back: true})
		}
		s.tell(1, full, map[Result]int{Met: 5, Shed: 20})
	}
	s.wantCauses(t, "", "route chat: load above capacity: 98 of 58 since 12:00 UTC")
}

func TestOneLineAtTheStartAndOneAtTheEnd(t *testing.T) {
	s := newStory()
	s.tell(30, healthy(), map[Result]int{Met: 20})
	if len(s.said) > 0 || s.watch.Verdict().State != "ok" {
		t.Fatalf("nothing is wrong, and said is %+v", s.said)
	}
	full := healthy()
	full.Routes[0].Bound, full.Routes[0].Capacity, full.Routes[0].Load = true, 58, 58
	s.tell(100, full, map[Result]int{Met: 5, Shed: 50})
	s.wantCauses(t, "", "route chat: load above capacity: 158 of 58 since 12:00 UTC") // 58 run, and 50/s for 2 s each are refused
	v := s.watch.Verdict()
	if want := "1 of 1 route below what was promised: route chat: load above capacity: 158 of 58 since 12:00 UTC, shedding 50/s in the last 10 s"; v.Text != want || v.State != "bad" {
		t.Errorf("the verdict is %s: %q, want %q", v.State, v.Text, want)
	}
	s.tell(30, healthy(), map[Result]int{Met: 20})
	s.wantCauses(t, "15 s after it was over", "")
	if len(s.said) != 2 || !s.said[0].Began || s.said[1].Began {
		t.Fatalf("5,000 refused requests say %d lines, want two: %+v", len(s.said), s.said)
	}
	if text := s.said[1].Text; !strings.HasPrefix(text, "route chat: over after 1m") || !strings.HasSuffix(text, " shed") {
		t.Errorf("at the end: %q", text)
	}
	marks, _ := s.watch.Marks(0, 10)
	if len(marks) != 1 || marks[0].Kind != "shedding" || marks[0].Ended.IsZero() || !marks[0].Time.Equal(noon.Add(30*time.Second)) {
		t.Errorf("the timeline has %+v", marks)
	}
}

// What ends a connection is said in the same words, whoever found out, and in
// whichever phase.
func TestOneWordingOfAConnectionThatEnds(t *testing.T) {
	for why, want := range map[string]string{
		"EOF":            "connection closed",
		"unexpected EOF": "connection closed",
		"closed the connection before it answered":       "connection closed",
		"closed the connection before the first byte":    "connection closed",
		"reset the connection":                           "connection reset",
		"read tcp 10.0.0.1:80: connection reset by peer": "connection reset",
		"refused the connection":                         "connection refused",
	} {
		b := Backend{Faults: []Fault{{Message: "the backend " + why, Last: noon}}}
		if got := b.why(); got != want {
			t.Errorf("%q is said as %q, want %q", why, got, want)
		}
	}
}

func TestTheWorstCauseStands(t *testing.T) {
	s := newStory()
	sick := healthy()
	sick.Backends[0].Faults = []Fault{{Model: "llama", Status: 404, Count: 3, Last: noon.Add(time.Minute)}}
	s.tell(5, sick, map[Result]int{Failed: 5})
	s.wantCauses(t, "", `route chat: upstream 404: model "llama" not found since 12:00 UTC; backend a: upstream 404: model "llama" not found since 12:00 UTC`)
	sick.Backends[0].Health, sick.Backends[0].Why = IsDown, "dial tcp 10.0.0.1:80: connect: connection refused"
	sick.Backends[0].Faults = nil
	s.tell(2, sick, nil)
	if got := s.causes(); strings.Count(got, "backend down: connection refused since 12:00 UTC") != 2 {
		t.Errorf("%s: both are down", got)
	}
	sick.Backends[0].Health = IsProbed // words stay while it is probed
	s.tell(20, sick, nil)
	if got := s.causes(); strings.Count(got, "backend down: connection refused") != 2 {
		t.Errorf("while it is probed: %s", got)
	}
	s.tell(clearAfter+1, healthy(), nil)
	s.wantCauses(t, "when it is back", "")
}

func TestSlower(t *testing.T) {
	s := newStory()
	x := healthy()
	run := func(seconds int, speed float64) {
		for range seconds {
			x.Backends[0].Expected += 400
			x.Backends[0].Compared += 10
			x.Backends[0].Seen += 400 * speed
			s.tell(1, x, map[Result]int{Met: 3})
		}
	}
	run(20, 1)
	run(4, 0.41)
	if s.causes() != "" && !strings.HasPrefix(s.causes(), "backend a: slower") {
		t.Errorf("%s", s.causes())
	}
	run(1, 0.41)
	s.wantCauses(t, "after 5 s", "backend a: slower than learned ×0.41 since 12:00 UTC")
	if v := s.watch.Verdict(); v.State != "warn" {
		t.Errorf("the verdict is %s: %s; every route keeps what it promises", v.State, v.Text)
	}
	run(20, 0.8) // not slow enough to be said, and too slow to be over
	if s.causes() == "" {
		t.Error("over at ×0.8")
	}
	run(20, 0.95)
	s.wantCauses(t, "at ×0.95", "")
	run(100, 0.8)
	s.wantCauses(t, "at ×0.8, which was never below the limit", "")
	if len(s.said) != 2 {
		t.Errorf("%d lines, want two: %+v", len(s.said), s.said)
	}
}

// What made an engine slower is over within 7 s, and a second that was fast by chance ends
// nothing.
func TestSlowerIsOverSoon(t *testing.T) {
	s := newStory()
	x := healthy()
	run := func(seconds int, speed float64) {
		for range seconds {
			x.Backends[0].Expected += 400
			x.Backends[0].Compared += 10
			x.Backends[0].Seen += 400 * speed
			s.tell(1, x, nil)
		}
	}
	run(20, 1)
	run(20, 0.41)
	for range 10 {
		run(3, 1)
		run(3, 0.41)
		if s.causes() == "" {
			t.Fatal("over, though it is slow every other three seconds")
		}
	}
	run(7, 1)
	s.wantCauses(t, "7 s after it was over", "")
}

// A few tokens are no speed: one user of an engine that drafts gets half as many as usual
// for six seconds, now and then. What lasts is said with as few.
func TestAFewTokensAreNoSpeed(t *testing.T) {
	s := newStory()
	x := healthy()
	run := func(seconds int, speed float64) {
		for range seconds {
			x.Backends[0].Expected += 10
			x.Backends[0].Compared += 1
			x.Backends[0].Seen += 10 * speed
			s.tell(1, x, nil)
		}
	}
	for range 20 {
		run(12, 1.2)
		run(6, 0.5)
		s.wantCauses(t, "after six slow seconds of one user", "")
	}
	run(12, 0.5)
	if s.causes() == "" {
		t.Error("one user has half of the speed for 16 s, and nothing is said")
	}
}

// A moment is no speed either: an engine of a thousand tokens/s for one user brings a hundred of
// them in a tenth of a second, and a prompt beside them takes as long.
func TestAMomentIsNoSpeed(t *testing.T) {
	s := newStory()
	x := healthy()
	run := func(seconds int, speed float64) {
		for range seconds {
			x.Backends[0].Expected += 100
			x.Backends[0].Compared += 0.1
			x.Backends[0].Seen += 100 * speed
			s.tell(1, x, nil)
		}
	}
	run(12, 1.2)
	run(6, 0.4)
	s.wantCauses(t, "after six slow seconds of short answers", "")
	run(12, 0.4)
	if s.causes() == "" {
		t.Error("short answers have less than half of the speed for 18 s, and nothing is said")
	}
}

// The curves go on taking the engine for slow, for they learn little of one user. What
// the streams have shown stands while nobody streams, until the curves say something new.
func TestWhatWasSoundIsNotSlowerWhenItIsQuiet(t *testing.T) {
	s := newStory()
	x := healthy()
	run := func(seconds int, tokens, speed float64) {
		for range seconds {
			x.Backends[0].Expected += tokens
			x.Backends[0].Compared += 1
			x.Backends[0].Seen += tokens * speed
			s.tell(1, x, nil)
		}
	}
	run(20, 400, 1)
	x.Backends[0].Scale = 0.41
	run(20, 400, 0.41)
	run(20, 0, 0)
	s.wantCauses(t, "slower, and nobody there", "backend a: slower than learned ×0.41 since 12:00 UTC")
	run(20, 80, 1)
	s.wantCauses(t, "one user is served as before", "")
	run(100, 0, 0)
	s.wantCauses(t, "and has gone", "")
	x.Backends[0].Scale = 0.3 // another gateway has seen more of it
	run(20, 0, 0)
	if got := s.causes(); !strings.HasPrefix(got, "backend a: slower than learned ×0.3 since") {
		t.Errorf("another gateway finds it slower still: %q", got)
	}
}

// Whatever comes, no cause flaps: of one subject there is at most one change in
// two seconds while it gets worse and worse, and a few in a minute of noise.
func TestNothingFlaps(t *testing.T) {
	worst := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(5, seed))
		s := newStory()
		for range 600 {
			x := healthy()
			if rng.IntN(3) == 0 {
				x.Backends[0].Faults = []Fault{{Status: []int{0, 401, 404, 429, 500}[rng.IntN(5)], Count: 5, Last: s.now, Message: "was cut"}}
			}
			s.tell(1, x, map[Result]int{Met: rng.IntN(10), Shed: rng.IntN(3), Failed: rng.IntN(2), Missed: rng.IntN(2)})
		}
		worst = max(worst, len(s.said))
	}
	t.Logf("%d lines in ten minutes of noise, at worst", worst)
	if worst > 100 { // ten a minute, of route and backend together
		t.Errorf("%d lines in ten minutes", worst)
	}
}

// Thirty routes that lose the same backend are one line.
func TestManyRoutesAreOneLine(t *testing.T) {
	r := NewRing(noon)
	x := Snapshot{Backends: []Backend{{Name: "a", Health: IsDown, Why: "EOF", Scale: math.NaN()}}}
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprint("route-", i))
		x.Routes = append(x.Routes, Route{Name: names[i], Best: math.NaN(), Backends: []string{"a"}})
	}
	r.Configure(names, []string{"a"})
	w := NewWatch(r)
	said := w.Tick(noon, x)
	if len(said) != 2 || len(said[1].Names) != 30 {
		t.Errorf("%d lines, want one of the backend and one of 30 routes: %+v", len(said), said)
	}
}

func TestTheTimelineIsBounded(t *testing.T) {
	w := NewWatch(NewRing(noon))
	for i := range MaxMarks + 10 {
		w.Note(noon, "reload", fmt.Sprint(i))
	}
	marks, version := w.Marks(0, MaxMarks+100)
	if len(marks) != MaxMarks || marks[0].Text != fmt.Sprint(MaxMarks+9) || marks[0].ID != MaxMarks+10 {
		t.Errorf("%d marks, the latest %+v", len(marks), marks[0])
	}
	if more, _ := w.Marks(version, 10); len(more) > 0 {
		t.Errorf("%d marks are new that were read", len(more))
	}
}

// A cause that ends after its mark made room ends all the same.
func TestAMarkThatMadeRoomEnds(t *testing.T) {
	s := newStory()
	x := healthy()
	x.Store = Store{Shared: true}
	s.tell(3, x, nil)
	for range MaxMarks {
		s.watch.Note(s.now, "reload", "another")
	}
	s.tell(10, healthy(), nil)
	if len(s.said) != 2 {
		t.Errorf("%d lines, want two", len(s.said))
	}
}

// A route that few ask for, and that refuses them all, does not keep what it promises:
// ten seconds rarely hold two requests. When one is served, it is over.
func TestFewRequestsAreRequestsToo(t *testing.T) {
	s := newStory()
	every := func(seconds, times int, result Result) {
		for range times {
			s.tell(1, healthy(), map[Result]int{result: 1})
			s.tell(seconds-1, healthy(), nil)
		}
	}
	every(12, 20, Met)
	s.wantCauses(t, "while all are served", "")
	every(12, 8, Shed)
	if v := s.watch.Verdict(); v.State != "bad" || s.causes() == "" {
		t.Errorf("eight of eight requests were refused, and the verdict is %s: %s", v.State, v.Text)
	}
	every(12, 1, Met)
	s.wantCauses(t, "12 s after one was served", "")
	every(12, 20, Met)
	s.tell(1, healthy(), map[Result]int{Shed: 1})
	s.tell(40, healthy(), nil)
	if len(s.said) != 2 {
		t.Errorf("one refusal of twenty is said: %+v", s.said)
	}
}

// Of two reasons that take turns one is said, and not neither.
func TestReasonsThatTakeTurns(t *testing.T) {
	var s state
	kinds, began := []Kind{Overload, FloorMissed, TTFT}, 0
	for i := range 60 {
		if _, x := s.step(noon.Add(time.Duration(i)*time.Second), Cause{Kind: kinds[i/2%len(kinds)]}); x.began {
			began++
		}
		if i > turnAfter && s.has.Kind == None {
			t.Fatalf("after %d s with a reason each nothing is said", i)
		}
	}
	if began > 1 {
		t.Errorf("%d causes began", began)
	}
}

// A floor that an engine gave nobody yet leaves one place there, for who shows what it takes.
func TestAPlaceForWhoShowsWhatItTakesIsNoSpeed(t *testing.T) {
	s := newStory()
	x := healthy()
	x.Routes[0].Capacity, x.Routes[0].Best = 1, math.NaN()
	for range 20 {
		s.ring.Route("chat").Add(Outcome{Result: Shed, ShedReason: Unattainable})
		s.tell(1, x, map[Result]int{Met: 1})
	}
	if got := s.causes(); !strings.HasPrefix(got, "route chat: floor above what any engine gives alone (floor ") {
		t.Errorf("got %q", got)
	}
}

// What one client asks for is no fault of the route: a floor of its own that no engine
// reaches, or more sequences than that at once. Of engines that carry the route's floor nobody
// tells what they give alone, so the best that is told may be of others that do not, or none.
func TestAWishIsNoFaultOfTheRoute(t *testing.T) {
	for _, best := range []float64{100, 12, math.NaN()} {
		s := newStory()
		x := healthy()
		x.Routes[0].Capacity, x.Routes[0].Best = 20, best
		for range 30 {
			s.tell(1, x, map[Result]int{Met: 20})
			s.ring.Route("chat").Add(Outcome{Result: Shed, ShedReason: Unattainable})
			s.tell(9, x, map[Result]int{Met: 20})
		}
		if got := s.causes(); got != "" || len(s.said) > 0 {
			t.Errorf("one request of two hundred, best %v: %s, %+v", best, got, s.said)
		}
		for range 20 {
			s.ring.Route("chat").Add(Outcome{Result: Shed, ShedReason: Unattainable})
			s.tell(1, x, map[Result]int{Met: 1})
		}
		if got := s.causes(); !strings.HasPrefix(got, "route chat: requests ask for more than any engine gives alone since") {
			t.Errorf("half of all requests, best %v: %q", best, got)
		}
	}
}

// What is no longer configured lasts no longer: an engine that died, and that
// discovery then took out.
func TestMarksEndWithTheirNames(t *testing.T) {
	s := newStory()
	x := healthy()
	x.Backends[0].Health, x.Backends[0].BreakerOpen = IsDown, true
	s.tell(5, x, nil)
	if marks, _ := s.watch.Marks(0, 10); len(marks) != 3 {
		t.Fatalf("%d marks, want those of route, backend and breaker: %+v", len(marks), marks)
	}
	s.tell(5, Snapshot{}, nil)
	marks, _ := s.watch.Marks(0, 10)
	for _, m := range marks {
		if m.Ended.IsZero() {
			t.Errorf("it is gone, and lasts: %+v", m)
		}
	}
	if len(s.watch.breakers) > 0 {
		t.Errorf("breakers that are gone are remembered: %v", s.watch.breakers)
	}
}

// Every kind has all of its words, and docs/OPERATIONS.md has the same.
func TestOperationsHasEveryCause(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/OPERATIONS.md"))(t)
	lines := strings.Split(string(text), "\n")
	for k := None + 1; k < numKinds; k++ {
		if k.String() == "" || k.Means() == "" || k.Advice() == "" || kinds[k].mark == "" || kinds[k].raise == 0 {
			t.Errorf("kind %d: %+v", k, kinds[k])
		}
		if want := fmt.Sprintf("| `%s` | %s | %s |", k, k.Means(), k.Advice()); !slices.Contains(lines, want) {
			t.Errorf("docs/OPERATIONS.md has no line\n%s", want)
		}
	}
}

// Thirty routes lose the one engine they have, and notice at different seconds: the
// log has a line for the first, one for the others, and one when all is over, with
// what all of them lost.
func TestManyRoutesOfOneBackend(t *testing.T) {
	r := NewRing(noon)
	var names []string
	s := Snapshot{Backends: []Backend{{Name: "a", Scale: math.NaN()}, {Name: "b", Scale: math.NaN()}}}
	for i := range 30 {
		name := fmt.Sprintf("route-%02d", i)
		names = append(names, name)
		s.Routes = append(s.Routes, Route{Name: name, Goal: 0.99, Best: math.NaN(), Free: math.NaN(), Backends: []string{"a", "b"}})
	}
	r.Configure(names, []string{"a", "b"})
	w, now, said := NewWatch(r), noon, []Line(nil)
	tell := func(seconds int, losing func(route int) bool) {
		for range seconds {
			for i, name := range names {
				result := Met
				if losing(i) {
					result = Failed
				}
				for range 3 {
					r.Route(name).Add(Outcome{Result: result})
				}
			}
			said = append(said, w.Tick(now, s)...)
			r.Advance(now)
			now = now.Add(time.Second)
		}
	}
	tell(5, func(int) bool { return false })
	s.Backends[0].Health, s.Backends[0].Why = IsDown, "connection refused"
	for k := range 6 { // some notice later than others
		tell(2, func(i int) bool { return i <= k*6 })
	}
	tell(20, func(int) bool { return true })
	s.Backends[0].Health = IsUp
	for k := range 6 {
		tell(2, func(i int) bool { return i > k*6 })
	}
	tell(60, func(int) bool { return false })
	var begins, ends []Line
	for _, l := range said {
		switch {
		case l.Of != OfRoute:
		case l.Began:
			begins = append(begins, l)
		default:
			ends = append(ends, l)
		}
	}
	if len(begins) > 3 || len(ends) != 1 {
		t.Fatalf("%d lines that it began and %d that it is over, want at most three and one: %+v", len(begins), len(ends), said)
	}
	told := map[string]bool{}
	for _, l := range begins {
		for _, name := range l.Names {
			told[name] = true
		}
	}
	if len(told) != 30 || len(ends[0].Names) != 30 || !strings.HasPrefix(ends[0].Text, "30 routes: over after ") || !strings.HasSuffix(ends[0].Text, " failed") {
		t.Errorf("%d routes at the start, %d at the end: %s", len(told), len(ends[0].Names), ends[0].Text)
	}
}

// One engine that an operator took out does not explain a load that all of them
// together could not carry; where they could, it does.
func TestADrainedEngineExplainsOnlyWhatItWouldCarry(t *testing.T) {
	for _, tt := range []struct {
		out  int
		want string
	}{{12, "overload"}, {400, "drained"}} {
		s := newStory()
		s.ring.Configure([]string{"chat"}, []string{"a", "b"})
		x := healthy()
		x.Backends = append(x.Backends, Backend{Name: "b", Health: IsDrained, Scale: math.NaN()})
		r := &x.Routes[0]
		r.Backends, r.Bound, r.Capacity, r.Load, r.Out = []string{"a", "b"}, true, 58, 58, tt.out
		s.tell(60, x, map[Result]int{Met: 5, Shed: 50}) // 158 of 58 are asked for
		if got := s.watch.routes["chat"].has; got.Kind.String() != tt.want {
			t.Errorf("b is drained, which would carry %d more: %q, want the cause %s", tt.out, got.Text(), tt.want)
		}
	}
}

// Of engines that are slower the slowest is named, wherever it stands, and those that
// are as slow do not take turns. One that is down is not the cause where the load
// would be too much for all of them as well.
func TestTheSlowestIsNamed(t *testing.T) {
	for _, tt := range []struct {
		b, c float64
		want string
	}{{0.73, 0.46, "c"}, {0.46, 0.73, "b"}, {0.48, 0.46, "b"}, {0.46, 0.48, "b"}} {
		s := newStory()
		s.ring.Configure([]string{"chat"}, []string{"a", "b", "c"})
		x := healthy()
		x.Backends = []Backend{{Name: "a", Health: IsDown, Scale: math.NaN()}, {Name: "b", Scale: math.NaN()}, {Name: "c", Scale: math.NaN()}}
		r := &x.Routes[0]
		r.Backends, r.Bound, r.Capacity, r.Load, r.Out = []string{"a", "b", "c"}, true, 58, 58, 12
		for range 60 {
			for i, speed := range []float64{0, tt.b, tt.c} {
				x.Backends[i].Expected += 400
				x.Backends[i].Compared += 10
				x.Backends[i].Seen += 400 * speed
			}
			s.tell(1, x, map[Result]int{Met: 5, Shed: 50})
		}
		speed := map[string]float64{"b": tt.b, "c": tt.c}[tt.want]
		want := fmt.Sprintf("slower than learned ×%.2g (%s, 2 of 3 backends)", speed, tt.want)
		if got := s.watch.routes["chat"].has; got.Words != want || got.Backend != tt.want {
			t.Errorf("b ×%v, c ×%v: %q, want %q", tt.b, tt.c, got.Words, want)
		}
	}
}

// The verdict says of which routes it is and of which backend, each once.
func TestTheVerdictNamesRoutesAndBackends(t *testing.T) {
	for _, tt := range []struct {
		backends []string
		routes   int
		want     string
	}{
		{[]string{"a"}, 1, "1 of 2 routes below what was promised: route r0: backend down: its breaker is open since 12:00 UTC (backend a)"},
		{[]string{"a", "b"}, 1, "1 of 2 routes below what was promised: route r0: backend down: its breaker is open (a, 1 of 2 backends) since 12:00 UTC"},
		{[]string{"a"}, 2, "2 of 3 routes below what was promised: routes r0, r1: backend down: its breaker is open since 12:00 UTC (backend a)"},
		{[]string{"a"}, 3, "3 of 4 routes below what was promised: 3 routes: backend down: its breaker is open since 12:00 UTC (backend a)"},
		{[]string{"a"}, 0, "backend a: backend down: its breaker is open since 12:00 UTC"},
	} {
		s := Snapshot{Backends: []Backend{{Name: "a", Health: IsDown, Scale: math.NaN()}, {Name: "b", Scale: math.NaN()}}}
		names := []string{"well"}
		for i := range tt.routes {
			names = append(names, fmt.Sprint("r", i))
		}
		for i, name := range names {
			r := Route{Name: name, Goal: 0.99, Best: math.NaN(), Free: math.NaN(), Backends: []string{"b"}}
			if i > 0 {
				r.Backends = tt.backends
			}
			s.Routes = append(s.Routes, r)
		}
		ring := NewRing(noon)
		ring.Configure(names, []string{"a", "b"})
		w, now := NewWatch(ring), noon
		for range 15 {
			for i, name := range names {
				ring.Route(name).Add(Outcome{Result: []Result{Met, Failed}[min(i, 1)]})
				ring.Route(name).Add(Outcome{Result: []Result{Met, Failed}[min(i, 1)]})
			}
			w.Tick(now, s)
			ring.Advance(now)
			now = now.Add(time.Second)
		}
		if got := w.Verdict().Text; got != tt.want {
			t.Errorf("%d routes on %q:\n%s, want\n%s", tt.routes, tt.backends, got, tt.want)
		}
	}
}

// Four routes suffer from four things while the file that may help them is refused: the
// verdict leaves one of the four out, and not the file.
func TestTheVerdictNamesARefusedFile(t *testing.T) {
	s := Snapshot{Refused: "pacer.yaml:7: unknown key"}
	var names []string
	for i := range 4 {
		name := fmt.Sprint("abcd"[i : i+1])
		names = append(names, name)
		s.Backends = append(s.Backends, Backend{Name: name, Health: IsDown, Why: fmt.Sprint("reason ", i), Scale: math.NaN()})
		s.Routes = append(s.Routes, Route{Name: name, Best: math.NaN(), Free: math.NaN(), Backends: []string{name}})
	}
	ring := NewRing(noon)
	ring.Configure(names, names)
	w := NewWatch(ring)
	for i := range 5 {
		now := noon.Add(time.Duration(i) * time.Second)
		for range 50 {
			ring.Route("a").Add(Outcome{Result: Shed})
		}
		w.Tick(now, s)
		ring.Advance(now)
	}
	got := w.Verdict().Text
	if !strings.HasPrefix(got, "4 of 4 routes below what was promised: route a: backend down: reason 0") ||
		!strings.HasSuffix(got, ", shedding 20/s in the last 10 s; configuration refused: pacer.yaml:7: unknown key since 12:00 UTC") || strings.Contains(got, "reason 3") {
		t.Errorf("the verdict is %q", got)
	}
}

// A second file is refused for another reason before the first was mended: the
// timeline says that one, here and at the other gateways.
func TestAMarkSaysWhatItsCauseSays(t *testing.T) {
	s, other := newStory(), NewWatch(NewRing(noon))
	x := healthy()
	for _, x.Refused = range []string{"no route", "no backend", "no model"} {
		s.tell(20, x, map[Result]int{Met: 20})
		want := "configuration refused: " + x.Refused + " since 12:00 UTC"
		marks, _ := s.watch.Marks(0, 10)
		if len(marks) != 1 || marks[0].Text != want || marks[0].Kind != "config_refused" || !marks[0].Ended.IsZero() {
			t.Errorf("refused for %q, the timeline has %+v", x.Refused, marks)
		}
		told := s.watch.Reported()
		for i := range told {
			told[i].Replica = "host-a"
		}
		other.Others(s.now, map[string][]Mark{"a": told})
		if marks, _ := other.Marks(0, 10); len(marks) != 1 || marks[0].Text != want {
			t.Errorf("refused for %q at another gateway, the timeline has %+v", x.Refused, marks)
		}
	}
}

// Figures that change each second do not change the mark as often: each change goes to
// all open pages.
func TestMarksAreToldAnewNowAndThen(t *testing.T) {
	s := newStory()
	full := healthy()
	full.Routes[0].Bound, full.Routes[0].Capacity = true, 58
	changes, before := 0, uint64(0)
	for i := range 100 {
		full.Routes[0].Load = 58 + i
		s.tell(1, full, map[Result]int{Met: 5, Shed: 50})
		if marks, version := s.watch.Marks(0, 10); version != before {
			before = version
			if changes++; len(marks) != 1 || marks[0].Kind != "shedding" {
				t.Fatalf("the timeline has %+v", marks)
			}
		}
	}
	if most := int(100*time.Second/retellAfter) + 1; changes < most-1 || changes > most {
		t.Errorf("a mark changed %d times within 100 s, want every %v", changes, retellAfter)
	}
}

// In the seconds before a cause is known nobody is told that all is well.
func TestWhatIsNotKnownYetIsNotWell(t *testing.T) {
	s := newStory()
	s.tell(30, healthy(), map[Result]int{Met: 20})
	full := healthy()
	full.Routes[0].Bound, full.Routes[0].Capacity, full.Routes[0].Load = true, 58, 58
	s.tell(2, full, map[Result]int{Met: 5, Shed: 50})
	if v := s.watch.Verdict(); v.State != "warn" || v.Text != "chat loses requests; why is looked into" || len(s.watch.Causes()) > 0 {
		t.Errorf("two seconds after it began: %+v", v)
	}
	if l := s.watch.Losing(); !slices.Equal(l, []string{"chat"}) {
		t.Errorf("two seconds after it began %q lose requests", l)
	}
	s.tell(30, healthy(), map[Result]int{Met: 20})
	if v := s.watch.Verdict(); v.State != "ok" {
		t.Errorf("when it is over: %+v", v)
	}
	if l := s.watch.Losing(); len(l) > 0 {
		t.Errorf("when it is over %q lose requests", l)
	}
}
