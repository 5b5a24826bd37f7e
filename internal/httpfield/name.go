package httpfield

import (
	"net/http"
	"net/textproto"
)

// Where in a word of a canonical name a byte can be.
const (
	begins = 1 << iota // at its beginning: a capital, or no letter
	goesOn             // behind that: no capital
)

// places is where each byte can be, by RFC 9110, section 5.6.2; 0 = in no name.
var places = func() (p [256]uint8) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789") {
		p[c] = begins | goesOn
	}
	for c := byte('a'); c <= 'z'; c++ {
		p[c-'a'+'A'], p[c] = begins, goesOn
	}
	return p
}()

// Canonical returns name as http.Header has it. ok is false where it is no name: then
// canonical is name.
func Canonical(name string) (canonical string, ok bool) {
	place := uint8(begins)
	for i := range len(name) {
		c := name[i]
		if places[c]&place == 0 {
			return canonize(name)
		}
		if place = goesOn; c == '-' {
			place = begins
		}
	}
	return name, name != ""
}

// canonize is Canonical for what is not canonical.
func canonize(name string) (canonical string, ok bool) {
	for i := range len(name) {
		if places[name[i]] == 0 {
			return name, false
		}
	}
	return textproto.CanonicalMIMEHeaderKey(name), true
}

// First returns the first value of the header whose canonical name is that; "" = it has
// none.
func First(h http.Header, canonical string) string {
	if values := h[canonical]; len(values) > 0 {
		return values[0]
	}
	return ""
}
