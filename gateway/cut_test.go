package gateway

import (
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/usage"
)

// However a stream breaks off, the client hears of it twice: by an error event
// and by the connection. It is never ended as if it were whole.
func TestAStreamThatBreaksOff(t *testing.T) {
	tokens := func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		for range 10 {
			pause(r, 10*time.Millisecond)
			say(w, delta)
		}
	}
	for name, c := range map[string]struct {
		answer  func(http.ResponseWriter, *http.Request)
		between string        // the events and the error event
		took    time.Duration // after the last token
	}{
		"reset":               {func(w http.ResponseWriter, r *http.Request) { tokens(w, r); cutOff(w) }, "", 0},
		"ends without [DONE]": {tokens, "", 0},
		"in the middle of an event": {func(w http.ResponseWriter, r *http.Request) {
			tokens(w, r)
			say(w, delta[:40])
			cutOff(w)
		}, "", 0},
		"before its blank line": {func(w http.ResponseWriter, r *http.Request) {
			tokens(w, r)
			say(w, strings.TrimSuffix(delta, "\n"))
			cutOff(w)
		}, delta + "\n", 0},
		"stalls": {func(w http.ResponseWriter, r *http.Request) { tokens(w, r); pause(r, time.Hour) }, "", time.Minute},
		"garbage in the middle, no end": {func(w http.ResponseWriter, r *http.Request) {
			tokens(w, r)
			say(w, "data: {{{\n\n")
		}, "data: {{{\n\n", 0},
	} {
		bubble(t, name, func(t *testing.T) {
			engine := &script{answer: c.answer}
			h := open(t, settings("a"), map[string]http.Handler{"a": engine})
			start := time.Now()
			r := h.post(chat, streamBody)
			if !isCut(r.err) {
				t.Errorf("the client read to %v, want an unexpected end", r.err)
			}
			want := strings.Repeat(delta, 10) + c.between
			rest, ok := strings.CutPrefix(r.body, want)
			if !ok {
				t.Fatalf("the client got %q", r.body)
			}
			if !strings.HasPrefix(rest, "data: {\"error\":") || !strings.HasSuffix(rest, "\n\n") || strings.Contains(rest, "[DONE]") {
				t.Errorf("after the tokens came %q, want an error event and nothing else", rest)
			}
			if words := map[bool]string{false: "broke off the answer", true: "fell silent within the answer"}[c.took > 0]; !strings.Contains(rest, words) {
				t.Errorf("the error event is %q, want that the backend %s", rest, words)
			}
			if got, want := time.Since(start), 100*time.Millisecond+c.took; got < want || got > want+time.Second {
				t.Errorf("broken off after %v, want %v", got, want)
			}
			if line := h.last(); line.Outcome != outcomeCut || line.Error == "" {
				t.Errorf("log line %+v, want outcome cut", line)
			}
			if s := h.metrics.Route("chat"); s.Failed != 1 {
				t.Errorf("route counts %+v, want one failed", s)
			}
			if c.took > 0 && engine.left() != 1 {
				t.Error("the backend was not told to stop")
			}
		})
	}
}

// Each stream begins well, which is no reason to send the next one there. Clients
// that leave in between change nothing.
func TestABackendThatCutsEveryStreamIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			say(w, delta)
			if pause(r, time.Second) {
				cutOff(w)
			}
		}}
		h := open(t, settings("a", "b"), map[string]http.Handler{"a": engine, "b": asker()})
		for i := range 5 {
			if r := h.post(chat, streamBody); !isCut(r.err) {
				t.Fatalf("request %d read to %v, want a cut", i+1, r.err)
			}
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			if r := h.do(h.request("POST", chat, streamBody).WithContext(ctx)); i < 4 && r.err == nil {
				t.Fatalf("the client that left got %d %q", r.status, r.body)
			}
			leave()
			synctest.Wait()
		}
		if r := h.post(chat, streamBody); r.err != nil || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("after five cuts in a row the answer is %q's (%v), want b's", r.header.Get("X-Pacer-Backend"), r.err)
		}
	})
}

// A document that is kept is there as a whole before anything of it goes out: where its
// backend breaks it off, the client hears of it in words. What is not kept, or is larger,
// ends with its connection.
func TestADocumentThatBreaksOff(t *testing.T) {
	const part, whole = `{"id":"c1","choices":[`, `{"id":"c1","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	short := func(text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9000000")
			say(w, text[:1])
			pause(r, time.Millisecond)
			say(w, text[1:])
		}
	}
	noEnd := func(text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { say(w, text); cutOff(w) }
	}
	for name, c := range map[string]struct {
		path   string
		answer func(http.ResponseWriter, *http.Request)
		cut    bool
	}{
		"short of its length":       {chat, short(part), false},
		"whole JSON, short of it":   {chat, short(whole), false},
		"responses":                 {"/v1/responses", short(whole), false},
		"whole JSON, no last chunk": {chat, noEnd(whole), false},
		"ends in the middle":        {chat, func(w http.ResponseWriter, r *http.Request) { say(w, part); pause(r, time.Millisecond) }, false},
		"stalls":                    {chat, func(w http.ResponseWriter, r *http.Request) { say(w, part); pause(r, time.Hour) }, false},
		"4 MB":                      {chat, short(part + strings.Repeat("\"x\",", 1<<20-100)), false},
		"5 MB":                      {chat, short(part + strings.Repeat("\"x\",", 5<<18)), true},
		"white space first":         {chat, short("\n" + part), true},
		"compressed": {chat, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			short(part)(w, r)
		}, true},
		"vectors": {"/v1/embeddings", short(whole), true},
		"sound":   {"/v1/audio/speech", short("RIFF"), true},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				c.answer(w, r)
			}}})
			r := h.post(c.path, `{"model":"chat"}`)
			outcome := outcomeUpstream
			if c.cut {
				outcome = outcomeCut
			}
			switch {
			case c.cut && (!isCut(r.err) || strings.Contains(r.body, "error")):
				t.Errorf("the client got %d bytes to %v, want an unexpected end and nothing added", len(r.body), r.err)
			case !c.cut && (r.err != nil || r.status != http.StatusBadGateway || !strings.HasPrefix(r.body, `{"error":{"message":`)):
				t.Errorf("the client got %d %.100q (%v), want 502 in words", r.status, r.body, r.err)
			}
			if line := h.last(); line.Outcome != outcome {
				t.Errorf("outcome %q, want %q", line.Outcome, outcome)
			}
			h.idle()
		})
	}
}

// A held document goes out in pieces, so that a client that takes longer for all of it than
// one write may take still gets it.
func TestAHeldDocumentReachesASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := `{"id":"c1","choices":[{"index":0,"message":{"content":"` + strings.Repeat("x", 3<<20) + `"}}]}`
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			say(w, doc[:100])
			pause(r, time.Millisecond)
			say(w, doc[100:])
		}}})
		resp, err := h.client.Do(h.request(http.MethodPost, chat, `{"model":"chat"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		n, piece := 0, make([]byte, 32<<10)
		for err == nil {
			var m int
			m, err = io.ReadFull(resp.Body, piece)
			n += m
			<-time.After(500 * time.Millisecond) // 64 KiB/s
		}
		if n != len(doc) {
			t.Errorf("a client that reads 64 KiB/s got %d of %d bytes (%v): %+v", n, len(doc), err, h.last())
		}
	})
}

// A held document that is garbage counts no more while another backend is asked.
func TestHeldGarbageIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 2 << 20
		h := open(t, settings("a", "b"), map[string]http.Handler{
			"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				say(w, `{"x":"`)
				pause(r, time.Millisecond)
				say(w, strings.Repeat("x", size))
			}},
			"b": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				pause(r, 2*time.Second)
				say(w, `{"id":"c1","choices":[]}`)
			}},
		})
		got := make(chan reply, 1)
		go func() { got <- h.post(chat, `{"model":"chat"}`) }()
		<-time.After(time.Second)
		if held := h.gateway.buffered.used.Load(); held > size/4 {
			t.Errorf("%d bytes are counted of a document that is gone", held)
		}
		if r := <-got; r.status != http.StatusOK || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("the client got %d of %q, want the document of b", r.status, r.header.Get("X-Pacer-Backend"))
		}
	})
}

// A document that broke off is asked for elsewhere, by the rules for what fails before its
// first byte, and what the dead backend gave of it is counted nowhere.
func TestABrokenDocumentIsAskedForElsewhere(t *testing.T) {
	const whole = `{"id":"c1","choices":[{"index":0,"message":{"content":"hello"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a", "b")
		h := open(t, conf, map[string]http.Handler{
			"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				say(w, whole)
				cutOff(w)
			}},
			"b": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
				say(w, whole[:40])
				say(w, whole[40:])
			}},
		})
		h.gateway.usage = usage.New(false)
		r := h.post(chat, `{"model":"chat"}`)
		if r.err != nil || r.status != 200 || r.body != whole || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("the client got %d %q of %q (%v), want the other one's document", r.status, r.body, r.header.Get("X-Pacer-Backend"), r.err)
		}
		h.idle()
		var input, output int64
		for _, cell := range h.gateway.usage.Cells(0, math.MaxInt64) {
			input += cell.Input
			output += cell.Output
		}
		if input != 7 || output != 2 {
			t.Errorf("%d and %d tokens were counted, want 7 and 2", input, output)
		}
	})
}

// An engine may announce itself long before it has a place for the request:
// until the first token the longer of the two times counts.
func TestTheFirstTokenMayTakeAsLongAsTheFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			say(w, roleOnly)
			pause(r, 100*time.Second) // silence is 60 s, first byte 120 s
			say(w, delta+lastDelta+doneEvent)
		}}})
		if r := h.post(chat, streamBody); r.err != nil {
			t.Errorf("broken off with %v after %q", r.err, r.body)
		}
	})
}

// Comments say that somebody is there, so they may fill more than a silence, and
// not more than a first byte may take: an engine that hangs behind a server which
// pings is found out. An event begins the time anew, also one that comes in pieces.
func TestHowLongPingsKeepAStreamOpen(t *testing.T) {
	const each, limit = 50 * time.Second, 2 * time.Minute // silence is 60 s, first byte 120 s
	pings := func(n int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			for range n {
				if !pause(r, each) {
					return
				}
				say(w, ": ping\n\n")
			}
		}
	}
	text := func(s string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { say(w, s) }
	}
	for name, c := range map[string]struct {
		play []func(http.ResponseWriter, *http.Request)
		took time.Duration // 0 = to a good end
	}{
		"few":                         {[]func(http.ResponseWriter, *http.Request){text(delta), pings(2), text(delta + doneEvent)}, 0},
		"few, again and again":        {[]func(http.ResponseWriter, *http.Request){pings(2), text(delta), pings(2), text(delta), pings(2), text(delta + doneEvent)}, 0},
		"before the first token":      {[]func(http.ResponseWriter, *http.Request){text(": ping\n\n"), pings(100)}, limit},
		"after the role":              {[]func(http.ResponseWriter, *http.Request){pings(1), text(roleOnly), pings(100)}, each + limit},
		"after the first token":       {[]func(http.ResponseWriter, *http.Request){text(delta), pings(100)}, limit},
		"between pieces of an event":  {[]func(http.ResponseWriter, *http.Request){text(delta), pings(2), text(delta[:20]), pings(1), text(delta[20:] + doneEvent)}, 0},
		"blank lines":                 {[]func(http.ResponseWriter, *http.Request){text("\n"), pings(1), text("\n"), pings(1), text("\r\n\r\n"), pings(100)}, limit},
		"data that is empty moves on": {[]func(http.ResponseWriter, *http.Request){text(delta), pings(2), text("data:\n\n"), pings(2), text(delta + doneEvent)}, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
				eventStream(w)
				for _, act := range c.play {
					act(w, r)
				}
			}}
			h := open(t, settings("a"), map[string]http.Handler{"a": engine})
			start := time.Now()
			r := h.post(chat, streamBody)
			if took := time.Since(start); c.took == 0 && r.err != nil || c.took > 0 && (!isCut(r.err) || took < c.took || took > c.took+time.Second) {
				t.Errorf("ended with %v after %v, want %v (0 = a good end)", r.err, took, c.took)
			}
			if line := h.last(); (line.Outcome == outcomeOK) != (c.took == 0) {
				t.Errorf("log line %+v", line)
			}
		})
	}
}

func TestTheWholeRequestHasATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Timeouts.Total = 10 * time.Second
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(1000, time.Second)}})
		start := time.Now()
		r := h.post(chat, streamBody)
		if got := time.Since(start); !isCut(r.err) || got != 10*time.Second {
			t.Errorf("ended with %v after %v, want a broken stream after 10s", r.err, got)
		}
		if r := h.post(chat, streamBody, "x-pacer-class", "batch"); !isCut(r.err) {
			t.Errorf("the backend was taken out of service by a limit of ours: %d %s", r.status, r.body)
		}
	})
}

func TestABackendThatLingersAfterTheEndIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			answering(w, "")
			pause(r, time.Hour)
		}}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		start := time.Now()
		r := h.post(chat, streamBody)
		if got := time.Since(start); r.err != nil || r.body != answered+doneEvent || got != linger {
			t.Errorf("got %q (%v) after %v, want the whole stream after %v", r.body, r.err, got, linger)
		}
		if line := h.last(); line.Outcome != outcomeOK {
			t.Errorf("outcome %q, want ok", line.Outcome)
		}
	})
}

func TestAnErrorWithinTheStreamIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const event = `data: {"error":{"message":"CUDA error","type":"server_error","param":null,"code":500}}` + "\n\n"
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: flows(delta+event+doneEvent, 0)}})
		r := h.post(chat, streamBody)
		if r.err != nil || r.body != delta+event+doneEvent {
			t.Errorf("got %q (%v), want it unchanged", r.body, r.err)
		}
		if line := h.last(); line.Outcome != outcomeUpstream || !strings.Contains(line.Error, "within its answer") || strings.Contains(line.Error, "CUDA") {
			t.Errorf("outcome %q for %q, want upstream_error with what it is, without the words", line.Outcome, line.Error)
		}
	})
}

// A backend that fails within a part of its answers says so as its last error, though others
// begin well meanwhile: for a minute, and without the words. Who refuses everything says more.
func TestAnErrorWithinAnswersIsTheLastError(t *testing.T) {
	const event = `data: {"error":{"message":"CUDA error","type":"server_error","param":null,"code":500}}` + "\n\n"
	cut := func(w http.ResponseWriter, r *http.Request) {
		flows(delta, 0)(w, r)
		cutOff(w)
	}
	errorCut := func(w http.ResponseWriter, r *http.Request) {
		flows(delta+event, 0)(w, r)
		cutOff(w)
	}
	for name, c := range map[string]struct {
		fails func(http.ResponseWriter, *http.Request)
		want  string
	}{
		"an error in the stream": {flows(delta+event+doneEvent, 0), "the backend reported an error within its answer"},
		"a stream is cut":        {cut, "the backend broke an answer off"},
		"an error, and a cut":    {errorCut, "the backend reported an error within its answer"},
	} {
		bubble(t, name, func(t *testing.T) {
			var asked atomic.Int64
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				if n := asked.Add(1); n%3 == 0 && n < 12 {
					c.fails(w, r)
					return
				}
				flows(delta+doneEvent, 0)(w, r)
			}}})
			var since time.Time
			for n := range 14 {
				<-time.After(3 * time.Second)
				h.post(chat, streamBody)
				got := h.gateway.LastErrors()[bigAtA]
				switch {
				case n < 2 && got != LastError{}:
					t.Errorf("nothing failed, and the last error is %+v", got)
				case n == 2:
					since = got.Since
				}
				if n >= 2 && (got.Message != c.want || !got.Within || got.Count != min((n+1)/3, 3) || !got.Since.Equal(since)) {
					t.Errorf("after %d requests the last error is %+v, want %q", n+1, got, c.want)
				}
			}
			<-time.After(keptWithin)
			if got, some := h.gateway.LastErrors()[bigAtA]; some {
				t.Errorf("a minute later it is %+v still", got)
			}
		})
	}
	var e lastError
	now := time.Now()
	e.note(now, 401, "wrong key", false)
	e.note(now, 0, "within", true)
	if got := e.last.Load(); got.Within || got.Count != 1 {
		t.Errorf("it refuses everything, and the last error is %+v", got)
	}
	e.clear()
	e.note(now, 0, "within", true)
	e.note(now, 401, "wrong key", false)
	if got := e.last.Load(); got.Within || got.Count != 1 || got.Status != 401 {
		t.Errorf("it refuses now, and the last error is %+v", got)
	}
}

// llama.cpp and TGI end a stream in which they reported an error without its last
// event: the client gets that, and no second error from us. It counts against the
// backend like a cut. A connection that breaks behind the error is a cut.
func TestAnErrorMayEndAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const event = `data: {"error":{"code":500,"message":"Compute error.","type":"server_error"}}` + "\n\n"
		ends := func(http.ResponseWriter) {}
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			eventStream(w)
			say(w, delta+event)
			ends(w)
		}}})
		for i := range 4 {
			if r := h.post(chat, streamBody); r.err != nil || r.body != delta+event {
				t.Errorf("request %d got %d %q (%v), want what the backend said and no more", i+1, r.status, r.body, r.err)
			}
			if line := h.last(); line.Outcome != outcomeUpstream {
				t.Errorf("outcome %q, want upstream_error", line.Outcome)
			}
		}
		ends = cutOff
		if r := h.post(chat, streamBody); !isCut(r.err) || h.last().Outcome != outcomeCut {
			t.Errorf("got %q to %v, outcome %q, want a cut", r.body, r.err, h.last().Outcome)
		}
		if r := h.post(chat, streamBody); r.status != 503 {
			t.Errorf("got %d after five failures, want 503", r.status)
		}
	})
}

// Compressed answers were not asked for. They are passed on as they are, which is
// said; and since nothing can be taken out of them, no usage is asked for.
func TestACompressedAnswerIsPassedOnUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			eventStream(w)
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "\x0b\x02\x80")
		}}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		warnings := func() int { return strings.Count(h.log.String(), "compresses its answers") }
		for i := range 3 {
			r := h.post(chat, streamBody)
			if r.status != 200 || r.err != nil || r.body != "\x0b\x02\x80" || r.header.Get("Content-Encoding") != "br" {
				t.Errorf("got %d %q (%v)", r.status, r.body, r.err)
			}
			if asked := strings.Contains(engine.bodies[i], "include_usage"); asked != (i == 0) {
				t.Errorf("request %d asks for usage: %v", i, asked)
			}
		}
		if line := h.last(); line.Outcome != outcomeOK || line.Unread != "br" || line.Tokens != 0 {
			t.Errorf("log line %+v, want ok, unread, and no tokens", line)
		}
		if got := warnings(); got != 1 {
			t.Errorf("%d warnings in the first minute, want 1", got)
		}
		<-time.After(time.Minute)
		h.post(chat, `{"model":"chat"}`)
		if got := warnings(); got != 2 || engine.heads[0].Get("Accept-Encoding") != "identity" {
			t.Errorf("%d warnings a minute later, want 2; Accept-Encoding %q", got, engine.heads[0].Get("Accept-Encoding"))
		}
	})
}

// An answer that is not streamed is silent until its last token: it may take as
// long as SDKs wait for it, and a backend that hangs is left then; at once after
// first_byte where nothing is generated.
func TestADocumentMayTakeItsTime(t *testing.T) {
	const document = `{"id":"c1","choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":7,"completion_tokens":16000}}`
	for _, c := range []struct {
		path    string
		takes   time.Duration
		backend string
		after   time.Duration
	}{
		{chat, 3 * time.Minute, "a", 3 * time.Minute},
		{chat, 9 * time.Minute, "a", 9 * time.Minute},
		{chat, time.Hour, "b", 10*time.Minute + time.Second},
		{"/v1/images/generations", 9 * time.Minute, "a", 9 * time.Minute},
		{"/v1/embeddings", time.Minute, "a", time.Minute},
		{"/v1/embeddings", time.Hour, "b", 2*time.Minute + time.Second},
		{"/v1/rerank", time.Hour, "b", 2*time.Minute + time.Second},
		{"/v1/moderations", time.Hour, "b", 2*time.Minute + time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			after := func(d time.Duration) *script {
				return &script{answer: func(w http.ResponseWriter, r *http.Request) {
					if pause(r, d) {
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, document)
					}
				}}
			}
			conf := settings("a", "b")
			conf.Routes[0].Prefer = "order"
			a := after(c.takes)
			h := open(t, conf, map[string]http.Handler{"a": a, "b": after(time.Second)})
			start := time.Now()
			r := h.post(c.path, `{"model":"chat"}`)
			if got := time.Since(start); got != c.after {
				t.Errorf("%s, which takes %v: answered after %v, want %v", c.path, c.takes, got, c.after)
			}
			if r.status != 200 || r.body != document || r.header.Get("X-Pacer-Backend") != c.backend || a.calls() != 1 {
				t.Errorf("%v: got %d %q of %s; a was asked %d times", c.takes, r.status, r.body, r.header.Get("X-Pacer-Backend"), a.calls())
			}
		})
	}
}

// A document that a hung backend owes is given up as its probe long before it is
// given up itself: whoever comes when the backend is well again is served.
func TestAProbeThatHangsKeepsNobodyOutForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var well atomic.Bool
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			if well.Load() || !pause(r, time.Hour) {
				talk(3, 0)(w, r)
			}
		}}})
		var running sync.WaitGroup
		for range 5 { // they open the breaker
			running.Go(func() { h.post(chat, streamBody) })
		}
		running.Wait()
		<-time.After(6 * time.Second)
		start := time.Now()
		running.Go(func() { h.post(chat, `{"model":"chat"}`) })
		<-time.After(time.Second)
		well.Store(true)
		for h.post(chat, streamBody).status != 200 {
			<-time.After(time.Second)
		}
		if got := time.Since(start); got < 10*time.Second || got > 4*time.Minute {
			t.Errorf("the next one was served %v after the probe went up, want at most 4 minutes", got)
		}
		running.Wait()
	})
}
