package providers

import (
	"net/http"
	"sync"
	"time"
)

// lackLife is how long an endpoint that a server was found to have, or to lack,
// is taken to be there, or not: then it may be another version.
const lackLife = 10 * time.Minute

// has is what is known of the endpoints that not every server of an API has. The
// zero value knows nothing; it is safe for concurrent use.
type has struct{ paths sync.Map } // path → found

type found struct {
	has   bool
	until time.Time
}

// Has reports whether the server has an endpoint that others of its kind lack, as
// far as it has shown. known is false while it has not.
func (b *Backend) Has(path string) (yes, known bool) {
	f, ok := b.has.paths.Load(path)
	if !ok || time.Now().After(f.(found).until) {
		return false, false
	}
	return f.(found).has, true
}

// NoteHas remembers whether the server has the endpoint at path, which is one of a
// few. news is whether that was not known.
func (b *Backend) NoteHas(path string, yes bool) (news bool) {
	was, known := b.Has(path)
	if known && was == yes {
		return false
	}
	b.has.paths.Store(path, found{yes, time.Now().Add(lackLife)})
	return true
}

// LacksEndpoint reports whether an error answer says that the server has nothing
// at the address that was asked. body is the start of the answer, model what was
// asked for.
func LacksEndpoint(status int, body []byte, model string) bool {
	switch status {
	case http.StatusNotFound:
		return !AboutModel(body, model)
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}
