package gateway

import (
	"fmt"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/translate"
)

const (
	// mostValues is how many JSON values a body may have that is translated. Whoever
	// means something by his parts has far fewer, however long they are.
	mostValues = 200_000

	// perValue is what one of them takes at most while a request is translated, in
	// bytes: a part of a turn is that large, and is one object and the name of its kind.
	perValue = 160
)

// speech is a request as its client wrote it, read for backends that speak another
// dialect. The zero value was not read yet.
type speech struct {
	parsed *translate.Request
	err    error // why it cannot be read
	held   int64 // what it counts as memory

	// The last one that was written: mostly that which goes up.
	target  translate.Target
	written *translate.Written
}

// write returns r as it goes to b under the name model. What that keeps counts as memory.
func (s *speech) write(r *request, memory *holding, b *backend, model string) (*translate.Written, error) {
	if s.parsed == nil && s.err == nil {
		s.parsed, s.err = s.from(r, memory)
	}
	if s.err != nil {
		return nil, s.err
	}
	target, _ := targetFor(b, model)
	if s.written == nil || !s.target.Equal(target) {
		w, err := s.parsed.Write(target)
		if err != nil {
			return nil, err
		}
		s.target, s.written = target, w
	}
	return s.written, nil
}

// from reads r, if there is room for what becomes of it.
func (s *speech) from(r *request, memory *holding) (*translate.Request, error) {
	body := r.body.bytes()
	n := openai.CountValues(body)
	if n > mostValues {
		return nil, &translate.Refusal{Message: fmt.Sprintf("The request body has more than %d JSON values, which is too many to translate it for the backends of this model.", mostValues)}
	}
	room := int64(len(body) + n*perValue)
	if err := memory.take(room); err != nil {
		return nil, err
	}
	s.held = room
	parsed, err := translate.Read(clientDialect(r.end), body)
	if err == nil {
		// As the gateway took it: "yes" asks for a stream, too, and Google's path does.
		parsed.Stream, parsed.WantUsage = r.parsed.Stream, r.parsed.IncludeUsage
	}
	return parsed, err
}

// letGo gives up what was read: no other backend is asked any more.
func (s *speech) letGo(memory *holding) {
	memory.adjust(-s.held)
	*s = speech{}
}
