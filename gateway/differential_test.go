package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// These tests send the same request to a backend and through Pacer, and compare
// status, headers and body byte for byte. The backend answers by what it was
// asked, so usage that Pacer alone asks for must not be seen.

// prepared is an answer in the forms that a request can ask for.
type prepared struct {
	status     int
	header     map[string]string
	plain      string // without any usage that has to be asked for
	usage      string // with usage at the end
	continuous string // with usage in every chunk, too
	length     bool   // Content-Length is told
	cuts       func(n int) int
}

// always is an answer that is the same whatever was asked.
func always(status int, kind, body string) *prepared {
	return &prepared{status: status, header: map[string]string{"Content-Type": kind}, plain: body, usage: body, continuous: body}
}

// replay is a backend that gives one prepared answer at a time.
type replay struct {
	answer atomic.Pointer[prepared]
	body   atomic.Pointer[string] // of the last request
}

func (b *replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text := string(body)
	b.body.Store(&text)
	var asked struct {
		Options struct {
			Usage      bool `json:"include_usage"`
			Continuous bool `json:"continuous_usage_stats"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(body, &asked) // forms ask for nothing
	a := b.answer.Load()
	answer := a.plain
	switch {
	case asked.Options.Usage && asked.Options.Continuous:
		answer = a.continuous
	case asked.Options.Usage:
		answer = a.usage
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.length {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	}
	w.WriteHeader(a.status)
	for len(answer) > 0 {
		n := len(answer)
		if a.cuts != nil {
			n = min(a.cuts(n), n)
		}
		say(w, answer[:n])
		answer = answer[n:]
	}
}

// twin is a gateway in front of one replay under several names: a backend and a
// route for each, which sends the client's model name up unchanged.
type twin struct {
	*house
	backend *replay
}

func openTwin(t testing.TB) *twin {
	p := &twin{backend: &replay{}}
	kinds := []string{"openai", "vllm", "sglang", "llamacpp", "tgi", "ollama", "azure", "anthropic", "continuous", "never"}
	c := settings(kinds...)
	c.Limits.Body = 64 << 20
	engines := map[string]http.Handler{}
	c.Routes = nil
	for i, kind := range kinds {
		b := &c.Backends[i]
		switch kind {
		case "continuous", "never":
			b.Kind, b.Usage = "vllm", kind
		default:
			b.Kind = kind
		}
		c.Routes = append(c.Routes, config.Route{
			Models: []string{kind}, Class: "interactive", Prefer: "order", Reserve: 1, SLO: config.SLO{Attainment: 0.99, Grace: time.Second},
			Targets: []config.Target{{Backend: kind}}, OnInfeasible: []config.Step{{Shed: true}},
		})
		engines[kind] = p.backend
	}
	p.house = openWith(t, c, engines, houseOptions{})
	return p
}

// ask is a request, put to both.
type ask struct {
	method, path, model string
	more                string // members of the body behind the model
}

func (q ask) body() string {
	if q.method != http.MethodPost {
		return ""
	}
	return `{"model":"` + q.model + `",  "seed":9007199254740993, "x":[1.0,"\u00e9<>é"]` + q.more + "}"
}

// both returns the answer of the backend and what Pacer makes of it.
func (p *twin) both(q ask, a *prepared) (direct, through reply) {
	p.t.Helper()
	p.backend.answer.Store(a)
	get := func(host string) reply {
		req := p.request(q.method, q.path, q.body(), "X-Request-Id", "same", "Authorization", "Bearer x")
		req.URL.Host, req.Host = host, host
		return p.do(req)
	}
	direct = get(q.model)
	sent := *p.backend.body.Load()
	through = get("gateway")
	got := *p.backend.body.Load()
	if same := got == sent || sameMembers(got, sent) || withoutOptions(got) == withoutOptions(sent); !same {
		p.t.Errorf("%s: the backend got\n%s\nwant\n%s", q.path, got, sent)
	}
	return direct, through
}

// withoutOptions is a body without its stream_options, which these tests write
// last and Pacer first.
func withoutOptions(body string) string {
	const key = `"stream_options":{`
	from := strings.Index(body, key)
	if from < 0 {
		return body
	}
	to := from + strings.IndexByte(body[from:], '}') + 1
	if strings.HasPrefix(body[to:], ",") {
		return body[:from] + body[to+1:]
	}
	return strings.TrimSuffix(body[:from], ",") + body[to:]
}

// hidden are the headers of the backend's connection, and those that Pacer
// answers for itself.
var hidden = []string{"Date", "Connection", "Keep-Alive", "Content-Length", "X-Request-Id", "Request-Id", "X-Pacer-Backend", "X-Pacer-Decision", "X-Pacer-Predicted-Tps"}

func headersThatMatter(h http.Header, stream bool) http.Header {
	h = maps.Clone(h)
	for _, name := range hidden {
		h.Del(name)
	}
	if stream { // never to be kept or gathered on the way
		h.Del("Cache-Control")
		h.Del("X-Accel-Buffering")
	}
	return h
}

// difference says in what two answers differ, "" in nothing.
func difference(direct, through reply) string {
	stream := strings.HasPrefix(direct.header.Get("Content-Type"), "text/event-stream")
	switch {
	case direct.status != through.status:
		return fmt.Sprintf("status %d, want %d: %.200s", through.status, direct.status, through.body)
	case (direct.err == nil) != (through.err == nil):
		return fmt.Sprintf("read to %v, want %v", through.err, direct.err)
	case direct.body != through.body:
		at := 0
		for at < min(len(direct.body), len(through.body)) && direct.body[at] == through.body[at] {
			at++
		}
		return fmt.Sprintf("%d bytes, want %d; from byte %d on\n%.300q, want\n%.300q", len(through.body), len(direct.body), at, through.body[at:], direct.body[at:])
	}
	if got, want := headersThatMatter(through.header, stream), headersThatMatter(direct.header, stream); !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("headers %v, want %v", got, want)
	}
	return ""
}

// askedUsage are what clients say about usage.
var askedUsage = []string{
	``, `,"stream_options":{"include_usage":true}`, `,"stream_options":{"include_usage":false}`, `,"stream_options":{}`,
	`,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`,
}

var blankLine = regexp.MustCompile("\n\n|\r\n\r\n")

// unasked is what an engine that streamed this with its usage sends when it is
// not asked for it: nothing but that event is missing.
func unasked(stream string) string {
	var out strings.Builder
	for len(stream) > 0 {
		event := stream
		if at := blankLine.FindStringIndex(stream); at != nil {
			event = stream[:at[1]]
		}
		stream = stream[len(event):]
		var chunk struct {
			Choices *[]json.RawMessage          `json:"choices"`
			Usage   *map[string]json.RawMessage `json:"usage"`
			Filter  json.RawMessage             `json:"prompt_filter_results"`
		}
		before, data, _ := strings.Cut(event, "data:")
		if json.Unmarshal([]byte(data), &chunk) == nil && chunk.Choices != nil && len(*chunk.Choices) == 0 && chunk.Usage != nil && chunk.Filter == nil {
			out.WriteString(before) // comments are none of the event
			continue
		}
		out.WriteString(event)
	}
	return out.String()
}

// recordings are the recorded streams: where each was asked for, and of whom.
func recordings(t testing.TB) map[string]ask {
	t.Helper()
	all := map[string]ask{}
	const root = "../providers/testdata/"
	kinds := []string{"vllm", "sglang", "llamacpp", "tgi", "ollama", "azure", "anthropic"}
	paths := map[string]string{
		"responses": "/v1/responses", "messages": "/v1/messages", "transcription": "/v1/audio/transcriptions",
		"speech": "/v1/audio/speech", "images": "/v1/images/generations",
	}
	for _, pattern := range []string{"*.sse", "events/*.sse"} {
		files, err := filepath.Glob(root + pattern)
		if err != nil || len(files) < 10 {
			t.Fatalf("%d streams in %s (%v)", len(files), root+pattern, err)
		}
		for _, file := range files {
			parts := strings.Split(strings.TrimSuffix(filepath.Base(file), ".sse"), "-")
			q := ask{method: http.MethodPost, path: chat, model: "openai", more: `,"stream":true`}
			for _, part := range parts {
				switch {
				case slices.Contains(kinds, part):
					q.model = part
				case part == "completions":
					q.path = "/v1/completions"
				case paths[part] != "":
					q.path = paths[part]
				}
			}
			all[file] = q
		}
	}
	return all
}

func TestRecordedStreamsAreTheSameThroughPacer(t *testing.T) {
	for file, q := range recordings(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded := must.Get(os.ReadFile(file))(t)
			rng := rand.New(rand.NewPCG(1, uint64(len(recorded))))
			synctest.Test(t, func(t *testing.T) {
				p := openTwin(t)
				for _, wish := range askedUsage {
					if wish != "" && q.path != chat && q.path != "/v1/completions" {
						continue
					}
					for i, cuts := range []func(int) int{nil, func(int) int { return 1 }, func(int) int { return 1 + rng.IntN(60) }} {
						if racetest.On && i == 1 {
							continue // each byte on its own
						}
						a := always(200, "text/event-stream; charset=utf-8", string(recorded))
						a.cuts = cuts
						q := q
						q.more += wish
						if q.path == chat || q.path == "/v1/completions" {
							a.plain = unasked(a.usage)
						}
						if slices.Contains(nullKinds, q.model) {
							a.plain = strings.ReplaceAll(a.plain, `,"usage":null`, "")
						}
						if strings.HasSuffix(file, "vllm-fingerprint.sse") {
							a.plain = strings.Replace(a.plain, `"stop_reason":null,"token_ids":null}]}`, `"stop_reason":null,"token_ids":null}],"system_fingerprint":"vllm-0.32.0-tp1-5b3e9a11"}`, 1)
						}
						if q.model == "ollama" && q.path == "/v1/completions" {
							a.plain = zerosOut(a.plain)
						}
						direct, through := p.both(q, a)
						if d := difference(direct, through); d != "" {
							t.Errorf("asked %q: %s", wish, d)
						}
						<-time.After(time.Minute) // until the breaker has forgotten a stream that ends in an error
					}
				}
				p.idle()
			})
		})
	}
}

// nullKinds are the models of twin whose engines may write "usage":null
// where they are asked for usage, and write none elsewhere.
var nullKinds = []string{"openai", "azure", "vllm"}

// zerosOut takes out the usage that Ollama has in every chunk when it is asked.
func zerosOut(stream string) string {
	return strings.ReplaceAll(stream, `,"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, "")
}
