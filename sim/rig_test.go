package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// rig is a server behind a network inside the bubble of a test.
type rig struct {
	t       *testing.T
	server  *Server
	network *memnet.Network
	client  *http.Client
	stop    func() // ends Run; safe to call again
}

// serve starts a server, without noise unless o says otherwise, and ends it
// with the test. A goroutine that stays behind fails the bubble.
func serve(t *testing.T, o Options) *rig {
	t.Helper()
	if o.Names == nil {
		o.Names = []string{"m"}
	}
	if o.Noise == 0 {
		o.Noise = -1
	}
	s := must.Get(NewServer(o))(t)
	r := &rig{t: t, server: s, network: new(memnet.Network)}
	l := must.Get(r.network.Listen("sim:80"))(t)
	r.client = &http.Client{Transport: &http.Transport{
		DialContext: r.network.Dial, DisableCompression: true, MaxIdleConnsPerHost: 1000,
	}}
	ctx, cancel := context.WithCancel(t.Context())
	httpServer := &http.Server{Handler: s}
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	go func() { served <- httpServer.Serve(l) }()
	r.stop = cancel
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		r.client.CloseIdleConnections()
		httpServer.Close()
		<-served
	})
	return r
}

// do sends body (none if empty) and returns the answer's head.
func (r *rig) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	r.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	q := must.Get(http.NewRequestWithContext(ctx, method, "http://sim"+path, reader))(r.t)
	return r.client.Do(q)
}

// call sends body and returns the whole answer.
func (r *rig) call(method, path, body string) (status int, answer string) {
	r.t.Helper()
	resp, err := r.do(r.t.Context(), method, path, body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(data)
}

// get fills v from the JSON at path.
func (r *rig) get(path string, v any) {
	r.t.Helper()
	status, body := r.call("GET", path, "")
	if status != http.StatusOK {
		r.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		r.t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

func (r *rig) set(faults string) {
	r.t.Helper()
	if status, body := r.call("POST", "/sim/set", faults); status != http.StatusOK {
		r.t.Fatalf("POST /sim/set %s: %d %s", faults, status, body)
	}
}

// event is one server-sent event and when it came.
type event struct {
	data string
	at   time.Time
}

// chunk is what a test wants to know of an event.
type chunk struct {
	ID, Object, Model string
	Choices           []struct {
		Index int
		Delta struct {
			Role    *string
			Content *string
		}
		Text         *string
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

// stream is what came of a streamed answer.
type stream struct {
	status  int
	header  http.Header
	headers time.Time // when they came
	events  []event
	err     error // why reading ended; nil for a clean end
}

// stream sends body and reads the answer to its end.
func (r *rig) stream(ctx context.Context, path, body string) stream {
	r.t.Helper()
	resp, err := r.do(ctx, "POST", path, body)
	if err != nil {
		return stream{err: err}
	}
	defer resp.Body.Close()
	s := stream{status: resp.StatusCode, header: resp.Header, headers: time.Now()}
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data: "); ok && err == nil {
			s.events = append(s.events, event{strings.TrimSuffix(data, "\n"), time.Now()})
		}
		if err != nil {
			if err != io.EOF {
				s.err = err
			}
			return s
		}
	}
}

// tokens are the events that carry a token.
func (s stream) tokens(t *testing.T) []event {
	t.Helper()
	var list []event
	for _, e := range s.events {
		if e.data == "[DONE]" {
			continue
		}
		c := decode(t, e.data)
		if len(c.Choices) == 0 {
			continue
		}
		if text := c.Choices[0].Delta.Content; text != nil && *text != "" {
			list = append(list, e)
		}
		if text := c.Choices[0].Text; text != nil && *text != "" {
			list = append(list, e)
		}
	}
	return list
}

// done reports whether the stream ended as it should.
func (s stream) done() bool {
	return s.err == nil && len(s.events) > 0 && s.events[len(s.events)-1].data == "[DONE]"
}

// tps is the decode speed a client measures.
func (s stream) tps(t *testing.T) float64 {
	t.Helper()
	tokens := s.tokens(t)
	last := len(tokens) - 1
	if last < 1 {
		t.Fatalf("stream has %d tokens: %+v", len(tokens), s)
	}
	return float64(last) / tokens[last].at.Sub(tokens[0].at).Seconds()
}

func decode(t *testing.T, data string) chunk {
	t.Helper()
	var c chunk
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		t.Fatalf("event %q: %v", data, err)
	}
	return c
}

// raw opens a connection of its own, sends a request for body as written, and
// leaves the answer to be read.
func (r *rig) raw(body string) net.Conn {
	r.t.Helper()
	conn := must.Get(r.network.Dial(r.t.Context(), "tcp", "sim:80"))(r.t)
	var b bytes.Buffer
	q := must.Get(http.NewRequest("POST", "http://sim/v1/chat/completions", strings.NewReader(body)))(r.t)
	must.Do(r.t, q.Write(&b))
	must.Get(conn.Write(b.Bytes()))(r.t)
	return conn
}

const hello = `"model":"m","messages":[{"role":"user","content":"hello"}]`
