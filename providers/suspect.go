package providers

import "bytes"

var choicesKey = []byte(`"choices"`)

// choicesWindow is how far behind its key the emptiness of choices must be
// plain to see.
const choicesWindow = 32

// suspect judges the bytes of an event as they come: whether it can be one
// that carries usage and nothing else. The zero value knows nothing. It keeps
// how far it has searched, so that an event which trickles in costs no more
// than one that comes at once.
type suspect struct {
	searched int // bytes without the key
	choices  int // offset behind the key; 0 = not found yet
}

// could reports whether an event that begins with raw, all of it up to here,
// may be one. Once it says no, it would say no to every continuation of raw.
func (s *suspect) could(raw []byte) bool {
	if len(raw) > maxHeld {
		return false
	}
	if rest, ok := bytes.CutPrefix(raw, []byte("data:")); ok {
		if len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0] != '{' {
			return false
		}
	}
	if s.choices == 0 {
		i := bytes.Index(raw[s.searched:], choicesKey)
		if i < 0 {
			s.searched = max(s.searched, len(raw)-len(choicesKey)+1)
			return true
		}
		s.choices = s.searched + i + len(choicesKey)
	}
	return mayBeEmpty(raw[s.choices:])
}

// mayBeEmpty reports whether what follows the key begins with : [ ], as far as
// it goes.
func mayBeEmpty(rest []byte) bool {
	want := []byte(":[]")
	for _, c := range rest[:min(len(rest), choicesWindow)] {
		switch {
		case len(want) == 0:
			return true
		case c == want[0]:
			want = want[1:]
		case c == ' ' || c == '\t':
		default:
			return false
		}
	}
	return len(want) == 0 || len(rest) < choicesWindow
}
