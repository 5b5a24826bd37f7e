package sim

import (
	"fmt"
	"net/http"
	"time"
)

func (s *Server) serveCompletions(w http.ResponseWriter, r *http.Request) error {
	q, _, err := s.readRequest(w, r)
	if err != nil {
		return err
	}
	if q.Prompt == nil || len(q.Prompt.tokens) == 0 {
		return badRequest("prompt", "prompt must be given.")
	}
	q.text = q.Prompt.text
	return s.generate(w, r, q, q.Prompt.tokens, s.plainWire(completionWire, q).speak)
}

// generate runs one generation to its end. Sequences that have not ended when
// the client leaves, or when the answer is cut, are cancelled.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, q *request, prompts []int, speak func(*answer) voice) error {
	g, err := q.generation(prompts)
	if err != nil {
		return err
	}
	g.wrongUsage = s.quirks.wrongUsage
	g.tellsCached = s.block > 0 && !s.quirks.noCached
	g.wrongCached = s.quirks.wrongCached
	if s.block > 0 && len(g.choices) == 1 && q.text != "" {
		g.hashes = blockHashes(q.text+s.plainWire(chatWire, q).join(0, 0, g.maxTokens, g.maxTokens), s.block*bytesPerToken)
	}
	if err := s.submit(g); err != nil {
		return err
	}
	defer s.cancel(g)
	a := answer{
		server: s, w: w, r: r, g: g, model: q.Model,
		id: s.newID("chatcmpl"), created: time.Now().Unix(),
	}
	if o := q.StreamOptions; o != nil && !s.quirks.noUsage {
		a.usage = o.IncludeUsage
		a.continuous = o.IncludeUsage && o.ContinuousUsageStats
	}
	a.voice = speak(&a)
	if s.faults.Load().Garbage {
		a.voice = garbage{}
	}
	if q.Stream {
		a.stream()
	} else {
		a.whole()
	}
	return nil
}

// newID names an answer. A voice puts its own prefix in the place of
// chatcmpl.
func (s *Server) newID(prefix string) string {
	return fmt.Sprintf("%s-%016x%016x", prefix, s.ids, s.requests.Add(1))
}

// answer is the way of one generation to its client.
type answer struct {
	server     *Server
	w          http.ResponseWriter
	r          *http.Request
	g          *generation
	voice      voice
	model      string
	id         string
	created    int64
	usage      bool // the stream ends with a usage chunk
	continuous bool // and each of its chunks tells the usage so far
}

// wait returns when something happened to the generation. It does not return
// if the client is gone or the server ends: the connection is cut then.
func (a *answer) wait() {
	select {
	case <-a.g.news:
	case <-a.r.Context().Done():
		panic(http.ErrAbortHandler)
	case <-a.server.stopped:
		panic(http.ErrAbortHandler)
	}
}

// cutIfFaulty aborts the connection if a fault says so for an answer with so
// many tokens.
func (a *answer) cutIfFaulty(tokens int) {
	if cut := a.server.faults.Load().Cut; cut > 0 && tokens >= cut {
		panic(http.ErrAbortHandler)
	}
}

// whole waits for all of the answer and sends it in one piece.
func (a *answer) whole() {
	for {
		most, complete := a.g.produced()
		a.cutIfFaulty(most)
		if complete {
			break
		}
		a.wait()
	}
	writeJSON(a.w, http.StatusOK, a.voice.body())
}
