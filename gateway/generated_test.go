package gateway

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/sse"
)

// dice decide what a generated answer is made of: by a script as far as it
// reaches, then by chance.
type dice struct {
	script []byte
	rng    *rand.Rand
}

// n is one of 0 … k-1.
func (d *dice) n(k int) int {
	if len(d.script) > 0 {
		b := d.script[0]
		d.script = d.script[1:]
		return int(b) % k
	}
	return d.rng.IntN(k)
}

func (d *dice) pick(list ...string) string { return list[d.n(len(list))] }

// text is the inside of a JSON string, with what proxies have tripped over.
func (d *dice) text() string {
	switch d.n(60) {
	case 0:
		return strings.Repeat("é漢🙂 ", 1+d.n(4000)) // events up to 40 kB
	case 1:
		return strings.Repeat("x", 60_000+d.n(20_000)) // about what is held back at most, and a read
	}
	return d.pick("word ", "é", "漢字", "🙂👩‍👩‍👧", `\u00e9\ud83d\ude42`, `\"choices\":[],\"usage\":{`, `data: [DONE]\n\n`, `\u2028\u2029`, "\u2028", "", `<\/b>`, "\x7f")
}

// count is a usage object, in one of its shapes.
func (d *dice) count(n int) string {
	return fmt.Sprintf(d.pick(
		`{"prompt_tokens":7,"completion_tokens":%d,"total_tokens":9}`,
		`{"completion_tokens" : %d, "prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":3}}`,
		`{"prompt_tokens":7,"total_tokens":9,"completion_tokens":%d,"completion_tokens_details":null}`,
	), n)
}

// events gathers a stream in the three forms that can be asked for.
type events struct {
	d                        *dice
	end                      string // of every line
	plain, usage, continuous strings.Builder
}

// add adds text to the streams named: those who ask for nothing, for usage, for
// continuous usage.
func (e *events) add(text string, streams ...*strings.Builder) {
	for _, b := range streams {
		b.WriteString(text)
	}
}

func (e *events) every(text string) { e.add(text, &e.plain, &e.usage, &e.continuous) }

// noise is what may stand between two events, and means nothing.
func (e *events) noise() {
	switch e.d.n(8) {
	case 0:
		e.every(": ping é" + e.end + e.end)
	case 1:
		e.every(":" + e.end) // glued to the next event
	case 2:
		e.every(e.end)
	case 3:
		e.every("retry: 10" + e.end + e.end)
	}
}

// chunk adds a chunk, which is an object without its last brace, as an event of
// one line or, at its first comma, of two. It ends in uncounted where a count is
// asked for and not told yet, and in the count where each chunk has one.
func (e *events) chunk(chunk, uncounted string, tokens int) {
	field := e.d.pick("data: ", "data:", "data: ")
	count := `,"usage":` + e.d.count(tokens)
	if before, after, ok := strings.Cut(chunk, ","); ok && e.d.n(6) == 0 {
		chunk = before + "," + e.end + field + after
		count, uncounted = "", "" // no engine sends them so
	} else if len(chunk) > 60_000 {
		count, uncounted = "", "" // too large to be held back
	} else if strings.Contains(chunk, `"choices":[]`) {
		count = uncounted // nothing to be counted
	}
	start := e.d.pick("", "", "", "id: 7"+e.end, "event: message"+e.end) + field
	e.add(start+chunk+"}"+e.end+e.end, &e.plain)
	e.add(start+chunk+uncounted+"}"+e.end+e.end, &e.usage)
	e.add(start+chunk+count+"}"+e.end+e.end, &e.continuous)
}

// last ends the stream, with its final blank line or without.
func (e *events) last(data string) {
	e.every("data: " + data + e.d.pick(e.end+e.end, e.end+e.end, e.end, ""))
}

func (e *events) answer() *prepared {
	d := e.d
	a := &prepared{
		status: 200, header: map[string]string{"Content-Type": d.pick("text/event-stream", "text/event-stream; charset=utf-8"), "X-Engine": "é", "Openai-Processing-Ms": "12"},
		plain: e.plain.String(), usage: e.usage.String(), continuous: e.continuous.String(),
	}
	if most := []int{1, 7, 100, 5_000, 1 << 20}[d.n(5)]; most < 1<<20 {
		most = max(most, len(a.continuous)/1000) // a thousand writes will do
		a.cuts = func(int) int { return 1 + d.rng.IntN(most) }
	}
	return a
}

// chunks is a stream of chat.completions or completions, of an engine that may
// write a null where it has no usage yet.
func (d *dice) chunks(completions, nulls bool) *prepared {
	e := &events{d: d, end: d.pick("\n", "\n", "\r\n", "\r")}
	uncounted := ""
	if nulls {
		uncounted = d.pick("", `,"usage":null`, `, "usage" : null`)
	}
	if d.n(10) == 0 {
		e.every("\xEF\xBB\xBF")
	}
	head := `{"id":"c1","object":"chat.completion.chunk","model":"big",` + d.pick("", `"created":1,`, `"x_extra":{"usage":{"a":1},"choices":[]},`)
	for i := range d.n(20) {
		e.noise()
		content := `"delta":{` + d.pick(`"content"`, `"reasoning_content"`, `"reasoning"`, `"refusal"`) + `:"` + d.text() + `"}`
		if completions {
			content = `"text":"` + d.text() + `"`
		}
		chunk := head + `"choices":[{"index":0,` + content + `,"finish_reason":null}]`
		switch d.n(12) {
		case 0:
			chunk = head + `"choices":[],"prompt_filter_results":[{"prompt_index":0}]`
		case 1:
			chunk = `{"id":"","choices":[{}]`
		}
		e.chunk(chunk, uncounted, i)
	}
	e.noise()
	e.add("data: "+head+`"choices":[],"usage":`+d.count(20)+"}"+e.end+e.end, &e.usage, &e.continuous)
	e.last("[DONE]")
	return e.answer()
}

// named is a stream of events with names: Responses or Messages.
func (d *dice) named(path string) *prepared {
	e := &events{d: d, end: d.pick("\n", "\n", "\r\n", "\r")}
	begin, delta, end := "response.created", "response.output_text.delta", "response.completed"
	if path == "/v1/messages" {
		begin, delta, end = "message_start", "content_block_delta", "message_stop"
	}
	say := func(kind, more string) {
		e.every("event: " + kind + e.end + "data: " + `{"type":"` + kind + `"` + more + "}" + e.end + e.end)
	}
	say(begin, `,"response":{"id":"resp_1"},"message":{"id":"msg_1","usage":{"input_tokens":7,"output_tokens":1}}`)
	for i := range d.n(20) {
		e.noise()
		if path == "/v1/messages" {
			say(delta, fmt.Sprintf(`,"index":%d,"delta":{"type":"text_delta","text":"%s"}`, i, d.text()))
		} else {
			say(delta, fmt.Sprintf(`,"sequence_number":%d,"delta":"%s"`, i, d.text()))
		}
	}
	say(end, `,"response":{"id":"resp_1","usage":{"input_tokens":7,"output_tokens":2}}`)
	return e.answer()
}

// document is an answer that is no stream: JSON of any shape, text, bytes.
func (d *dice) document(decodes bool) *prepared {
	kind, body := "application/json", d.pick("", "\n\n ", "")+`{"id":"x","object":"`+d.pick("chat.completion", "list", "response")+
		`","choices":[{"message":{"content":"`+d.text()+`"}}],"n":1.0,"big":9007199254740993,"usage":`+d.pick("null", d.count(3), `{"input_tokens":1,"output_tokens":2}`)+"}"+d.pick("", "\n")
	if !decodes {
		switch d.n(4) {
		case 0:
			kind, body = "audio/mpeg", strings.Repeat("\x00\xff\r\n\r\ndata: x", 1+d.n(9000))
		case 1:
			kind, body = "text/plain; charset=utf-8", "1\n00:00 --> 00:01\n"+d.text()+"x"
		case 2:
			kind, body = "application/json", `[{"score":0.1},[]]`
		}
	}
	a := always(d.statusOK(), kind, body)
	a.length = d.n(2) == 0
	a.header["X-Ratelimit-Remaining-Tokens"] = "7"
	if most := []int{0, 100, 40_000}[d.n(3)]; most > 0 {
		a.cuts = func(int) int { return 1 + d.rng.IntN(most) }
	}
	return a
}

func (d *dice) statusOK() int { return []int{200, 200, 201, 202}[d.n(4)] }

// refusal is an error answer that SDKs can read: it is passed on, whatever
// stands in it.
func (d *dice) refusal() *prepared {
	status := []int{400, 406, 410, 423, 409, 413, 415, 418, 422, 429, 451, 500, 501, 505}[d.n(14)]
	body := d.pick("", " \n") + `{"error":{"message":"` + d.text() + `","type":"x","param":null,"code":` + d.pick("null", "400", `"odd"`) + `}` +
		d.pick("", `,"detail":[{"loc":["body",1]}]`) + "}" + d.pick("", "\n")
	a := always(status, d.pick("application/json", "application/json; charset=utf-8", "text/plain"), body)
	a.header["Retry-After"], a.header["X-Should-Retry"] = "7", "false"
	a.length = d.n(2) == 0
	return a
}

// generated is a request with an answer to it.
func (d *dice) generated() (ask, *prepared) {
	q := ask{method: http.MethodPost, path: chat, model: d.pick("openai", "vllm", "sglang", "llamacpp", "tgi", "azure", "continuous", "never"), more: `,"stream":true`}
	others := []string{"/v1/embeddings", "/v1/rerank", "/v1/moderations", "/v1/images/generations", "/v1/audio/speech", "/v1/audio/transcriptions"}
	switch d.n(8) {
	case 0, 1, 2:
		q.more += d.pick(askedUsage...)
		return q, d.chunks(false, slices.Contains(nullKinds, q.model))
	case 3:
		q.path = "/v1/completions"
		q.more += d.pick(askedUsage...)
		return q, d.chunks(true, slices.Contains(nullKinds, q.model))
	case 4:
		q.path = d.pick("/v1/responses", "/v1/messages")
		return q, d.named(q.path)
	case 5:
		q.path = d.pick(chat, "/v1/completions", "/v1/responses", "/v1/messages")
		q.more = d.pick("", `,"stream":false`)
		return q, d.document(true)
	case 6:
		q.path, q.more = d.pick(others...), ""
		return q, d.document(false)
	}
	q.path = d.pick(append(others, chat, "/v1/completions", "/v1/responses", "/v1/messages")...)
	q.more = d.pick("", `,"stream":true`)
	return q, d.refusal()
}

func TestGeneratedAnswersAreTheSameThroughPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openTwin(t)
		for seed := range uint64(300) {
			d := &dice{rng: rand.New(rand.NewPCG(2, seed))}
			q, a := d.generated()
			direct, through := p.both(q, a)
			if diff := difference(direct, through); diff != "" {
				t.Errorf("seed %d, %s of %s%s: %s", seed, q.path, q.model, q.more, diff)
			}
		}
		p.idle()
	})
}

// A stream that breaks off goes on up to its last event that is whole, and then both
// ways say that it is broken.
func TestGeneratedStreamsThatBreakOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openTwin(t)
		for seed := range uint64(100) {
			d := &dice{rng: rand.New(rand.NewPCG(5, seed))}
			q := ask{method: http.MethodPost, path: chat, model: "vllm", more: `,"stream":true,"stream_options":{"include_usage":true}`}
			a := d.chunks(false, false)
			end := strings.LastIndex(a.usage, "[DONE]")
			if a.usage = a.usage[:d.n(end)]; !strings.Contains(a.usage, "data") {
				continue // nothing of an answer has come
			}
			direct, through := p.both(q, a)
			event, ok := strings.CutPrefix(through.body, wholeEvents(direct.body))
			if through.status == http.StatusOK && (!ok || !isCut(through.err) || !strings.HasPrefix(strings.TrimLeft(event, "\n"), `data: {"error":`)) {
				t.Errorf("seed %d: got %.300q (%v) behind the stream, want an error event and a cut", seed, event, through.err)
			}
			if through.status != http.StatusOK {
				t.Errorf("seed %d: got %d %s for %.100q", seed, through.status, through.body, direct.body)
			}
			<-time.After(time.Minute) // until the breaker has forgotten it
		}
		p.idle()
	})
}

// wholeEvents is body without an event that broke off. One that lacks its blank line is whole if
// its data is; of one above 64 KiB what had come went on.
func wholeEvents(body string) string {
	var scan sse.Scanner
	scan.Feed([]byte(body))
	for _, ok := scan.Next(); ok; _, ok = scan.Next() {
	}
	at, pending := scan.Pending()
	if event, ok := scan.End(); !pending || len(body)-int(at) > 64<<10 || ok && (json.Valid(event.Data) || len(event.Data) == 0) {
		return body
	}
	return body[:at]
}

// What is not the same through Pacer is so on purpose: an answer that no SDK
// could read.
func TestAnswersThatAreNotTheSameThroughPacer(t *testing.T) {
	for _, c := range []struct {
		name, kind, body string
		status, want     int
		code             string
	}{
		{"no content", "", "", 204, 502, "upstream_failed"},
		{"reset content", "", "", 205, 502, "upstream_failed"},
		{"redirect", "text/html", "<a href=/>", 302, 502, "upstream_failed"},
		{"permanent redirect", "", "", 308, 502, "upstream_failed"},
		{"empty answer", "application/json", "", 200, 502, "upstream_failed"},
		{"a bad gateway's page", "text/html", "<html>hello</html>", 502, 502, "upstream_failed"},
		{"a page", "text/html", "<html>hello</html>", 200, 502, "upstream_failed"},
		{"an error in a page", "text/html", "<html>hello</html>", 400, 400, "upstream_failed"},
		{"an error without a word", "", "", 422, 422, "upstream_failed"},
		{"an error in an array", "application/json", `["no"]`, 500, 500, "upstream_failed"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			p := openTwin(t)
			a := always(c.status, c.kind, c.body)
			a.header["Location"] = "http://elsewhere/"
			p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			direct, through := p.both(ask{method: http.MethodPost, path: chat, model: "vllm", more: `,"stream":true`}, a)
			if direct.status != c.status {
				t.Fatalf("the backend itself answered %d, want %d", direct.status, c.status)
			}
			if code := through.code(t); through.status != c.want || code != c.code {
				t.Errorf("got %d %s, want %d %s", through.status, code, c.want, c.code)
			}
			if through.header.Get("Location") != "" {
				t.Error("the client is sent elsewhere")
			}
			p.idle()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := openTwin(t)
		p.backend.answer.Store(always(200, "application/json", "{}"))
		for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPut} {
			if r := p.do(p.request(method, chat, "")); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != http.MethodPost {
				t.Errorf("%s: got %d, Allow %q; want 405, POST", method, r.status, r.header.Get("Allow"))
			}
		}
	})
}

// FuzzDifferential searches for an answer that is another through Pacer.
func FuzzDifferential(f *testing.F) {
	for seed := range uint64(8) {
		f.Add([]byte{byte(seed)}, seed)
	}
	p := openTwin(f)
	f.Fuzz(func(t *testing.T, script []byte, seed uint64) {
		p.t = t
		d := &dice{script: script, rng: rand.New(rand.NewPCG(3, seed))}
		q, a := d.generated()
		direct, through := p.both(q, a)
		if diff := difference(direct, through); diff != "" {
			t.Errorf("%s of %s%s: %s", q.path, q.model, q.more, diff)
		}
	})
}
