package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/sse"
)

// total is the sum of what a meter saw.
type total struct {
	Chunks, Bytes    int
	Reasoning        bool
	Usage            Usage // the last
	HasUsage         bool
	Tokens           int // the last that was said with content
	Done, Error, Bad bool
	passed           string
}

func (s *total) add(pass []byte, seen Seen) {
	s.passed += string(pass)
	s.Chunks += seen.Chunks
	s.Bytes += seen.Bytes
	s.Reasoning = s.Reasoning || seen.Reasoning
	if seen.Tokens > 0 {
		s.Tokens = seen.Tokens
	}
	s.Done = s.Done || seen.Done
	s.Error = s.Error || seen.Error
	s.Bad = s.Bad || seen.Bad
	if seen.Usage != nil {
		s.Usage, s.HasUsage = *seen.Usage, true
	}
}

// meter looks at the pieces of a chat completion.
func meter(strip Strip, pieces ...[]byte) (sum total) {
	return look("/chat/completions", true, strip, pieces...)
}

func bytewise(stream []byte) (pieces [][]byte) {
	for i := range stream {
		pieces = append(pieces, stream[i:i+1])
	}
	return pieces
}

func readStream(t testing.TB, name string) []byte {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join("testdata", name+".sse")))(t)
	return b
}

// every is each way of stripping.
var every = []Strip{0, StripEvent, StripRunning, StripEvent | StripRunning, StripEvent | StripNull, StripEvent | StripRunning | StripNull, StripEvent | MovePrint, StripEvent | StripRunning | StripNull | MovePrint}

var runningUsage = regexp.MustCompile(`,\s*"usage"\s*:\s*\{[^{}]*(\{[^{}]*\}[^{}]*)*\}`)

// stripped is a second implementation: it takes the usage out of a stream whose
// events end in sep, comments in front of them left alone.
func stripped(stream, sep string, strip Strip) string {
	var out strings.Builder
	null := ""
	for _, event := range strings.SplitAfter(stream, sep) {
		comments, data, ok := event, "", false
		if i := strings.Index(event, "data:"); i >= 0 {
			comments, data, ok = event[:i], event[i+len("data:"):], true
		}
		var top map[string]json.RawMessage
		if ok && json.Unmarshal([]byte(data), &top) == nil && strings.HasPrefix(string(top["usage"]), "{") {
			switch choices := string(top["choices"]); {
			case choices == "[]" && strip&StripEvent != 0 && top["prompt_filter_results"] == nil:
				out.WriteString(comments)
				continue
			case strings.HasPrefix(choices, "[{") && strip&StripRunning != 0:
				event = runningUsage.ReplaceAllString(event, null)
			}
		}
		if string(top["usage"]) == "null" && strip&StripNull != 0 {
			event = strings.Replace(event, `,"usage":null`, "", 1)
		} else if string(top["usage"]) == "null" && strings.HasPrefix(string(top["choices"]), "[{") {
			null = `,"usage":null`
		}
		out.WriteString(event)
	}
	return out.String()
}

// The streams of the servers that Pacer stands in front of, in the form in
// which each sends them.
func TestStreams(t *testing.T) {
	for _, tt := range []struct {
		name string
		want total
		cut  int // events taken out
	}{
		{"openai", total{Chunks: 5, Bytes: 4 + 8 + 1 + 2 + 5 + 6, Usage: Usage{13, 0, 7, 0, 0, 0}}, 1},
		{"openai-tools", total{Chunks: 6, Bytes: 11 + 2 + 4 + 3 + 4 + 2, Usage: Usage{61, 0, 14, 0, 0, 0}}, 1},
		{"azure", total{Chunks: 3, Bytes: 3 + 4 + 6, Usage: Usage{9, 0, 4, 0, 0, 0}}, 1},
		{"vllm", total{Chunks: 6, Bytes: 3 + 3 + 6 + 2 + 10 + 7, Reasoning: true, Usage: Usage{21, 0, 15, 0, 0, 0}}, 1},
		{"vllm-continuous", total{Chunks: 3, Bytes: 7 + 14 + 1, Usage: Usage{21, 0, 7, 0, 0, 0}, Tokens: 6}, 1},
		{"vllm-error", total{Chunks: 1, Bytes: 3, Error: true}, 0},
		{"sglang", total{Chunks: 4, Bytes: 3 + 5 + 3 + 1, Reasoning: true, Usage: Usage{12, 8, 6, 6, 0, 0}}, 1},
		{"llamacpp", total{Chunks: 4, Bytes: 7, Usage: Usage{11, 4, 4, 0, 0, 0}}, 1},
		{"llamacpp-timings", total{Chunks: 4, Bytes: 7, Usage: Usage{11, 4, 4, 0, 0, 0}}, 0},
		{"tgi", total{Chunks: 3, Bytes: 2 + 6 + 1, Usage: Usage{14, 0, 3, 0, 0, 0}}, 1},
		{"deepseek", total{Chunks: 3, Bytes: 2 + 4 + 1, Reasoning: true, Usage: Usage{10, 0, 5, 3, 0, 0}}, 0},
		{"xai", total{Chunks: 2, Bytes: 3 + 7, Usage: Usage{8, 0, 2, 0, 0, 0}}, 0},
		{"crlf-comments", total{Chunks: 2, Bytes: 12, Usage: Usage{5, 0, 2, 0, 0, 0}}, 1},
		{"completions", total{Chunks: 2, Bytes: 8, Usage: Usage{4, 0, 2, 0, 0, 0}}, 1},
		{"llamacpp-three", total{Chunks: 10, Bytes: 48, Usage: Usage{58, 0, 10, 0, 0, 0}}, 3},
		{"llamacpp-completions-two", total{Chunks: 11, Bytes: 64, Usage: Usage{5, 0, 11, 0, 0, 0}}, 0},
		{"two-choices", total{Chunks: 2, Bytes: 3, Usage: Usage{4, 0, 3, 0, 0, 0}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream := readStream(t, tt.name)
			sep := "\n\n"
			if tt.name == "crlf-comments" {
				sep = "\r\n\r\n"
			}
			tt.want.HasUsage = tt.want.Usage != Usage{}
			tt.want.Done = true
			for _, strip := range every {
				want := tt.want
				want.passed = stripped(string(stream), sep, strip)
				if n := strings.Count(string(stream), "data:") - strings.Count(want.passed, "data:"); strip&StripEvent != 0 && n != tt.cut {
					t.Fatalf("the oracle takes %d events out, want %d", n, tt.cut)
				}
				check := func(how string, got total) {
					t.Helper()
					if got != want {
						t.Fatalf("strip %v, %s:\ngot  %+v\nwant %+v", strip, how, got, want)
					}
				}
				check("whole", meter(strip, stream))
				check("byte by byte", meter(strip, bytewise(stream)...))
				step := 1
				if racetest.On {
					step = 11
				}
				for cut := 0; cut < len(stream); cut += step {
					check(fmt.Sprintf("cut at %d", cut), meter(strip, stream[:cut], stream[cut:]))
				}
			}
		})
	}
}

const usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\n"

func TestWhatIsStripped(t *testing.T) {
	const after = "data: [DONE]\n\n"
	for _, tt := range []struct {
		name, stream string
		want         string // of stream, "-" = nothing of it
	}{
		{"usage", usageEvent, "-"},
		{"twice", usageEvent + usageEvent, "-"},
		{"spaces", `data: { "choices" : [ ] , "usage" : { } }` + "\n\n", "-"},
		{"CR", `data: {"choices":[],"usage":{}}` + "\r\r", "-"},
		{"CRLF", `data: {"choices":[],"usage":{}}` + "\r\n\r\n", "-"},
		{"with an id", "id: 7\n" + usageEvent, "-"},
		{"in two lines", "data: {\"choices\":[],\ndata: \"usage\":{}}\n\n", "-"},
		{"comment before", ": ping\n" + usageEvent, ": ping\n"},
		{"blank line before", "\n" + usageEvent, "\n"},
		{"byte order mark", "\xEF\xBB\xBF" + usageEvent, "\xEF\xBB\xBF"},
		{"usage with content", `data: {"choices":[{"delta":{"content":"a"}}],"usage":{}}` + "\n\n", ""},
		{"usage with finish", `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{}}` + "\n\n", ""},
		{"usage without choices", `data: {"usage":{}}` + "\n\n", ""},
		{"usage null", `data: {"choices":[],"usage":null}` + "\n\n", ""},
		{"no usage", `data: {"choices":[]}` + "\n\n", ""},
		{"Azure's first", `data: {"choices":[],"prompt_filter_results":[{}],"usage":{}}` + "\n\n", ""},
		{"error", `data: {"choices":[],"usage":{},"error":{"message":"x"}}` + "\n\n", ""},
		{"error event", "event: error\n" + usageEvent, ""},
		{"not JSON", `data: {"choices":[],"usage":{}` + "\n\n", ""},
		{"comment that looks like it", `: {"choices":[],"usage":{}}` + "\n\n", ""},
		{"too large", `data: {"choices":[],"usage":{},"x":"` + strings.Repeat("x", sse.MaxTail) + `"}` + "\n\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream, want := tt.stream+after, tt.want+after
			switch tt.want {
			case "":
				want = stream
			case "-":
				want = after
			}
			cuts := [][][]byte{{[]byte(stream)}, bytewise([]byte(stream))}
			for i := range min(len(stream), 300) {
				cuts = append(cuts, [][]byte{[]byte(stream[:i]), []byte(stream[i:])})
			}
			for _, pieces := range cuts {
				if got := meter(StripEvent, pieces...); got.passed != want || !got.Done {
					t.Fatalf("in %d pieces, the first of %d bytes: passed %.200q, want %.200q; done %v", len(pieces), len(pieces[0]), got.passed, want, got.Done)
				}
			}
			if got := meter(0, []byte(stream)); got.passed != stream {
				t.Errorf("without strip: passed %.200q", got.passed)
			}
		})
	}
}

// The beginning of an event waits for its end, and nothing else does. An event that lacks only
// its blank line goes on at the end, and what broke off within one does not.
func TestWholeEventsGoOn(t *testing.T) {
	const chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n"
	for _, tt := range []struct {
		name, first string
		held        string
		end         string // what of it goes on at the end
	}{
		{"whole event", chunk + "\n", "", ""},
		{"blank line missing", chunk, chunk, chunk},
		{"cut in its content", `data: {"id":"x","choices":[{"delta":{"content":"a`, `data: {"id":"x","choices":[{"delta":{"content":"a`, ""},
		{"done", "data: [DO", "data: [DO", ""},
		{"done, but for its blank line", "data: [DONE]", "data: [DONE]", "data: [DONE]"},
		{"comment", ": pi", "", ""},
		{"comment and blank line", ": ping\n\n", "", ""},
		{"field name", "da", "da", ""},
		{"before its data", chunk + "\ndata: ", "data: ", ""},
		{"name alone", "event: mess", "event: mess", ""},
		{"name and a part of the data", "event: error\ndata: {", "event: error\ndata: {", ""},
		{"behind a whole one", chunk + "\ndata: {", "data: {", ""},
		{"larger than what is held", chunk + "\ndata: " + strings.Repeat("x", sse.MaxTail), "", ""},
	} {
		for _, strip := range []Strip{0, StripEvent, StripEvent | StripRunning} {
			m := (&Backend{}).NewMeter("/chat/completions", true, strip)
			pass, _ := m.Read([]byte(tt.first))
			if want := strings.TrimSuffix(tt.first, tt.held); string(pass) != want {
				t.Errorf("%s: passed %q, want %q", tt.name, pass, want)
			}
			if rest, _ := m.End(); string(rest) != tt.end {
				t.Errorf("%s: at the end %q goes on, want %q", tt.name, rest, tt.end)
			}
		}
	}
}

// An engine's own usage is believed more than llama.cpp's timings, also those
// that come behind it.
func TestTimingsDoNotReplaceUsage(t *testing.T) {
	const timings = `data: {"choices":[{"delta":{}}],"timings":{"predicted_n":99,"prompt_n":98}}` + "\n\n"
	if got := meter(0, []byte(timings)); got.Usage != (Usage{98, 0, 99, 0, 0, 0}) {
		t.Errorf("timings alone: %+v", got.Usage)
	}
	for _, stream := range []string{timings + usageEvent, usageEvent + timings} {
		if got := meter(0, []byte(stream)); got.Usage != (Usage{1, 0, 2, 0, 0, 0}) {
			t.Errorf("%q: %+v, want the usage", stream, got.Usage)
		}
	}
}

// An event that could be the usage event for ever is let go.
func TestHoldingBackIsBounded(t *testing.T) {
	m := &streamMeter{strip: StripEvent}
	passed, _ := m.Read([]byte(`data: {"id":"`))
	n := len(passed)
	piece := bytes.Repeat([]byte("x"), 10_000)
	for range 20 {
		p, _ := m.Read(piece)
		n += len(p)
		if m.tail.Len() > sse.MaxTail {
			t.Fatalf("%d bytes are held back, want at most %d", m.tail.Len(), sse.MaxTail)
		}
	}
	if n < 150_000 {
		t.Errorf("%d bytes of 200,000 passed on, want nearly all", n)
	}
}

func TestTheEndOfAStream(t *testing.T) {
	for _, tt := range []struct {
		stream string
		strip  Strip
		want   total
	}{
		{"data: [DONE]", 0, total{Done: true, passed: "data: [DONE]"}},
		{"data: [DONE]\n", StripEvent, total{Done: true, passed: "data: [DONE]\n"}},
		{"data: {\"choices\":[{\"text\":\"a\"}]}\n", StripEvent, total{Chunks: 1, Bytes: 1, passed: "data: {\"choices\":[{\"text\":\"a\"}]}\n"}},
		{`data: {"choices":[{"te`, StripEvent, total{}},
		{`data: {"cho`, StripEvent, total{}},
		{": ping\n" + strings.TrimSuffix(usageEvent, "\n\n"), StripEvent, total{Usage: Usage{1, 0, 2, 0, 0, 0}, HasUsage: true, passed: ": ping\n"}},
		{"", StripEvent, total{}},
	} {
		for _, pieces := range [][][]byte{{[]byte(tt.stream)}, bytewise([]byte(tt.stream))} {
			if got := meter(tt.strip, pieces...); got != tt.want {
				t.Errorf("%q in %d pieces:\ngot  %+v\nwant %+v", tt.stream, len(pieces), got, tt.want)
			}
		}
	}
}

func TestGarbageIsBad(t *testing.T) {
	for stream, bad := range map[string]bool{
		"data: hello\n\n":           true,
		"data: 7\n\n":               true,
		"data: {\"choices\":[}\n\n": true,
		"data: {}\n\n":              false,
		"data:\n\n":                 false,
		"data:  \n\n":               false,
		": hello\n\n":               false,
		"event: ping\n\n":           false,
	} {
		if got := meter(StripEvent, []byte(stream)); got.Bad != bad || got.passed != stream {
			t.Errorf("%q: bad %v, passed %q; want bad %v and all of it", stream, got.Bad, got.passed, bad)
		}
	}
	// An answer in HTML has no event at all; whole lines of it are unknown fields.
	if got := meter(StripEvent, []byte("<html>\n<body>502</body>\n</html>\n")); got.Chunks > 0 || got.Done {
		t.Errorf("HTML: %+v", got)
	}
}

// The totals and the bytes do not depend on how the stream was cut.
func FuzzStreamMeter(f *testing.F) {
	names, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(names) == 0 {
		f.Fatal("no streams in testdata", err)
	}
	for _, name := range names {
		b := must.Get(os.ReadFile(name))(f)
		f.Add(b, uint64(0x17_03_29))
	}
	f.Add([]byte("id: 1\n\n: c\r\rdata: {\"choices\":[],\"usage\":{}}\r\n\r\ndata\n\n"), uint64(0x111))
	f.Add([]byte("\xEF\xBBx\ndata: {\"x\":\"choices\",\"choices\":[],\"usage\":{}}\r\r\ndata: {\"usage\":{}, \"choices\" :\t[ ]}"), uint64(0x203))
	f.Fuzz(func(t *testing.T, stream []byte, sizes uint64) {
		for _, strip := range every {
			want := meter(strip, stream)
			if strip == 0 && want.passed != string(stream) {
				t.Fatalf("%q: passed %q", stream, want.passed)
			}
			check := func(how string, got total) {
				t.Helper()
				if got != want {
					t.Fatalf("%q strip %v, %s:\ngot  %+v\nwant %+v", stream, strip, how, got, want)
				}
			}
			check("byte by byte", meter(strip, bytewise(stream)...))
			for cut := range min(len(stream), 100) {
				check(fmt.Sprintf("cut at %d", cut), meter(strip, stream[:cut], stream[cut:]))
			}
			var pieces [][]byte
			for rest, s := stream, sizes; len(rest) > 0; s = s>>8 | s<<56 {
				n := min(int(s&0xFF)+1, len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			check(fmt.Sprintf("in %d pieces", len(pieces)), meter(strip, pieces...))
		}
	})
}

func TestReadAllocatesNothing(t *testing.T) {
	chunk := []byte(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" token"}}]}` + "\n\n")
	running := []byte(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" token"}}],"usage":{"prompt_tokens":9,"completion_tokens":7}}` + "\n\n")
	for _, strip := range every {
		m := (&Backend{}).NewMeter("/chat/completions", true, strip)
		m.Read(usageOf(1))
		for name, pieces := range map[string][][]byte{
			"one event":         {chunk},
			"an event in two":   {chunk[:9], chunk[9:]},
			"usage":             {usageOf(7)},
			"running usage":     {running, running},
			"running in halves": {running[:90], running[90:]},
			"usage in three":    {usageOf(7)[:20], usageOf(7)[20:50], usageOf(7)[50:]},
			"event behind half": {chunk[:40], append(bytes.Clone(chunk[40:]), chunk[:12]...), chunk[12:]},
		} {
			if n := testing.AllocsPerRun(100, func() {
				for _, p := range pieces {
					m.Read(p)
				}
			}); n > 0 {
				t.Errorf("strip %v, %s: %v allocations, want 0", strip, name, n)
			}
		}
	}
}

func usageOf(n int) []byte {
	return fmt.Appendf(nil, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":%d}}\n\n", n)
}

// Budget: 1 µs and no allocation for a read with one event.
func BenchmarkStreamMeter(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-8f2c1f6f5b3e4a8f9d0c","object":"chat.completion.chunk","created":1732147200,"model":"meta-llama/Llama-3.1-70B-Instruct","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	running := append(bytes.Clone(chunk[:len(chunk)-len("}\n\n")]), `,"usage":{"prompt_tokens":2100,"total_tokens":2345,"completion_tokens":245}}`+"\n\n"...)
	null := append(bytes.Clone(chunk[:len(chunk)-len("}\n\n")]), `,"usage":null}`+"\n\n"...)
	for _, strip := range every {
		for name, pieces := range map[string][][]byte{"whole": {chunk}, "halves": {chunk[:100], chunk[100:]}, "running": {running}, "null": {null}} {
			b.Run(fmt.Sprintf("strip=%v/%s", strip, name), func(b *testing.B) {
				m := (&Backend{}).NewMeter("/chat/completions", true, strip)
				b.ReportAllocs()
				for b.Loop() {
					for _, p := range pieces {
						m.Read(p)
					}
				}
			})
		}
	}
}
