package profiles

import (
	"cmp"
	"strings"
)

// Target is the thing that has a curve: one upstream model on one backend. It
// is comparable and serves as a map key.
type Target struct {
	Backend string // name from the configuration
	Model   string // the name that goes up to the backend; "" while a route passes the client's own name on

	// Separate says that the users of the backend's other models do not slow
	// this one down, as on a hosted API: its curve is over its own users alone.
	// So it is another target than the one that is counted with all others.
	Separate bool
}

// GroupID names what is counted together, because it is decoded together: all
// targets of a backend, or a separate one alone. It is comparable and serves as a
// map key.
type GroupID struct {
	Backend  string
	Model    string // "" unless Separate, and of the separate target without a model
	Separate bool
}

// GroupID returns what t is counted in.
func (t Target) GroupID() GroupID {
	if t.Separate {
		return GroupID(t)
	}
	return GroupID{Backend: t.Backend}
}

// compare orders targets by backend, then model, those counted together first.
func (t Target) compare(o Target) int {
	separate := 0
	switch {
	case t.Separate && !o.Separate:
		separate = 1
	case o.Separate && !t.Separate:
		separate = -1
	}
	return cmp.Or(strings.Compare(t.Backend, o.Backend), strings.Compare(t.Model, o.Model), separate)
}
