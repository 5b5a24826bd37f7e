package sim

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// maxControlBytes bounds what /sim/set reads.
const maxControlBytes = 64 << 10

func (s *Server) serveTruth(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, s.Truth())
	return nil
}

func (s *Server) serveReset(w http.ResponseWriter, _ *http.Request) error {
	s.Reset()
	writeJSON(w, http.StatusOK, s.Truth())
	return nil
}

// serveSet changes the faults that the body names, all or none, and answers
// with what is in force then.
func (s *Server) serveSet(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBytes))
	if err != nil {
		return bodyError(err)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(body, &values); err != nil {
		return badRequest("", "sim: the body is no JSON object: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := *s.faults.Load()
	var bad []string
	for name, value := range values {
		text := string(value)
		var quoted string
		if json.Unmarshal(value, &quoted) == nil {
			text = quoted
		}
		if err := setFault(&f, name, text); err != nil {
			bad = append(bad, err.Error())
		}
	}
	if len(bad) > 0 {
		slices.Sort(bad) // a map has no order, an answer should
		return badRequest("", "%s", strings.Join(bad, "; "))
	}
	s.publish(f)
	writeJSON(w, http.StatusOK, f)
	return nil
}

// bodyError is the answer to a body that could not be read.
func bodyError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &apiError{status: http.StatusRequestEntityTooLarge, kind: "BadRequestError", message: "The body is too large."}
	}
	return badRequest("", "The body could not be read: %v", err)
}
