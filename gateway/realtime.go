package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/pacer-dev/pacer/internal/realtime"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// socketBuffer is how much of a session is passed on at once, either way, in
	// bytes, and maxEvent the longest event that is looked at for its tokens.
	socketBuffer = 16 << 10
	maxEvent     = 256 << 10

	// socketKey begins the subprotocol in which browsers show their key: they cannot
	// set headers.
	socketKey = "openai-insecure-api-key."

	// closePolicy is the code of a close frame that no other one fits, by RFC 6455.
	closePolicy = 1008

	socketProtocol   = "Sec-Websocket-Protocol"
	socketExtensions = "Sec-Websocket-Extensions"
)

// errNoSocket reports a request for a session that is no handshake of a WebSocket.
var errNoSocket = errors.New("gateway: no handshake of a WebSocket")

// offered are the subprotocols that a handshake offers.
func offered(h http.Header) (all []string) {
	for _, line := range h[socketProtocol] {
		for p := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(p))
		}
	}
	return all
}

// keyOffered is the key among the subprotocols; "" = there is none.
func keyOffered(h http.Header) string {
	for _, p := range offered(h) {
		if key, ok := strings.CutPrefix(p, socketKey); ok {
			return key
		}
	}
	return ""
}

// socketKeyOf is the key in the query of a handshake, where Azure's clients have it in
// browsers, which cannot set headers.
func socketKeyOf(r *http.Request) string {
	if r.URL.RawQuery == "" || r.Header.Get("Sec-Websocket-Key") == "" {
		return ""
	}
	q := r.URL.Query()
	return cmp.Or(q.Get("api-key"), strings.TrimPrefix(q.Get("Authorization"), "Bearer "))
}

// readSocket reads a handshake, which has all in its head.
func (x *exchange) readSocket() error {
	r := &x.request
	h := r.http.Header
	upgrades := httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade")
	if r.http.ProtoMajor != 1 || !upgrades || !strings.EqualFold(h.Get("Upgrade"), "websocket") || h.Get("Sec-Websocket-Key") == "" {
		x.down.w.Header().Set("Upgrade", "websocket")
		return errNoSocket
	}
	q := r.http.URL.Query()
	if r.parsed.Model = q.Get("model"); r.parsed.Model == "" {
		r.parsed.Model = q.Get("deployment") // as Azure's clients
	}
	return nil
}

// prepareSocket makes the call that opens a session.
func (u *roundTrip) prepareSocket() {
	r := &u.request
	h := r.http.Header.Clone()
	for _, name := range []string{socketExtensions, "Content-Encoding"} {
		delete(h, name) // compressed, events could not be read
	}
	protocols := slices.DeleteFunc(offered(h), func(p string) bool { return strings.HasPrefix(p, socketKey) })
	if delete(h, socketProtocol); len(protocols) > 0 {
		h.Set(socketProtocol, strings.Join(protocols, ", "))
	}
	u.call = providers.Call{
		Method: http.MethodGet, Path: r.socketPath(u), Model: u.model, Header: h, RequestID: requestID(r.http.Context()), Upgrade: "websocket",
	}
}

// socketPath is the path of a session at u's backend, which names the model in its
// query.
func (r *request) socketPath(u *roundTrip) string {
	q := r.http.URL.Query()
	model := u.model
	if model == "" {
		model = r.parsed.Model
	}
	name := "model"
	if u.backend.NamesDeployments() {
		name = "deployment"
	}
	for own := range q {
		if showsKey(own) || own == "model" || own == "deployment" {
			q.Del(own)
		}
	}
	if r.http.URL.Query().Has("deployment") {
		q.Del("api-version") // of the API that the client believes to speak
	}
	if model != "" {
		q.Set(name, model)
	}
	if len(q) == 0 {
		return r.path
	}
	return r.path + "?" + q.Encode()
}

// converse opens the session for the client, and passes it on until it ends. What
// is no session is an answer like any other.
func (x *exchange) converse() error {
	t := x.attempt
	if t.up.status() != http.StatusSwitchingProtocols {
		return x.relay()
	}
	backend, ok := t.up.resp.Body.(io.ReadWriteCloser)
	if !ok {
		return t.sendFailed(errGarbage, "did not change the protocol")
	}
	if err := x.memory.take(2 * socketBuffer); err != nil {
		return err
	}
	x.letGo()
	client, err := x.openSocket(t)
	if err != nil {
		_ = backend.Close()
		return err
	}
	t.up.timer.stop() // what follows has bounds of its own
	t.up.settle()
	conf := x.setup.conf.Realtime
	over := time.AfterFunc(conf.Total, func() { t.up.cancel(errTotal) })
	defer over.Stop()
	err = realtime.Relay(t.up.ctx, client, backend, realtime.Options{
		Idle: conf.Idle, Message: conf.Message, Buffer: socketBuffer,
		Event: t.tokensOf(), MaxEvent: maxEvent, Room: x.memory.roomFor,
	})
	x.down.bytes = client.wrote
	return t.place.sessionEnded(err)
}

// roomFor takes room for more bytes of an event, or gives it back.
func (h *holding) roomFor(bytes int) bool {
	if bytes < 0 {
		h.adjust(int64(bytes))
		return true
	}
	return h.take(int64(bytes)) == nil
}

// sessionEnded says what the end of a session means.
func (p *place) sessionEnded(err error) error {
	var refused *realtime.RefusedError
	var poor *budgetError
	switch {
	case err == nil, errors.Is(err, realtime.ErrIdle), errors.Is(err, errTotal), errors.As(err, &poor):
		return nil
	case errors.Is(err, errDraining):
		return &cutError{backend: p.name(), err: err}
	case errors.As(err, &refused) && !refused.ByClient, errors.Is(err, realtime.ErrBackendGone):
		p.backend.Cut(err)
		return &cutError{backend: p.name(), err: err}
	}
	return &goneError{err: err}
}

// openSocket takes the client's connection and sends the head that opens its
// session.
func (x *exchange) openSocket(t *attempt) (*socket, error) {
	t.copyHeader(x.down.w.Header())
	head := x.down.w.Header().Clone()
	for _, name := range []string{"Content-Length", "Content-Type", "Date", "Transfer-Encoding", socketExtensions} {
		delete(head, name)
	}
	head.Set("Connection", "Upgrade")
	head.Set("Upgrade", "websocket")
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = head.Write(&b)
	b.WriteString("\r\n")
	conn, buffered, err := x.down.control.Hijack()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	s := &socket{Conn: conn, rest: buffered.Reader, limit: x.setup.conf.Timeouts.Write}
	x.down.delivery.begin()
	x.down.status = http.StatusSwitchingProtocols
	if _, err := s.Write(b.Bytes()); err != nil {
		_ = s.Close()
		return nil, &goneError{err: err}
	}
	return s, nil
}

// socket is the client's connection of a session.
type socket struct {
	net.Conn
	rest  *bufio.Reader // what came behind the handshake
	limit time.Duration // for one write
	wrote int64         // bytes
}

// Read implements io.Reader. Read to its end, rest would end the request's context,
// and so hide how the session ended.
func (s *socket) Read(p []byte) (int, error) {
	if n := s.rest.Buffered(); n > 0 {
		return s.rest.Read(p[:min(n, len(p))])
	}
	return s.Conn.Read(p)
}

// Write implements io.Writer.
func (s *socket) Write(p []byte) (int, error) {
	_ = s.SetWriteDeadline(time.Now().Add(s.limit))
	n, err := s.Conn.Write(p)
	s.wrote += int64(n)
	return n, err
}

// socketEvent is what of an event tells tokens: OpenAI's response.done, what was
// transcribed there, and vLLM's transcription.done.
type socketEvent struct {
	Type     string `json:"type"`
	Response struct {
		Usage *socketUsage `json:"usage"`
	} `json:"response"`
	Usage *socketUsage `json:"usage"`
}

type socketUsage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
		Audio  int `json:"audio_tokens"`
	} `json:"input_token_details"`
	Said struct {
		Audio int `json:"audio_tokens"`
	} `json:"output_token_details"`
}

// tokensOf returns what looks at the events of t's session, and counts their tokens
// together.
func (t *attempt) tokensOf() func(text []byte) {
	var sum providers.Usage
	return func(text []byte) {
		if !bytes.Contains(text, []byte(`"usage"`)) {
			return
		}
		var e socketEvent
		if json.Unmarshal(text, &e) != nil {
			return
		}
		told := e.Usage
		if e.Type == "response.done" {
			told = e.Response.Usage
		} else if !strings.HasSuffix(e.Type, ".completed") && !strings.HasSuffix(e.Type, ".done") {
			return
		}
		if told == nil {
			return
		}
		u := providers.Usage{
			PromptTokens: max(told.Input, told.Prompt), CompletionTokens: max(told.Output, told.Completion), CachedTokens: told.Details.Cached,
		}
		if min(u.PromptTokens, u.CompletionTokens, u.CachedTokens) < 0 || u.CachedTokens > u.PromptTokens || !t.request.believes(&u) {
			return
		}
		sum.PromptTokens += u.PromptTokens
		sum.CompletionTokens += u.CompletionTokens
		sum.CachedTokens += u.CachedTokens
		sum.AudioPromptTokens += min(max(told.Details.Audio, 0), u.PromptTokens)
		sum.AudioCompletionTokens += min(max(told.Said.Audio, 0), u.CompletionTokens)
		t.measured.count(&sum)
		if err := t.spendSoFar(time.Now()); err != nil {
			t.up.cancel(&realtime.EndError{Code: closePolicy, Reason: "the budget is spent", Err: err})
		}
	}
}
