package history

import "time"

const (
	// clearAfter is how many seconds in a row a cause has to be absent before it is
	// over, and turnAfter how many another one of no worse kind has to be there
	// before it takes its place, or several that take turns before one is said.
	clearAfter = 5
	turnAfter  = 10

	// retellAfter is how long the marks of a cause may say what it said before. Its figures
	// change each second, and each change of a mark goes to all open pages.
	retellAfter = 10 * time.Second
)

// state is what one route, backend or the gateway has: at most one cause, which
// begins and ends with hysteresis. The zero value has none.
type state struct {
	has     Cause
	next    Cause     // what is there, and not said yet
	lasts   int       // seconds that next has been there
	absent  int       // seconds that has has not
	unsaid  int       // seconds that something is there, of whatever kind, and nothing said
	marks   []uint64  // of has, that are open
	told    time.Time // when they were last told what has says
	noted   []string  // their kinds
	counted pulse     // of a route, when has began
}

// change is what became of a state in one second.
type change struct{ ended, began bool }

// step tells s what is wrong at now; a cause of kind None is nothing.
func (s *state) step(now time.Time, c Cause) (was Cause, x change) {
	was = s.has
	if c.Kind == s.has.Kind {
		s.lasts, s.unsaid = 0, 0
		if s.absent = 0; c.Kind != None {
			c.Since = was.Since // the words may have other figures
			s.has = c
		}
		return was, x
	}
	if was.Kind != None {
		s.absent++
	}
	if c.Kind == None {
		s.lasts = 0
		if s.absent >= clearAfter {
			s.has, x.ended = Cause{}, true
		}
		return was, x
	}
	if s.lasts == 0 || c.Kind != s.next.Kind {
		s.lasts, s.next = 0, c
		s.next.Since = now
	}
	c.Since = s.next.Since
	s.next = c
	need := kinds[c.Kind].raise
	switch {
	case was.Kind == None:
		s.unsaid++
	case was.Kind < c.Kind:
		need = turnAfter
	}
	// Where kinds take turns none of them would ever last.
	if s.lasts++; s.lasts >= need || s.unsaid >= turnAfter {
		x = change{ended: was.Kind != None, began: true}
		s.has, s.lasts, s.absent, s.unsaid = c, 0, 0, 0
	}
	return was, x
}
