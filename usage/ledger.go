package usage

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// KeepHours is how long cells are kept: two months, so that a month can be
	// read while the next one runs.
	KeepHours = 62 * 24

	// mostPerHour is how many cells of one hour are told apart, and mostCells of
	// all hours; there are twice as many at most. One key has half of them, so that what
	// a client makes up does not hide what others used. Without keys there are no others.
	mostPerHour = 4096
	mostCells   = 100_000
)

// keyHour is what a key used within an hour.
type keyHour struct {
	hour Hour
	key  string
}

type cellKey struct {
	hour Hour
	of   Of
}

// ledger is sums by cell. The zero value is empty. It is not safe for concurrent
// use.
type ledger struct {
	cells   map[cellKey]*Sums
	perHour map[Hour]int
	ofKey   map[keyHour]int // cells that are told apart; with hour 0 those of all hours
}

// add adds s to the cell of h and of, or where there are too many cells to one
// that several share.
func (l *ledger) add(h Hour, of Of, s Sums) {
	if l.cells == nil {
		l.cells, l.perHour, l.ofKey = map[cellKey]*Sums{}, map[Hour]int{}, map[keyHour]int{}
	}
	at := cellKey{h, of}
	for i, wider := range []Of{of.crowd(), {Key: Other, Team: Other, Route: Other, Backend: Other, Model: Other, Tags: Other}} {
		// Whose it was is kept where there is room for as much again.
		own := i == 1 || of.Key == "" || l.ofKey[keyHour{h, of.Key}] < mostPerHour/2 && l.ofKey[keyHour{0, of.Key}] < mostCells/2
		if times := i + 1; l.cells[at] != nil || own && l.perHour[h] < times*mostPerHour && len(l.cells) < times*mostCells {
			break
		}
		at.of = wider
	}
	sums := l.cells[at]
	if sums == nil {
		sums = &Sums{}
		l.cells[at] = sums
		l.count(at, 1)
	}
	sums.Add(s)
}

// join adds all of m.
func (l *ledger) join(m *ledger) {
	for at, s := range m.cells {
		l.add(at.hour, at.of, *s)
	}
}

// forget drops the hours before h.
func (l *ledger) forget(h Hour) {
	for at := range l.cells {
		if at.hour < h {
			l.drop(at)
		}
	}
}

// drop takes a cell out.
func (l *ledger) drop(at cellKey) {
	delete(l.cells, at)
	l.count(at, -1)
}

// count adds n to the cells that there are like at.
func (l *ledger) count(at cellKey, n int) {
	if l.perHour[at.hour] += n; l.perHour[at.hour] <= 0 {
		delete(l.perHour, at.hour)
	}
	for _, of := range []keyHour{{at.hour, at.of.Key}, {0, at.of.Key}} {
		if l.ofKey[of] += n; l.ofKey[of] <= 0 {
			delete(l.ofKey, of)
		}
	}
}

// spentBy is what h paid for in [from, to).
func (l *ledger) spentBy(h Holder, from, to Hour) (sum Money) {
	for at, s := range l.cells {
		if name := map[bool]string{true: at.of.Team, false: at.of.Key}[h.Team]; name == h.Name && at.hour >= from && at.hour < to {
			sum += s.Cost
		}
	}
	return sum
}

// list returns the cells of [from, to), oldest first.
func (l *ledger) list(from, to Hour) []Cell {
	out := []Cell{}
	for at, s := range l.cells {
		if at.hour >= from && at.hour < to {
			out = append(out, Cell{at.hour, at.of, *s})
		}
	}
	slices.SortFunc(out, compareCells)
	return out
}

func compareCells(a, b Cell) int {
	return cmp.Or(cmp.Compare(a.Hour, b.Hour), compareOf(a.Of, b.Of))
}

func compareOf(a, b Of) int {
	return cmp.Or(
		strings.Compare(a.Key, b.Key), strings.Compare(a.Team, b.Team), strings.Compare(a.Route, b.Route),
		strings.Compare(a.Backend, b.Backend), strings.Compare(a.Model, b.Model), strings.Compare(a.Tags, b.Tags),
	)
}
