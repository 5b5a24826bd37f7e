package gateway

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// script is a backend that does what it is told, and remembers what it was
// sent.
type script struct {
	answer func(w http.ResponseWriter, r *http.Request)

	mu      sync.Mutex
	bodies  []string
	paths   []string // with their queries
	methods []string
	heads   []http.Header
	gone    int // requests whose client left
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.bodies = append(s.bodies, string(body))
	s.paths = append(s.paths, r.URL.RequestURI())
	s.methods = append(s.methods, r.Method)
	s.heads = append(s.heads, r.Header.Clone())
	s.mu.Unlock()
	defer func() {
		if r.Context().Err() != nil {
			s.mu.Lock()
			s.gone++
			s.mu.Unlock()
		}
	}()
	s.answer(w, r)
}

func (s *script) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *script) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// pause lets the client's time pass, and reports whether it is still there.
func pause(r *http.Request, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// say writes and flushes.
func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func eventStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
}

const (
	delta     = `data: {"id":"c1","object":"chat.completion.chunk","model":"big","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
	roleOnly  = `data: {"id":"c1","object":"chat.completion.chunk","model":"big","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	lastDelta = `data: {"id":"c1","object":"chat.completion.chunk","model":"big","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	doneEvent = "data: [DONE]\n\n"
)

// usageEvent is what an engine sends at the end, if asked.
func usageEvent(prompt, completion int) string {
	b, _ := json.Marshal(map[string]int{"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
	return `data: {"id":"c1","object":"chat.completion.chunk","model":"big","choices":[],"usage":` + string(b) + "}\n\n"
}

// talk streams n tokens, one each gap, and ends well.
func talk(n int, gap time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		say(w, roleOnly)
		for range n {
			if !pause(r, gap) {
				return
			}
			say(w, delta)
		}
		say(w, lastDelta+usageEvent(7, n)+doneEvent)
	}
}

// flows streams events, and goes on as silent as hold, for as long as its client is there.
func flows(events string, hold time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		say(w, events)
		pause(r, hold)
	}
}

// cutOff breaks the connection without an end.
func cutOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

const streamBody = `{"model":"chat","messages":[{"role":"user","content":"secret-prompt"}],"stream":true}`

// isCut reports whether an answer was broken off.
func isCut(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// responseReader reads answers off a connection by hand.
type responseReader struct{ r *bufio.Reader }

func newResponseReader(c net.Conn) *responseReader { return &responseReader{r: bufio.NewReader(c)} }

// next reads one answer to its end.
func (r *responseReader) next() (string, error) {
	resp, err := http.ReadResponse(r.r, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}
