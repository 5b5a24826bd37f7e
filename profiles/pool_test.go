package profiles

import (
	"math"
	"testing"
	"time"
)

// A target that knows nothing has the curve of what its backend's other targets
// know, until its own streams say otherwise; a prior of its own comes first, and
// another backend's evidence is not its own.
func TestATargetBorrowsFromItsBackend(t *testing.T) {
	book := NewBook(Options{})
	lora := Target{Backend: target.Backend, Model: "lora"}
	given := Target{Backend: target.Backend, Model: "given"}
	alone := Target{Backend: target.Backend, Model: "alone", Separate: true}
	elsewhere := Target{Backend: "elsewhere", Model: "lora"}
	book.Ensure(target, lora, given, alone, elsewhere)
	book.Prior(given, []PriorPoint{{N: 1, TPS: 7}}, 0)
	now := start.Add(time.Minute)
	fit := Fit{A: 0.02, C: 0.001}
	book.Apply(now, map[Target]Sums{target: sumsOf(fit, even(300, 1, 4, 16, 40), flat)}, nil)

	for _, n := range []int{1, 4, 16, 40} {
		within(t, "borrowed TPS", book.Curve(lora).TPS(n), 1/(0.02+0.001*float64(n)), 0.02)
	}
	for model, want := range map[Target]bool{target: false, lora: true, given: false, alone: false} {
		if got := book.Curve(model).Borrowed(); got != want {
			t.Errorf("the curve of %v is borrowed: %v, want %v", model, got, want)
		}
	}
	if got := book.Curve(lora).At(4).Source; got != Prior {
		t.Errorf("what is borrowed is called %v, want %v", got, Prior)
	}
	if lo, hi := book.Curve(lora).Support(); lo != 1 || hi != 40 {
		t.Errorf("borrowed support %d to %d, want 1 to 40", lo, hi)
	}
	within(t, "a prior of its own", book.Curve(given).TPS(1), 7, 1e-9)
	for _, other := range []Target{alone, elsewhere} {
		if book.Curve(other).Known() {
			t.Errorf("%v knows a curve that is another's", other)
		}
	}

	// Three times as slow, at low n only: the level is its own at once, the shape
	// beyond is still the backend's.
	slow := Fit{A: 0.06, C: 0.003}
	book.Apply(now, map[Target]Sums{lora: sumsOf(slow, even(2000, 1, 4), flat)}, nil)
	if book.Curve(lora).Borrowed() {
		t.Error("a curve with evidence of its own counts as borrowed")
	}
	within(t, "its own TPS", book.Curve(lora).TPS(4), 1/slow.tpot(4, 0), 0.03)
	within(t, "TPS beyond what it saw itself", book.Curve(lora).TPS(40), 1/slow.tpot(40, 0), 0.1)
	within(t, "TPS of whom it borrowed from", book.Curve(target).TPS(4), 1/fit.tpot(4, 0), 0.03)
}

// What is borrowed follows what the others learn, without a stream of one's own.
func TestWhatIsBorrowedFollows(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	lora := Target{Backend: target.Backend, Model: "lora"}
	b.book.Ensure(lora)
	b.teach(1, 0, 300)
	b.book.Fold(start.Add(30 * time.Second))
	b.book.Fold(start.Add(31 * time.Second))
	within(t, "TPS after the first fold", b.book.Curve(lora).TPS(1), 20, 0.01)
	b.teach(8, 40*time.Second, 300)
	b.book.Fold(start.Add(70 * time.Second))
	b.book.Fold(start.Add(71 * time.Second))
	if _, hi := b.book.Curve(lora).Support(); hi != 8 {
		t.Errorf("borrowed support up to %d, want 8", hi)
	}
	b.book.Retain(lora)
	if c := b.book.Curve(lora); math.IsNaN(c.TPS(1)) {
		t.Error("what was borrowed is gone with whom it was borrowed from")
	}
}

// A target that comes later borrows with the next fold, as those before it.
func TestANewTargetBorrowsAtOnce(t *testing.T) {
	book := NewBook(Options{})
	others := []Target{target, {Backend: target.Backend, Model: "lora"}}
	book.Ensure(others...)
	now := start.Add(time.Minute)
	book.Apply(now, map[Target]Sums{target: sumsOf(Fit{A: 0.02, C: 0.001}, even(300, 1, 4, 16, 40), flat)}, nil)
	book.Fold(now)
	late := Target{Backend: target.Backend, Model: "late"}
	book.Retain(append(others, late)...)
	book.Fold(now.Add(time.Second))
	if !book.Curve(late).Known() {
		t.Error("a target that a reload brought knows nothing, want what the others know")
	}
	book.Retain(others...)
	book.Fold(now.Add(2 * time.Second))
	book.Retain(append(others, late)...)
	book.Prior(late, nil, 0) // as every reload does
	book.Fold(now.Add(3 * time.Second))
	if !book.Curve(late).Known() {
		t.Error("a target that was gone and came back knows nothing, want what the others know")
	}
}
