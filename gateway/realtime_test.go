package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // RFC 6455 asks for it
	"encoding/base64"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/usage"
)

// talker is an engine whose sessions are whatever talk does with them.
type talker struct {
	talk func(ctx context.Context, c *websocket.Conn)

	mu    sync.Mutex
	asked []string // with their queries
	heads []http.Header
	gone  int // sessions that are over
}

func (e *talker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.asked = append(e.asked, r.URL.RequestURI())
	e.heads = append(e.heads, r.Header.Clone())
	e.mu.Unlock()
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"realtime"}, CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return
	}
	defer func() {
		_ = c.CloseNow()
		e.mu.Lock()
		e.gone++
		e.mu.Unlock()
	}()
	e.talk(r.Context(), c)
}

func (e *talker) over() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gone
}

// answerer answers each event as OpenAI's API does, with usage.
func answerer(ctx context.Context, c *websocket.Conn) {
	for {
		kind, text, err := c.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			_ = c.Write(ctx, kind, text)
			continue
		}
		_ = c.Write(ctx, kind, []byte(`{"type":"response.output_audio.delta","delta":"`+strings.Repeat("A", 20_000)+`"}`))
		_ = c.Write(ctx, kind, []byte(`{"type":"response.done","response":{"id":"r","usage":{"total_tokens":30,"input_tokens":20,"output_tokens":10,"input_token_details":{"cached_tokens":8,"audio_tokens":4},"output_token_details":{"audio_tokens":6}}}}`))
	}
}

// session opens one through the gateway.
func (h *house) session(path string, o *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	if o == nil {
		o = &websocket.DialOptions{}
	}
	o.HTTPClient = h.client
	return websocket.Dial(h.t.Context(), "ws://gateway"+path, o)
}

// opened opens one of chat with a key; "" = without.
func (h *house) opened(key string) *websocket.Conn {
	h.t.Helper()
	o := &websocket.DialOptions{}
	if key != "" {
		o.HTTPHeader = http.Header{"Authorization": {"Bearer " + key}}
	}
	s, _, err := h.session("/v1/realtime?model=chat", o)
	must.Do(h.t, err)
	s.SetReadLimit(2 << 20)
	return s
}

func TestRealtime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Backends[0].APIKey = "sk-up"
		c.Backends[0].Price = config.Price{Input: 1e6, Output: 2e6, AudioInput: 10e6, AudioOutput: 20e6}
		k := key("mobile", "sk-right")
		k.Limits = config.KeyLimits{TokensPerMinute: 6000, RequestsPerMinute: 60}
		c.Keys = []config.Key{k}
		engine := &talker{talk: answerer}
		h := open(t, c, map[string]http.Handler{"a": engine})
		h.gateway.usage = usage.New(false)
		ctx := t.Context()
		s, resp, err := h.session("/v1/realtime?model=chat&intent=x&key=sk-right", &websocket.DialOptions{
			Subprotocols: []string{"realtime", "openai-insecure-api-key.sk-right", "openai-beta.realtime-v1"}, CompressionMode: websocket.CompressionContextTakeover,
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.Subprotocol() != "realtime" || resp.Header.Get("Sec-Websocket-Extensions") != "" || resp.Header.Get("X-Request-Id") == "" || resp.Header.Get("X-Pacer-Backend") != "" {
			t.Errorf("the head was %v", resp.Header)
		}
		up := engine.heads[0]
		if engine.asked[0] != "/v1/realtime?intent=x&model=big" || up.Get("Authorization") != "Bearer sk-up" || up.Get("Sec-Websocket-Protocol") != "realtime, openai-beta.realtime-v1" || up.Get("Sec-Websocket-Extensions") != "" {
			t.Errorf("%s went up with %v", engine.asked[0], up)
		}
		s.SetReadLimit(1 << 20)
		for range 3 {
			must.Do(t, s.Write(ctx, websocket.MessageText, []byte(`{"type":"response.create"}`)))
			for range 2 {
				if _, text, err := s.Read(ctx); err != nil || !strings.Contains(string(text), `"type":"response.`) {
					t.Fatalf("%.40s %v", text, err)
				}
			}
		}
		if n := h.gateway.load.running.Load(); n != 1 {
			t.Errorf("%d requests are under way while a session runs, want 1", n)
		}
		if err := s.Close(websocket.StatusNormalClosure, "done"); err != nil {
			t.Errorf("closing: %v", err)
		}
		line := h.last()
		if line.Outcome != outcomeOK || line.Status != 101 || line.Tokens != 30 || line.Source != "usage" || line.Bytes < 60_000 || line.Backend != "a" {
			t.Errorf("log line %+v, want 30 tokens of three answers", line)
		}
		cost := 0.0
		for _, cell := range h.gateway.usage.Cells(0, math.MaxInt64) {
			cost += cell.Cost.USD()
		}
		if want := 3.0 * (16*1 + 4*10 + 4*2 + 6*20); cost != want {
			t.Errorf("it cost %v USD, want %v: sound has its own price", cost, want)
		}
		// 3 × 30 of 6000 were used, and some came back meanwhile.
		if left := h.gateway.setup.Load().tenants[0].limits.State(time.Now()); left.Tokens.Remaining != 5910 || left.Requests.Remaining != 59 {
			t.Errorf("%+v is left", left)
		}
		if strings.Contains(h.log.String(), "sk-right") {
			t.Error("the key is in the log")
		}
	})
}

// raw is an engine that sends what it has, and keeps what it got.
type raw struct {
	sends []byte
	got   chan []byte
}

func (e *raw) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	w.Header().Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	w.WriteHeader(101)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	go func() { _, _ = conn.Write(e.sends) }()
	got, _ := io.ReadAll(rw)
	e.got <- got
}

// A budget that is spent within a session ends it, and what it used is paid for once.
func TestABudgetEndsASession(t *testing.T) {
	for name, then := range map[string]config.Then{"refuse": {}, "spill": {Spill: "cheap"}, "warn": {Warn: true}} {
		bubble(t, name, func(t *testing.T) {
			engine := &talker{talk: answerer} // a dollar for each token, 30 for each answer
			h := onBudget(t, config.Price{Input: 1e6, Output: 1e6}, config.Budget{USD: 50, Per: "day", Then: then}, engine)
			s := h.opened("sk-right")
			answers, err := 0, error(nil)
			for answers < 5 {
				if err = s.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create"}`)); err != nil {
					break
				}
				for range 2 {
					if err == nil {
						_, _, err = s.Read(t.Context())
					}
				}
				if err != nil {
					break
				}
				answers++
				<-time.After(time.Second)
			}
			want, code := 2, websocket.StatusPolicyViolation
			if then.Warn {
				want, code = 5, -1
			}
			if _, _, late := s.Read(timeout(t)); err == nil {
				err = late
			}
			if answers != want || websocket.CloseStatus(err) != code {
				t.Errorf("%d answers, then %v; want %d and the code %d", answers, err, want, code)
			}
			_ = s.CloseNow()
			<-time.After(10 * time.Second)
			cells := h.gateway.usage.Cells(0, math.MaxInt64)
			n := int64(want)
			if len(cells) != 1 || cells[0].Requests != 1 || cells[0].Input != 20*n || cells[0].Output != 10*n || cells[0].Cached != 8*n || cells[0].Cost != usage.Dollars(30*float64(want)) {
				t.Errorf("booked %+v, want one request of %d answers", cells, want)
			}
			if engine.over() != 1 {
				t.Error("the engine's session goes on")
			}
		})
	}
}

// A session that begins where a spent budget sends it goes on: its budget says so.
func TestASpentBudgetSendsSessionsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &talker{talk: answerer}
		h := onBudget(t, config.Price{Input: 1e6, Output: 1e6}, config.Budget{USD: 50, Per: "day", Then: config.Then{Spill: "cheap"}}, engine)
		h.gateway.usage.Add(usage.Record{At: time.Now(), Of: usage.Of{Key: "mobile"}, Sums: usage.Sums{Cost: usage.Dollars(60)}})
		s := h.opened("sk-right")
		for i := range 4 {
			if err := s.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create"}`)); err != nil {
				t.Fatalf("after %d answers: %v", i, err)
			}
			for range 2 {
				if _, _, err := s.Read(t.Context()); err != nil {
					t.Fatalf("after %d answers: %v", i, err)
				}
			}
			<-time.After(time.Second)
		}
		_ = s.CloseNow()
		<-time.After(10 * time.Second)
		if engine.over() != 1 {
			t.Error("the engine's session goes on")
		}
	})
}

// timeout is a context that ends soon.
func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Every byte goes on as it came, in whatever pieces.
func TestASessionIsPassedOnByteForByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sends, asks bytes.Buffer
		for _, size := range []int{0, 1, 125, 126, 65535, 65536, 200_000} { // each form of a length
			for _, fin := range []byte{0x02, 0x80} { // two fragments, with a ping between
				sends.Write(frame(fin, size, nil))
				asks.Write(frame(fin, size, []byte{1, 2, 3, 4}))
				sends.Write(frame(0x89, 4, nil))
				asks.Write(frame(0x8A, 4, []byte{9, 8, 7, 6}))
			}
		}
		sends.Write([]byte{0x88, 2, 3, 0xE8})
		asks.Write([]byte{0x88, 0x82, 0, 0, 0, 0, 3, 0xE8})
		engine := &raw{sends: sends.Bytes(), got: make(chan []byte, 1)}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		talk := func(addr string) (heard, said []byte) {
			conn := must.Get(h.net.Dial(t.Context(), "tcp", addr))(t)
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET /v1/realtime?model=chat HTTP/1.1\r\nHost: gateway\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
				t.Fatalf("%v %v", resp, err)
			}
			go func() {
				for rest := asks.Bytes(); len(rest) > 0; {
					n := min(len(rest), 777)
					_, _ = conn.Write(rest[:n])
					rest = rest[n:]
				}
				if addr == "a:80" {
					<-time.After(time.Second)
					_ = conn.Close()
				}
			}()
			heard, _ = io.ReadAll(r)
			return heard, <-engine.got
		}
		heard, said := talk("gateway:80")
		directHeard, directSaid := talk("a:80")
		if !bytes.Equal(directHeard, sends.Bytes()) || !bytes.Equal(directSaid, asks.Bytes()) {
			t.Fatal("the engine itself does not talk as it should")
		}
		if !bytes.Equal(heard, directHeard) || !bytes.Equal(said, directSaid) {
			t.Errorf("the client heard %d bytes of %d, the engine %d of %d, or others", len(heard), len(directHeard), len(said), len(directSaid))
		}
	})
}

// frame is one with size bytes of payload.
func frame(head byte, size int, mask []byte) []byte {
	f := []byte{head}
	var bit byte
	if mask != nil {
		bit = 0x80
	}
	switch {
	case size < 126:
		f = append(f, bit|byte(size))
	case size < 65536:
		f = append(f, bit|126, byte(size>>8), byte(size))
	default:
		f = append(f, bit|127, 0, 0, 0, 0, byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
	}
	return append(append(f, mask...), bytes.Repeat([]byte{0x5A}, size)...)
}

func TestRealtimeMovesOnUntilASessionIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("down", "broken", "b")
		c.Backends[2].MaxConcurrency = 1
		c.Routes[0].OnInfeasible = []config.Step{{Shed: true}}
		engine := &talker{talk: answerer}
		broken := &script{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }}
		h := open(t, c, map[string]http.Handler{"broken": broken, "b": engine})
		s, resp, err := h.session("/v1/realtime?model=chat", nil)
		if err != nil || resp.Header.Get("X-Pacer-Backend") != "b" || broken.calls() != 1 {
			t.Fatalf("%v %v", resp, err)
		}
		// Its place is taken, as long as the session lasts.
		if _, resp, err := h.session("/v1/realtime?model=chat", nil); err == nil || resp == nil || resp.StatusCode < 429 {
			t.Errorf("beyond the cap: %v %v", resp, err)
		}
		_ = s.CloseNow() // without a word
		synctest.Wait()
		if engine.over() != 1 {
			t.Error("the engine's session goes on without its client")
		}
		if line := h.last(); line.Outcome != outcomeGone || line.Status != 101 {
			t.Errorf("log line %+v, want a client that left", line)
		}
		_ = h.opened("").Close(websocket.StatusNormalClosure, "")
	})
}

// Whatever ends a session tells the client why, between two frames.
func TestTheEndOfASession(t *testing.T) {
	for name, x := range map[string]struct {
		talk    func(ctx context.Context, c *websocket.Conn)
		do      func(h *house, s *websocket.Conn)
		code    websocket.StatusCode
		after   time.Duration
		outcome string
	}{
		"silence": {talk: answerer, code: websocket.StatusGoingAway, after: 5 * time.Minute, outcome: outcomeOK},
		"its time is over": {talk: func(ctx context.Context, c *websocket.Conn) {
			ctx = c.CloseRead(ctx)
			for ctx.Err() == nil {
				_ = c.Write(ctx, websocket.MessageText, []byte(`{"type":"x"}`))
				<-time.After(time.Second)
			}
		}, code: websocket.StatusGoingAway, after: time.Hour, outcome: outcomeOK},
		"a backend that breaks off": {talk: func(context.Context, *websocket.Conn) {}, code: websocket.StatusInternalError, outcome: outcomeCut},
		"a backend that closes":     {talk: func(_ context.Context, c *websocket.Conn) { _ = c.Close(4001, "expired") }, code: 4001, outcome: outcomeOK},
		"a message of the client that is too long": {talk: answerer, do: func(h *house, s *websocket.Conn) {
			_ = s.Write(h.t.Context(), websocket.MessageBinary, make([]byte, 1<<20+1))
		}, code: websocket.StatusMessageTooBig, outcome: outcomeGone},
		"a message of the backend that is too long": {talk: func(ctx context.Context, c *websocket.Conn) {
			_ = c.Write(ctx, websocket.MessageBinary, make([]byte, 1<<20+1))
			_, _, _ = c.Read(ctx)
		}, code: websocket.StatusGoingAway, outcome: outcomeCut},
		"the end of the gateway": {talk: answerer, do: func(h *house, _ *websocket.Conn) { h.gateway.End() }, code: websocket.StatusGoingAway, outcome: outcomeCut},
	} {
		bubble(t, name, func(t *testing.T) {
			c := settings("a")
			c.Realtime.Message = 1 << 20
			engine := &talker{talk: x.talk}
			h := open(t, c, map[string]http.Handler{"a": engine})
			s := h.opened("")
			start := time.Now()
			if x.do != nil {
				go x.do(h, s)
			}
			var err error
			for err == nil {
				_, _, err = s.Read(t.Context())
			}
			if got := websocket.CloseStatus(err); got != x.code || time.Since(start).Truncate(10*time.Second) != x.after {
				t.Errorf("ended with %d after %v (%v), want %d after %v", got, time.Since(start), err, x.code, x.after)
			}
			_ = s.CloseNow()
			<-time.After(10 * time.Second)
			if engine.over() != 1 {
				t.Error("the engine's session goes on")
			}
			if line := h.last(); line.Outcome != x.outcome || line.Status != 101 {
				t.Errorf("log line %+v, want %s", line, x.outcome)
			}
		})
	}
}

func TestRealtimeRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Keys = []config.Key{key("mobile", "sk-right")}
		page := echo("text/html", "<html>")
		h := open(t, c, map[string]http.Handler{"a": page})
		right := http.Header{"Authorization": {"Bearer sk-right"}}
		for path, x := range map[string]struct {
			header http.Header
			status int
		}{
			"/v1/realtime?model=chat":   {nil, 401},
			"/v1/realtime?model=nobody": {right, 404},
			"/v1/realtime":              {right, 400},
			"/v1/realtime?model=chat&x": {right, 502}, // the backend answers with a page
		} {
			_, resp, err := h.session(path, &websocket.DialOptions{HTTPHeader: x.header})
			if err == nil || resp == nil || resp.StatusCode != x.status {
				t.Errorf("%s: %v %v, want %d", path, resp, err, x.status)
			}
		}
		if r := h.do(h.request("GET", "/v1/realtime?model=chat", "", "Authorization", "Bearer sk-right")); r.status != 426 || r.header.Get("Upgrade") != "websocket" {
			t.Errorf("no handshake: %d %v", r.status, r.header)
		}
		// As Azure's clients ask.
		page.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			say(w, `{"error":{"message":"not for you"}}`)
		}
		_, resp, err := h.session("/openai/realtime?api-version=2025-04-01-preview&deployment=chat", &websocket.DialOptions{HTTPHeader: right})
		if err == nil || resp == nil || resp.StatusCode != 400 || page.paths[len(page.paths)-1] != "/v1/realtime?model=big" {
			t.Errorf("%v %v; the backend got %q", resp, err, page.paths)
		}
		// In browsers their key is in the query, and stays here.
		for query, status := range map[string]int{"api-key=sk-right": 400, "Authorization=Bearer%20sk-right": 400, "api-key=sk-wrong": 401, "api-key=": 401} {
			n := page.calls()
			_, resp, err := h.session("/openai/realtime?api-version=2025-04-01-preview&deployment=chat&"+query, nil)
			if err == nil || resp == nil || resp.StatusCode != status || status == 400 && (page.calls() != n+1 || page.paths[n] != "/v1/realtime?model=big") {
				t.Errorf("%s: %v %v; the backend got %q", query, resp, err, page.paths[n:])
			}
		}
		if r := h.post("/v1/embeddings?api-key=sk-right", `{"model":"chat"}`); r.status != 401 {
			t.Errorf("a key in the query of what is no session: %d", r.status)
		}
	})
}
