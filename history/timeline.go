package history

import (
	"cmp"
	"slices"
	"time"
)

// MaxMarks is how many marks are kept: the latest.
const MaxMarks = 1000

// Mark is one thing that happened, or lasts.
type Mark struct {
	ID    uint64
	Time  time.Time
	Ended time.Time // zero = it lasts
	Kind  string    // start, reload, breaker, or that of a cause
	Of    Of
	Name  string
	Text  string

	// Replica is the gateway that noticed it; "" = this one.
	Replica string

	// Version grows with every change of a mark.
	Version uint64
}

// MarkKinds are the words of Mark.Kind.
func MarkKinds() []string {
	words := []string{"start", "reload", "breaker", "discovery"}
	for _, k := range kinds[1:] {
		words = append(words, k.mark)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// timeline is a list of marks by ID, of which the oldest make room. The zero value
// is empty.
type timeline struct {
	marks   []Mark
	last    uint64
	version uint64
}

// add adds m, and returns its ID.
func (t *timeline) add(m Mark) uint64 {
	t.last++
	t.version++
	m.ID, m.Version = t.last, t.version
	if len(t.marks) == MaxMarks {
		t.marks = slices.Delete(t.marks, 0, 1)
	}
	t.marks = append(t.marks, m)
	return m.ID
}

// retell has the mark say text, unless it made room.
func (t *timeline) retell(id uint64, text string) {
	if i, ok := t.find(id); ok && t.marks[i].Text != text {
		t.version++
		t.marks[i].Text, t.marks[i].Version = text, t.version
	}
}

// end ends the mark, unless it made room.
func (t *timeline) end(id uint64, now time.Time, text string) {
	if i, ok := t.find(id); ok {
		t.version++
		t.marks[i].Ended, t.marks[i].Version = now, t.version
		if text != "" {
			t.marks[i].Text = text
		}
	}
}

// find is where the mark stands; false = it made room.
func (t *timeline) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(t.marks, id, func(m Mark, id uint64) int { return cmp.Compare(m.ID, id) })
}
