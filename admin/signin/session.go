package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"
	"time"
)

const (
	// mostSessions are open at once, and mostOfOne of one person: the oldest ends
	// where one more begins.
	mostSessions = 4096
	mostOfOne    = 16
)

// Visit is somebody who has signed in.
type Visit struct {
	Subject string  // the provider's name of the person, which never changes
	Name    string  // for people to read: an e-mail address, a user name, or ""
	Groups  []Group // what the provider says in the claim that is asked for
	Began   time.Time
	Ends    time.Time
}

// Group is the beginning of the SHA-256 of a group's name. Sessions keep these: a
// person may be in a thousand groups with long names, and any of them may give a role
// once the configuration says so.
type Group [16]byte

// GroupOf is that of a name.
func GroupOf(name string) Group {
	sum := sha256.Sum256([]byte(name))
	return Group(sum[:16])
}

// In reports whether the person is in one of those groups.
func (v *Visit) In(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(v.Groups, GroupOf(name)) })
}

// sessions are the visits by the hash of their cookie. The zero value is ready.
type sessions struct {
	mu   sync.Mutex // a leaf
	open map[[sha256.Size]byte]Visit
}

// begin opens a session and returns what its cookie says.
func (s *sessions) begin(v Visit) string {
	secret := random()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[[sha256.Size]byte]Visit{}
	}
	s.makeRoom(v)
	s.open[sha256.Sum256([]byte(secret))] = v
	return secret
}

// makeRoom drops what is over, and the oldest of those that are too many. mu is
// held.
func (s *sessions) makeRoom(v Visit) {
	ofOne := 0
	var oldest, oldestOfOne [sha256.Size]byte
	older := func(h, than [sha256.Size]byte) bool {
		t, known := s.open[than]
		return !known || s.open[h].Began.Before(t.Began)
	}
	for h, o := range s.open {
		if !v.Began.Before(o.Ends) {
			delete(s.open, h)
			continue
		}
		if older(h, oldest) {
			oldest = h
		}
		if o.Subject == v.Subject {
			if ofOne++; older(h, oldestOfOne) {
				oldestOfOne = h
			}
		}
	}
	switch {
	case ofOne >= mostOfOne:
		delete(s.open, oldestOfOne)
	case len(s.open) >= mostSessions:
		delete(s.open, oldest)
	}
}

// find returns the session whose cookie says secret.
func (s *sessions) find(now time.Time, secret string) (Visit, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.open[sha256.Sum256([]byte(secret))]
	return v, ok && now.Before(v.Ends)
}

// end closes the session whose cookie says secret.
func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(secret)))
}

// random is a number that nobody guesses, as text.
func random() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
