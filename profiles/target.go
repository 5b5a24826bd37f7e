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
}

// compare orders targets by backend, then model.
func (t Target) compare(o Target) int {
	return cmp.Or(strings.Compare(t.Backend, o.Backend), strings.Compare(t.Model, o.Model))
}
