package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
)

// answerRaw is a backend that takes over the connection and writes raw.
func answerRaw(raw string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, raw)
	}
}

// A document that is none, and is there at once, never looks like an answer.
func TestADocumentOfGarbageIsAnError(t *testing.T) {
	for name, body := range map[string]string{
		"ends too early": `{"id":"c1","choices":[`,
		"blank":          "  \n ",
		"two of them":    `{"id":"c1"}{"id":"c2"}`,
	} {
		for kind, request := range map[string]string{"document": `{"model":"chat"}`, "stream": streamBody} {
			bubble(t, name+"/"+kind, func(t *testing.T) {
				h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Content-Length", fmt.Sprint(len(body)))
					_, _ = io.WriteString(w, body)
				}}})
				r := h.post(chat, request)
				if code := r.code(t); r.status != 502 || code != "upstream_failed" {
					t.Errorf("got %d %s, want 502 upstream_failed", r.status, code)
				}
				if line := h.last(); line.Outcome != outcomeUpstream {
					t.Errorf("outcome %q, want upstream_error", line.Outcome)
				}
			})
		}
	}
}

// A stream that was asked for is one, whatever its head says, also when its first
// read is a piece of a word; the head goes on as it is.
func TestAStreamWithoutItsContentType(t *testing.T) {
	for _, kind := range []string{"", "text/plain; charset=utf-8", "application/octet-stream", "application/json"} {
		for name, begin := range map[string]string{"data": "", "comment": ": ping\n\n", "blank lines": "\r\n\r\n", "mark": "\xEF\xBB\xBF", "event": "event: message\n", "id": "id: 7\n", "retry": "retry: 5\n\n"} {
			bubble(t, kind+"/"+name, func(t *testing.T) {
				events := begin + delta + delta + lastDelta
				h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
					w.Header()["Content-Type"] = nil
					if kind != "" {
						w.Header().Set("Content-Type", kind)
					}
					say(w, events[:len(begin)+2])
					pause(r, time.Second)
					say(w, events[len(begin)+2:]+usageEvent(7, 2)+doneEvent)
				}}})
				r := h.post(chat, streamBody)
				if r.status != 200 || r.err != nil || r.body != events+doneEvent || r.header.Get("Content-Type") != kind {
					t.Errorf("got %d, %q, %q (%v), want the stream as it is", r.status, r.header.Get("Content-Type"), r.body, r.err)
				}
				if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 2 || line.Source != "usage" || line.TTFTms == 0 {
					t.Errorf("log line %+v, want ok and 2 tokens by usage", line)
				}
			})
		}
	}
}

// An error whose body does not come is an error: the client does not wait for it
// as for the answer that it asked for, which may take ten minutes.
func TestAnErrorWhoseWordsDoNotCome(t *testing.T) {
	for status, want := range map[int]int{400: 400, 401: 502, 429: 429, 500: 500, 503: 503} {
		for _, begin := range []string{"", `{"err`, `{"error":{"message":"No.`} {
			bubble(t, fmt.Sprintf("%d %s", status, begin), func(t *testing.T) {
				stalls := &script{answer: func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(status)
					say(w, begin)
					pause(r, time.Hour)
				}}
				h := open(t, settings("a"), map[string]http.Handler{"a": stalls})
				begun := time.Now()
				r := h.post(chat, `{"model":"chat"}`)
				if r.status != want || r.code(t) == "" || r.err != nil {
					t.Errorf("got %d %s (%v), want %d and why", r.status, r.body, r.err, want)
				}
				if took := time.Since(begun); took > time.Minute {
					t.Errorf("after %v, want timeouts.silence", took)
				}
				h.idle()

				h = open(t, settings("a", "b"), map[string]http.Handler{"a": stalls, "b": &script{answer: talk(2, time.Millisecond)}})
				if r := h.post(chat, streamBody); status != 400 && r.status != 200 {
					t.Errorf("beside a good one: got %d %s, want 200", r.status, r.body)
				}
			})
		}
	}
}

// An answer that is neither what was asked for nor what may come instead is
// named.
func TestAnAnswerOfTheWrongSort(t *testing.T) {
	for _, c := range []struct{ request, kind, answer, message string }{
		{streamBody, "text/plain", "error: no", "neither a stream of events nor JSON"},
		{streamBody, "text/html", "<html>", "neither a stream of events nor JSON"},
		{streamBody, "application/json", "{", "something that is not JSON"},
		{`{"model":"chat"}`, "text/plain", "word", "something that is not JSON"},
		{`{"model":"chat"}`, "text/event-stream", delta + doneEvent, "a stream of events that was not asked for"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.answer)
			}}})
			if r := h.post(chat, c.request); r.status != 502 || !strings.Contains(r.body, "The backend answered with "+c.message+".") {
				t.Errorf("%s of %s: got %d %s, want %q", c.answer, c.kind, r.status, r.body, c.message)
			}
		})
	}
}

// A page, or a broken document, is no answer to who asks for vectors: another
// backend is asked. Vectors that were asked for as bytes are no JSON, and go on.
func TestVectorsAreNoPage(t *testing.T) {
	const vectors = `{"object":"list","data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`
	for name, c := range map[string]struct {
		path, kind, answer string
		good               bool
	}{
		"a page":            {"/v1/embeddings", "text/html; charset=utf-8", "<html>It works!</html>", false},
		"a page for scores": {"/v1/rerank", "text/html", "<html>", false},
		"a page for images": {"/v1/images/generations", "text/html", "<html>", false},
		"a page in JSON":    {"/v1/embeddings", "application/json", "<html>", false},
		"ends too early":    {"/v1/embeddings", "application/json", `{"data":[{"embedding":[0.5`, false},
		"a list":            {"/v1/rerank", "application/json", `[{"index":0,"score":0.5}]`, true},
		"bytes":             {"/v1/embeddings", "application/octet-stream", "\x00\x3c\x80", true},
		"without a type":    {"/v1/embeddings", "", "\x00\x3c\x80", true},
		"sound":             {"/v1/audio/speech", "audio/mpeg", "\xff\xfb", true},
		"words":             {"/v1/audio/transcriptions", "text/plain", "hello", true},
		"vectors as text":   {"/v1/embeddings", "text/plain", vectors, true},
		"vectors":           {"/v1/embeddings", "application/json", vectors, true},
	} {
		bubble(t, name, func(t *testing.T) {
			first := &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil
				if c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				_, _ = io.WriteString(w, c.answer)
			}}
			conf := settings("a", "b")
			conf.Routes[0].Prefer = "order"
			h := open(t, conf, map[string]http.Handler{"a": first, "b": &script{answer: states(200, vectors)}})
			want := map[bool]string{true: c.answer, false: vectors}[c.good]
			if r := h.post(c.path, `{"model":"chat","input":"x"}`); r.status != 200 || r.body != want || first.calls() != 1 {
				t.Errorf("got %d %q after %d calls of the first, want %q", r.status, r.body, first.calls(), want)
			}
			if line := h.last(); (line.Backend == "a") != c.good {
				t.Errorf("served by %s", line.Backend)
			}

			h = open(t, settings("a"), map[string]http.Handler{"a": first})
			if r := h.post(c.path, `{"model":"chat","input":"x"}`); !c.good && (r.status != 502 || !strings.Contains(r.body, "something that is not JSON")) {
				t.Errorf("alone: got %d %s, want 502", r.status, r.body)
			}
		})
	}
}

// What a backend does not say of its answer is not guessed from the body.
func TestNoContentTypeIsInvented(t *testing.T) {
	for _, body := range []string{`{"choices":[]}`, `{"id":"` + strings.Repeat("x", 3*relayBuffer) + `","choices":[]}`} {
		synctest.Test(t, func(t *testing.T) {
			raw := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: answerRaw(raw)}})
			r := h.post(chat, `{"model":"chat"}`)
			if got, there := r.header["Content-Type"]; r.status != 200 || r.body != body || there {
				t.Errorf("got %d, Content-Type %q, %d bytes, want the answer without a Content-Type", r.status, got, len(r.body))
			}
		})
	}
}

// A document that cannot be checked before it goes out promises no length: a
// client that got as many bytes would take it for whole.
func TestADocumentOfGarbageThatIsNotHeldIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := strings.Repeat(" ", relayBuffer) + `{"id":"` + strings.Repeat("x", 3*relayBuffer) + `"`
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = io.WriteString(w, body)
		}}})
		if r := h.post(chat, `{"model":"chat"}`); !isCut(r.err) {
			t.Errorf("got %d and read to %v, want an unexpected end", r.status, r.err)
		}
		if line := h.last(); line.Outcome != outcomeCut {
			t.Errorf("outcome %q, want cut", line.Outcome)
		}
	})
}

func TestAStatusThatAnswersNothing(t *testing.T) {
	for name, raw := range map[string]string{
		"101": "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"204": "HTTP/1.1 204 No Content\r\n\r\n",
		"205": "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
		"0":   "HTTP/1.1 000 None\r\nContent-Length: 2\r\n\r\n{}",
		"99":  "HTTP/1.1 099 None\r\nContent-Length: 2\r\n\r\n{}",
		"600": "HTTP/1.1 600 None\r\nContent-Length: 2\r\n\r\n{}",
		"999": "HTTP/1.1 999 None\r\nContent-Length: 2\r\n\r\n{}",
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: answerRaw(raw)}})
			r := h.post(chat, streamBody)
			if code := r.code(t); r.status != 502 || code != "upstream_failed" {
				t.Errorf("got %d %s, want 502 upstream_failed", r.status, code)
			}
			if strings.Contains(h.log.String(), "panic") {
				t.Error("a panic is in the log")
			}
		})
	}
}

// An error answer that SDKs cannot read becomes one that they can, with the
// backend's own status.
func TestAnErrorThatIsNoJSON(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		kind, body string
		message    string // "" = passed on
		outcome    string
	}{
		"a page":               {500, "text/html", "<html><title>oops</title></html>", "The backend answered 500: oops", outcomeUpstream},
		"a page, client error": {413, "text/html", "<html>too <b>much</b></html>", "The backend answered 413: too much", outcomeRejected},
		"XML":                  {400, "application/xml", "<?xml version='1.0'?><Error><Code>Bad</Code></Error>", "The backend answered 400: Bad", outcomeRejected},
		"nothing":              {429, "", "", "The backend answered 429 and did not say why.", outcomeUpstream},
		"plain words":          {422, "text/plain; charset=utf-8", "Failed to deserialize:\n  missing field `messages`\n", "The backend answered 422: Failed to deserialize: missing field `messages`", outcomeRejected},
		"no words":             {400, "text/plain", "\xff\xfe\x00", "The backend answered 400 and did not say why.", outcomeRejected},
		"its key, in words":    {400, "text/plain", "bad key sk-of-the-backend", "The backend answered 400: bad key *****************", outcomeRejected},
		"its key, in JSON":     {400, "application/json", `{"error":{"message":"bad key sk-of-the-backend","type":"x","param":null,"code":"y"}}`, "bad key *****************", outcomeRejected},
		"its key, far behind":  {400, "application/json", `{"error":{"message":"bad key","type":"x","param":null,"code":"y"},"text":"` + strings.Repeat("x", 5<<10) + `sk-of-the-backend"}`, "bad key", outcomeRejected},
		"its key, escaped":     {400, "application/json", `{"error":{"message":"bad key sk\u002dof\u002dthe-backend"}}`, "The backend answered 400: bad key …", outcomeRejected},
		"its key, as a code":   {400, "application/json", `{"detail":"no","code":"sk-of-the-backend"}`, "The backend answered 400: no", outcomeRejected},
		"a secret header":      {400, "text/plain", "who is tenant-secret?", "The backend answered 400: who is *************?", outcomeRejected},
		"Gemini":               {400, "application/json", `[{"error":{"code":400,"message":"Please use a valid role: user, model.","status":"INVALID_ARGUMENT"}}]`, "The backend answered 400: Please use a valid role: user, model.", outcomeRejected},
		"a string":             {400, "application/json", `"too long"`, "The backend answered 400: too long", outcomeRejected},
		"RFC 9457":             {422, "application/problem+json", `{"title":"No credit","detail":"30 is less than 50","status":422}`, "The backend answered 422: No credit: 30 is less than 50", outcomeRejected},
		"FastAPI":              {422, "application/json", `{"detail":[{"loc":["body","n"],"msg":"Field required"}]}`, "The backend answered 422: body.n: Field required", outcomeRejected},
		"a failing one's":      {503, "application/json", `{"detail":"Out of memory"}`, "The backend answered 503: Out of memory", outcomeUpstream},
		"a failing proxy's":    {502, "text/html", "<html><head><title>502 Bad Gateway</title></head></html>", "The backend answered 502: 502 Bad Gateway", outcomeUpstream},
		"a failing one's key":  {503, "text/plain", "no sk-of-the-backend", "The backend answered 503: no *****************", outcomeUpstream},
		"endless":              {500, "text/plain", strings.Repeat("x", 1<<20), "The backend answered 500: " + strings.Repeat("x", 300) + "…", outcomeUpstream},
		"large JSON":           {500, "application/json", `{"error":{"message":"` + strings.Repeat("x", 1<<20) + `"}}`, "", outcomeUpstream},
		"broken JSON":          {400, "application/json", `{"error":{"message":"too lo`, "The backend answered 400: too lo", outcomeRejected},
		"colours":              {400, "text/plain", "\x1b[31mred\x1b[0m", "The backend answered 400: red", outcomeRejected},
		"compressed":           {400, "application/json", zipped(`{"error":{"message":"too long"}}`), "The backend answered 400: too long", outcomeRejected},
		"a bomb":               {400, "text/plain", zipped(strings.Repeat("x", 8<<20)), "The backend answered 400: " + strings.Repeat("x", 300) + "…", outcomeRejected},
		"JSON":                 {400, "text/plain", ` {"error":{"message":"too long","type":"x"}}`, "", outcomeRejected},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].APIKey = config.Secret("sk-of-the-backend")
			conf.Backends[0].Headers = map[string]config.Secret{"X-Tenant": "tenant-secret"}
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Retry-After", "7")
				if strings.HasPrefix(c.body, "\x1f\x8b") {
					w.Header().Set("Content-Encoding", "gzip")
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}}})
			r := h.post(chat, streamBody)
			if r.status != c.status || r.header.Get("Retry-After") != "7" {
				t.Errorf("got %d, Retry-After %q; want %d, 7", r.status, r.header.Get("Retry-After"), c.status)
			}
			if c.message == "" {
				if r.body != c.body {
					t.Errorf("got %q, want %q untouched", r.body, c.body)
				}
			} else if code := r.code(t); strings.Contains(r.body, "of-the-backend") || code == "" || !strings.Contains(strings.ReplaceAll(r.body, `\u0060`, "`"), `"message":"`+c.message+`"`) {
				t.Errorf("got %s, want the message %q", r.body, c.message)
			}
			if line := h.last(); line.Outcome != c.outcome || line.Status != c.status {
				t.Errorf("log line %+v, want %s with %d", line, c.outcome, c.status)
			}
		})
	}
}

// What a backend counts is bounded before anybody is charged for it, or learns
// from it.
func TestAUsageThatCannotBeTrue(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":1e308,"completion_tokens":1e308}`
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"document": states(200, `{"choices":[{"message":{"content":"hi"}}],`+usage+`}`),
		"stream": func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			for range 20 {
				pause(r, 20*time.Millisecond)
				say(w, delta)
			}
			say(w, `data: {"choices":[],`+usage+"}\n\n"+doneEvent)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: answer}})
			if r := h.post(chat, streamBody); r.status != 200 || r.err != nil {
				t.Fatalf("got %d, %v", r.status, r.err)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens > 100 || line.Source == "usage" {
				t.Errorf("log line %+v, want no tokens by usage", line)
			}
		})
	}
}

// Documents that are kept to their end count as held, and where there is no
// room they go on unread.
func TestDocumentsThatAreKeptCountAsHeld(t *testing.T) {
	const size = 1 << 20
	for name, c := range map[string]struct {
		buffered int64
		source   string
	}{"room": {1 << 30, "usage"}, "no room": {size / 2, ""}} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Limits.Buffered = c.buffered
			body := `{"choices":[{"message":{"content":"` + strings.Repeat("x", size) + `"}}],"usage":{"prompt_tokens":3,"completion_tokens":9}}`
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				say(w, body[:size])
				pause(r, time.Second)
				say(w, body[size:])
			}}})
			got := make(chan reply, 1)
			go func() { got <- h.post(chat, `{"model":"chat"}`) }()
			<-time.After(500 * time.Millisecond)
			if held := h.gateway.buffered.used.Load(); held > c.buffered || c.source != "" && held < size-relayBuffer {
				t.Errorf("%d bytes held of %d allowed, with %d of the answer there", held, c.buffered, size)
			}
			if r := <-got; r.body != body || r.err != nil {
				t.Errorf("the client got %d bytes to %v, want all %d", len(r.body), r.err, len(body))
			}
			if line := h.last(); line.Outcome != outcomeOK || c.source == "" && line.Tokens != 0 || c.source != "" && line.Source != c.source {
				t.Errorf("log line %+v, want tokens by %q", line, c.source)
			}
		})
	}
}

// What a backend says of its own host would be taken for Pacer's: cookies most
// of all, which do not go up either.
func TestHeadersOfTheBackendsHostAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"Set-Cookie", "Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc"}
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range names {
				w.Header().Set(name, "of-the-backend")
			}
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"choices":[]}`)
		}}})
		r := h.post(chat, `{"model":"chat"}`)
		for _, name := range names {
			if got := r.header.Get(name); got != "" {
				t.Errorf("%s: %q came down, want none", name, got)
			}
		}
	})
}

// The beginning of an event that never ends is held within the budget over all
// requests, and the bytes go on in any case.
func TestPartialEventsCountAsHeld(t *testing.T) {
	const streams, size = 20, 512 << 10
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Limits.Buffered = 4 << 20 // what lies on the heap counts twice
		large := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", size)
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			say(w, delta)
			say(w, large)
			if pause(r, time.Minute-time.Second) {
				say(w, `"}}]}`+"\n\n"+delta+usageEvent(7, 3)+doneEvent)
			}
		}}})
		got := make(chan reply, streams)
		for range streams {
			go func() { got <- h.post(chat, streamBody) }()
		}
		<-time.After(30 * time.Second)
		// Each stream may go over by what cannot be refused: the least that a scanner
		// and a meter keep.
		if held := h.gateway.buffered.used.Load(); held > 4<<20+streams*(16<<10) || held < 2<<20 {
			t.Errorf("%d bytes held, want about 4 MiB of the %d that are there", held, streams*size)
		}
		want := delta + large + `"}}]}` + "\n\n" + delta + doneEvent
		for range streams {
			if r := <-got; r.status != 200 || r.body != want || r.err != nil {
				t.Errorf("got %d, %d bytes (%v), want all %d", r.status, len(r.body), r.err, len(want))
			}
		}
		for _, line := range h.log.requests() {
			if line.Outcome != outcomeOK || line.Tokens != 3 {
				t.Errorf("log line %+v, want ok with 3 tokens by usage", line)
			}
		}
	})
}

// Servers in Python write a log probability of zero as -Infinity, which is no
// JSON, and clients in Python read it.
func TestInfinityIsNoGarbage(t *testing.T) {
	const logprobs = `"logprobs":{"content":[{"token":"a","logprob":-Infinity},{"token":"b","logprob":NaN}]}`
	const usage = `"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`
	event := `data: {"id":"c1","choices":[{"index":0,"delta":{"content":"a"},` + logprobs + `}]}` + "\n\n"
	for kind, c := range map[string]struct{ request, answer, got string }{
		"application/json": {
			`{"model":"chat"}`, `{"id":"c1","choices":[{"message":{"content":"a b"},` + logprobs + `}],` + usage + `}`,
			`{"id":"c1","choices":[{"message":{"content":"a b"},` + logprobs + `}],` + usage + `}`,
		},
		"text/event-stream": {streamBody, event + event + lastDelta + usageEvent(7, 2) + doneEvent, event + event + lastDelta + doneEvent},
	} {
		bubble(t, kind, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				say(w, c.answer)
			}}})
			if r := h.post(chat, c.request); r.status != 200 || r.body != c.got || r.err != nil {
				t.Errorf("got %d %q (%v), want %q", r.status, r.body, r.err, c.got)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 2 {
				t.Errorf("log line %+v, want ok with 2 tokens", line)
			}
		})
	}
}

// An error that is put into words keeps the shape of its endpoint.
func TestAnErrorKeepsItsDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: states(http.StatusUnprocessableEntity, `{"detail":[{"loc":["body","max_tokens"],"msg":"Field required"}]}`)}})
		r := h.post("/v1/messages", `{"model":"chat"}`)
		const want = `{"type":"error","error":{"message":"The backend answered 422: body.max_tokens: Field required","type":"invalid_request_error",`
		if r.status != 422 || !strings.HasPrefix(r.body, want) {
			t.Errorf("got %d %s, want %s", r.status, r.body, want)
		}
	})
}

// A secret is found wherever the answer is cut into reads.
func TestMaskedAtEveryCut(t *testing.T) {
	const text, want = "sk-1234567 a tenant, tenan, sk-123456, sk-123", "********** a ******, tenan, sk-123456, sk-123"
	for size := 1; size <= len(text); size++ {
		r := mask(io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), []string{"sk-1234567", "tenant"})
		if size > 1 {
			r = mask(io.NopCloser(strings.NewReader(text)), []string{"sk-1234567", "tenant"})
		}
		var got []byte
		for p, err := make([]byte, size), error(nil); err == nil; {
			var n int
			n, err = r.Read(p)
			got = append(got, p[:n]...)
		}
		if string(got) != want {
			t.Errorf("read by %d bytes: got %q, want %q", size, got, want)
		}
	}
}

// A backend that closes while a large body comes, and whose answer is lost with
// the connection, has most likely refused the body: the client is told so, and
// the backend stays in service for everybody else.
func TestALargeBodyThatIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const times = 20
		calls := 0
		h := open(t, settings("a"), map[string]http.Handler{"a": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls++; r.ContentLength < 1<<20 {
				talk(1, 0)(w, r)
				return
			}
			cutOff(w)
		})})
		large := `{"model":"chat","stream":true,"prompt":"` + strings.Repeat("x", 3<<20) + `"}`
		for range times {
			const want = "The backend closed the connection while the 3.1 MB of the request were being sent, which may be more than it takes."
			if r := h.post(chat, large); r.status != 502 || r.code(t) != "upstream_failed" || !strings.Contains(r.body, want) {
				t.Fatalf("got %d %s, want 502: %s", r.status, r.body, want)
			}
		}
		if r := h.post(chat, streamBody); r.status != 200 || calls != times+1 {
			t.Errorf("the next user got %d after %d calls, want 200 after %d", r.status, calls, times+1)
		}
	})
}

// An error that does not end is cut off: by size where it comes fast, by time
// where it comes slowly. Nobody's connection is held for as long as an answer may
// take.
func TestAnErrorThatDoesNotEndIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		piece int           // bytes
		gap   time.Duration // between two pieces
		took  time.Duration // at most
		bytes int           // at most
	}{
		"fast": {64 << 10, 0, time.Second, maxErrorBody + relayBuffer},
		"slow": {100, time.Second, 62 * time.Second, 12 << 10},
	} {
		for _, status := range []int{400, 429, 503} { // the client's own, kept while others are asked, a failure that says so
			bubble(t, fmt.Sprint(name, " ", status), func(t *testing.T) {
				engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					say(w, `{"error":{"message":"no","details":"`+strings.Repeat("y", errorStart))
					for range 500 { // some time it ends, or a failure of this test would not
						if !pause(r, c.gap) {
							return
						}
						say(w, strings.Repeat("x", c.piece))
					}
				}}
				conf := settings("a")
				conf.Timeouts.Silence = time.Minute
				h := open(t, conf, map[string]http.Handler{"a": engine})
				begun := time.Now()
				r := h.post(chat, streamBody)
				if took := time.Since(begun); r.status != status || r.err == nil || took > c.took || len(r.body) > c.bytes {
					t.Errorf("got %d, %d bytes in %v, then %v; want %d, broken off after %d bytes or %v", r.status, len(r.body), took, r.err, status, c.bytes, c.took)
				}
				synctest.Wait()
				if engine.left() != 1 {
					t.Error("the backend is not told")
				}
				if line := h.last(); line.Outcome != outcomeCut {
					t.Errorf("log line %+v, want cut", line)
				}
			})
		}
	}
}

// An error may take its time, and be long, if it ends.
func TestALongErrorThatEndsIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := `{"error":{"message":"no","details":"` + strings.Repeat("x", 300_000) + `"}}`
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(422)
			for rest := want; len(rest) > 0 && pause(r, time.Second); {
				n := min(len(rest), 10_000)
				say(w, rest[:n])
				rest = rest[n:]
			}
		}}})
		if r := h.post(chat, streamBody); r.status != 422 || r.body != want {
			t.Errorf("got %d and %d bytes (%v), want 422 and %d", r.status, len(r.body), r.err, len(want))
		}
	})
}
