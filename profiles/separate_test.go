package profiles

import (
	"testing"
	"time"
)

// TestSeparateModelsAreGroupsOfTheirOwn: of a backend whose models are separate
// each has its own margin, drift and prompts; a restart is one of all of them.
func TestSeparateModelsAreGroupsOfTheirOwn(t *testing.T) {
	one := Target{Backend: "api", Model: "one", Separate: true}
	two := Target{Backend: "api", Model: "two", Separate: true}
	b := NewBook(Options{})
	b.Ensure(one, two)
	b.profile(one).fold.deliveries = ratios(map[float64]int{0.951: 2, 1: 298})
	b.profile(two).fold.deliveries = ratios(map[float64]int{0.85: 100, 1: 50})
	for i := range 3 {
		b.Fold(start.Add(time.Duration(i) * time.Second))
	}
	if x, y := b.Curve(one).Margin(), b.Curve(two).Margin(); x > 0.06 || y < 0.15 {
		t.Errorf("margins %v and %v, want about 0.055 and 0.156: each has its own", x, y)
	}

	for range 12 {
		if step := b.profile(one).group.drift.see(0.5, 0, 0, 0); step != 0 {
			b.profile(one).move(step, false)
			break
		}
	}
	b.Fold(start.Add(4 * time.Second))
	if x, y := b.Curve(one).Scale(), b.Curve(two).Scale(); x > 0.7 || y != 1 {
		t.Errorf("the scale is %v and %v, want 0.6 and 1: the other one is as fast as ever", x, y)
	}
	b.Restarted("api")
	for _, of := range []Target{one, two} {
		if got := b.profile(of).group.drift.fresh; got != driftWindows {
			t.Errorf("%s: the level of %d windows is believed after a restart, want %d", of.Model, got, driftWindows)
		}
	}
}

// TestSeparateModelsDoNotShareThePrompts: a prompt is prefilled between the steps
// of its own model.
func TestSeparateModelsDoNotShareThePrompts(t *testing.T) {
	b := NewBook(Options{})
	one := Target{Backend: "api", Model: "one", Separate: true}
	two := Target{Backend: "api", Model: "two", Separate: true}
	var occ [2]*Occupancy
	var streams []*Stream
	for i, of := range []Target{one, two} {
		b.profile(of).fold.totals = totals{Calibrations: 3, Counted: 1, Chunks: 1}
		occ[i] = NewOccupancy(start)
		occ[i].Set(start, 1)
		s := b.Open(of, Open{Sent: start, Occupancy: occ[i]})
		for j := range 41 {
			s.Read(start.Add(time.Duration(j)*50*ms), 1)
		}
		streams = append(streams, s)
	}
	occ[1].Set(start.Add(2*time.Second), 2)
	late := b.Open(two, Open{Sent: start.Add(1900 * ms), Occupancy: occ[1], PromptTokens: 2000})
	late.Read(start.Add(2*time.Second), 1)
	for _, s := range append(streams, late) {
		s.Close(start.Add(2*time.Second), true)
	}
	b.Fold(start.Add(time.Minute))
	within(t, "prompt tokens of one", b.profile(one).known.bins[0].P, 0, 1e-6)
	within(t, "prompt tokens of two", b.profile(two).known.bins[0].P, 2000, 1e-6)
}

// TestCountedOtherwiseIsAnotherTarget: what is learned of a model over its own
// users is not what is learned of it over all users of the backend.
func TestCountedOtherwiseIsAnotherTarget(t *testing.T) {
	together := Target{Backend: "api", Model: "one"}
	alone := Target{Backend: "api", Model: "one", Separate: true}
	b := NewBook(Options{})
	b.Retain(together)
	b.profile(together).fold.totals.Answers = 7
	b.Retain(alone)
	if p := b.profile(alone); p.fold.totals.Answers != 0 || len(b.Targets()) != 1 || b.groups[together.GroupID()] != nil {
		t.Errorf("after a reload: %v answers, targets %v, want none and the separate one", p.fold.totals.Answers, b.Targets())
	}
	if together.GroupID() == alone.GroupID() || alone.GroupID() == (Target{Backend: "api", Model: "two", Separate: true}).GroupID() {
		t.Error("two groups have one name")
	}
	if other := (Target{Backend: "api", Model: "two"}); other.GroupID() != together.GroupID() {
		t.Errorf("%v and %v are counted apart", other.GroupID(), together.GroupID())
	}
}
