package openai

import "fmt"

const (
	// fewKeys are compared one by one; a real body has about ten.
	fewKeys = 24

	// maxKeys bounds the fields of one body, so that finding duplicates cannot
	// cost more memory than the body itself.
	maxKeys = 4096

	// quotedKey is how much of a client's key a message repeats.
	quotedKey = 64
)

// keySet finds keys that come twice. The zero value is empty.
type keySet struct {
	few  [fewKeys][]byte
	n    int
	many map[string]struct{} // all of them, once there are more than few holds
}

// add refuses a key that is there already.
func (s *keySet) add(key []byte) *BadRequest {
	if s.n == maxKeys {
		return &BadRequest{Message: fmt.Sprintf("The request body has more than %d fields.", maxKeys)}
	}
	if s.has(key) {
		return &BadRequest{
			Message: fmt.Sprintf("The request body has the field %q twice.", key[:min(len(key), quotedKey)]),
			Param:   string(key[:min(len(key), quotedKey)]),
		}
	}
	if s.n < fewKeys {
		s.few[s.n] = key
	} else {
		if s.many == nil {
			s.many = make(map[string]struct{}, 2*fewKeys)
			for _, k := range s.few {
				s.many[string(k)] = struct{}{}
			}
		}
		s.many[string(key)] = struct{}{}
	}
	s.n++
	return nil
}

func (s *keySet) has(key []byte) bool {
	if s.many != nil {
		_, ok := s.many[string(key)]
		return ok
	}
	for _, k := range s.few[:min(s.n, fewKeys)] {
		if string(k) == string(key) {
			return true
		}
	}
	return false
}
