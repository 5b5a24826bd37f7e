package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/openai"
)

// look reads the pieces with the meter of a path, each from memory that is
// overwritten afterwards.
func look(path string, stream bool, strip Strip, pieces ...[]byte) (sum total) {
	m := (&Backend{}).NewMeter(path, stream, strip)
	buf := make([]byte, 0, 64)
	for _, p := range pieces {
		buf = append(buf[:0], p...)
		sum.add(m.Read(buf))
		clear(buf)
	}
	sum.add(m.End())
	return sum
}

// checkCuts reads a stream byte by byte, which cuts it everywhere, and cut in
// two at some hundred places.
func checkCuts(t *testing.T, path string, strip Strip, stream []byte, want total) {
	t.Helper()
	check := func(how string, got total) {
		t.Helper()
		if got != want {
			t.Fatalf("%s, %s:\ngot  %+v\nwant %+v", path, how, got, want)
		}
	}
	check("whole", look(path, true, strip, stream))
	check("byte by byte", look(path, true, strip, bytewise(stream)...))
	for cut := 1; cut < len(stream); cut += 1 + len(stream)/300 {
		check(fmt.Sprintf("cut at %d", cut), look(path, true, strip, stream[:cut], stream[cut:]))
	}
}

// recorded are the streams with typed events, and what is in them.
var recorded = map[string]total{
	"responses-openai":         {Chunks: 3, Bytes: 4 + 9 + 1, Usage: Usage{37, 32, 5, 0, 0, 0}, Done: true},
	"responses-openai-tools":   {Chunks: 2 + 1 + 3, Bytes: 9 + 9 + 11 + 2 + 6 + 8, Reasoning: true, Usage: Usage{61, 0, 145, 128, 0, 0}, Done: true},
	"responses-openai-failed":  {Chunks: 1, Bytes: 2, Error: true, Done: true},
	"responses-openai-error":   {Error: true, Done: true},
	"responses-vllm":           {Chunks: 5, Bytes: 4 + 5 + 3 + 3 + 2, Reasoning: true, Usage: Usage{71, 64, 9, 3, 0, 0}, Done: true},
	"responses-llamacpp":       {Chunks: 3, Bytes: 2 + 2 + 5, Usage: Usage{11, 4, 3, 0, 0, 0}, Done: true},
	"responses-llamacpp-error": {Chunks: 1, Bytes: 2, Error: true},
	"responses-ollama":         {Chunks: 3, Bytes: 3 + 4 + 9, Reasoning: true, Usage: Usage{30, 0, 17, 0, 0, 0}, Done: true},
	"messages-anthropic":       {Chunks: 2 + 3 + 1 + 2, Bytes: 6 + 6 + 4 + 9 + 4 + 11 + 12 + 9, Reasoning: true, Usage: Usage{2572, 2000, 89, 0, 0, 0}, Done: true},
	"messages-anthropic-error": {Chunks: 1, Bytes: 2, Error: true, Done: true},
	"messages-vllm":            {Chunks: 3, Bytes: 4 + 1 + 3, Reasoning: true, Usage: Usage{18, 0, 6, 0, 0, 0}, Done: true},
	"messages-sglang":          {Chunks: 1, Bytes: 4, Usage: Usage{123, 0, 45, 0, 0, 0}, Done: true},
	"messages-llamacpp":        {Chunks: 2 + 1 + 2, Bytes: 2 + 2 + 4 + 4 + 3, Usage: Usage{11, 4, 12, 0, 0, 0}, Done: true},
	"messages-llamacpp-error":  {Chunks: 1, Bytes: 2, Error: true, Done: true},
	"messages-ollama":          {Chunks: 2 + 1 + 1, Bytes: 3 + 4 + 4 + 9, Usage: Usage{26, 0, 21, 0, 0, 0}, Done: true},
	"transcription-openai":     {Chunks: 3, Bytes: 1 + 4 + 6, Usage: Usage{14, 0, 45, 0, 14, 0}, Done: true},
	"transcription-vllm":       {Chunks: 3, Bytes: 5 + 4 + 7, Usage: Usage{10, 0, 5, 0, 0, 0}, Done: true},
	"transcription-llamacpp":   {Chunks: 2, Bytes: 3 + 3, Usage: Usage{55, 0, 3, 0, 0, 0}, Done: true},
	"speech-openai":            {Chunks: 2, Usage: Usage{14, 0, 101, 0, 0, 0}, Done: true},
	"images-openai":            {Chunks: 3, Usage: Usage{50, 0, 50, 0, 0, 0}, Done: true},
}

var pathOf = map[string]string{
	"responses": "/responses", "messages": "/messages", "transcription": "/audio/transcriptions",
	"speech": "/audio/speech", "images": "/images/generations",
}

func eventStreams(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/events/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatal("no streams in testdata/events", err)
	}
	streams := map[string][]byte{}
	for _, f := range files {
		b := must.Get(os.ReadFile(f))(t)
		streams[strings.TrimSuffix(filepath.Base(f), ".sse")] = b
	}
	return streams
}

func TestEventStreams(t *testing.T) {
	streams := eventStreams(t)
	if len(streams) != len(recorded) {
		t.Errorf("%d streams, %d expectations", len(streams), len(recorded))
	}
	for name, stream := range streams {
		want, ok := recorded[name]
		if !ok {
			t.Errorf("nothing is expected of %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			dialect, _, _ := strings.Cut(name, "-")
			want.HasUsage, want.passed = want.Usage != Usage{}, string(stream)
			checkCuts(t, pathOf[dialect], StripEvent, stream, want)
			// The final blank line may be missing.
			short := bytes.TrimRight(stream, "\r\n")
			want.passed = string(short)
			if got := look(pathOf[dialect], true, 0, short); got != want {
				t.Errorf("without its last blank line:\ngot  %+v\nwant %+v", got, want)
			}
		})
	}
}

// Chat streams that are not as they should be.
func TestBrokenChatStreams(t *testing.T) {
	for name, want := range map[string]total{
		"llamacpp-error":     {Chunks: 1, Bytes: 2, Error: true},
		"tgi-error":          {Chunks: 1, Bytes: 2, Error: true},
		"sglang-full":        {Error: true, Done: true},
		"ollama":             {Chunks: 4, Bytes: 2 + 2 + 2 + 4 + 9, Reasoning: true, Usage: Usage{26, 0, 21, 0, 0, 0}, HasUsage: true, Done: true},
		"ollama-completions": {Chunks: 2, Bytes: 9, Usage: Usage{5, 0, 3, 0, 0, 0}, HasUsage: true, Done: true},
	} {
		stream := readStream(t, name)
		want.passed = stripped(string(stream), "\n\n", StripEvent)
		if n := strings.Count(string(stream), "data:") - strings.Count(want.passed, "data:"); n > 1 || (n == 1) != want.HasUsage {
			t.Fatalf("%s: the oracle takes %d events out", name, n)
		}
		checkCuts(t, "/chat/completions", StripEvent, stream, want)
	}
}

// A usage of zeros in each chunk is no count.
func TestZerosAreNoUsage(t *testing.T) {
	m := (&Backend{}).NewMeter("/completions", true, 0)
	for event := range bytes.SplitSeq(readStream(t, "ollama-completions"), []byte("\n\n")) {
		if _, seen := m.Read(append(bytes.Clone(event), "\n\n"...)); seen.Usage != nil && seen.Usage.CompletionTokens == 0 {
			t.Errorf("%s: %+v", event, *seen.Usage)
		}
	}
}

// What Ollama adds to completions because it was asked goes out again.
func TestOllamaAsItWouldBeUnasked(t *testing.T) {
	b := newKind(t, Options{Kind: "ollama", BaseURL: "http://h/v1"})
	stream := readStream(t, "ollama-completions")
	for _, tt := range []struct{ body, want string }{
		{`{"model":"m","stream":true}`, stripped(string(stream), "\n\n", StripEvent|StripRunning)},
		{`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, string(stream)},
	} {
		r := must.Get(openai.Peek([]byte(tt.body)))(t)
		_, strip := b.Usage("/completions", &r)
		var passed []byte
		m := b.NewMeter("/completions", true, strip)
		for _, p := range bytewise(stream) {
			pass, _ := m.Read(p)
			passed = append(passed, pass...)
		}
		pass, _ := m.End()
		if passed = append(passed, pass...); string(passed) != tt.want {
			t.Errorf("%s:\npassed %q\nwant   %q", tt.body, passed, tt.want)
		}
	}
	r, _ := openai.Peek([]byte(`{"model":"m","stream":true}`))
	if _, strip := b.Usage("/chat/completions", &r); strip != StripEvent {
		t.Errorf("chat: %v is stripped, want the event alone", strip)
	}
}

// An event of megabytes passes and, although it cannot be read, ends its
// stream, if its name says so.
func TestLargeEvents(t *testing.T) {
	large := strings.Repeat("x", 3<<20)
	for _, tt := range []struct {
		name, path, stream string
		want               total
	}{
		{"completed", "/responses", "event: response.completed\ndata: {\"response\":\"" + large + "\"}\n\n", total{Done: true}},
		{"failed", "/responses", "event: response.failed\ndata: {\"response\":\"" + large + "\"}\n\n", total{Done: true, Error: true}},
		{"delta", "/responses", "event: response.function_call_arguments.delta\ndata: {\"delta\":\"" + large + "\"}\n\nevent: response.completed\ndata: {}\n\n", total{Chunks: 1, Done: true}},
		{"Messages delta", "/messages", "event: content_block_delta\ndata: {\"delta\":\"" + large + "\"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", total{Chunks: 1, Done: true}},
		{"message_delta", "/messages", "event: message_delta\ndata: {\"delta\":\"" + large + "\"}\n\n", total{}},
		{"image", "/images/generations", "event: image_generation.completed\ndata: {\"b64_json\":\"" + large + "\"}\n\n", total{Done: true}},
		{"no name", "/responses", "data: {\"type\":\"response.completed\",\"response\":\"" + large + "\"}\n\n", total{}},
		{"lines", "/responses", "event: error\n" + strings.Repeat("data: "+large[:1<<19]+"\n", 6) + "\n", total{Error: true, Done: true}},
	} {
		for _, size := range []int{len(tt.stream), 32 << 10, 4095} {
			m, got, passed := (&Backend{}).NewMeter(tt.path, true, 0), total{}, 0
			for rest := []byte(tt.stream); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				p := rest[:min(size, len(rest))]
				pass, seen := m.Read(p)
				if passed += len(pass); !strings.HasPrefix(tt.stream[passed-len(pass):], string(pass)) {
					t.Fatalf("%s in pieces of %d: %d bytes passed, or others", tt.name, size, len(pass))
				}
				got.add(nil, seen)
			}
			end, seen := m.End()
			if got.add(nil, seen); got != tt.want || passed+len(end) != len(tt.stream) {
				t.Errorf("%s in pieces of %d: got %+v, want %+v", tt.name, size, got, tt.want)
			}
		}
	}
}

func TestANamedEventWithoutItsDataGoesNowhere(t *testing.T) {
	m := (&Backend{}).NewMeter("/messages", true, 0)
	if pass, _ := m.Read([]byte("event: content_block_delta\ndata: ")); len(pass) > 0 {
		t.Errorf("%q went on", pass)
	}
	if pass, _ := m.End(); len(pass) > 0 {
		t.Errorf("at the end %q went on", pass)
	}
}

func TestEventsThatAreNone(t *testing.T) {
	for stream, want := range map[string]total{
		": ping\n\n":                {},
		"data:\n\n":                 {},
		"event: ping\ndata: {}\n\n": {},
		"data: hello\n\n":           {Bad: true},
		"data: {\"type\":\n\n":      {Bad: true},
		"data: [DONE]\n\n":          {Done: true},
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n":    {Chunks: 1, Bytes: 1},
		"id: 1\ndata: {\"type\":\"message_stop\",\ndata: \"x\":1}\n\n": {Done: true},
	} {
		want.passed = stream
		checkCuts(t, "/messages", StripEvent, []byte(stream), want)
	}
}

// FuzzEventMeter: what comes in goes out, and how it was cut changes nothing.
func FuzzEventMeter(f *testing.F) {
	for _, b := range eventStreams(f) {
		f.Add(b, uint64(0x17_03_29))
	}
	f.Add([]byte("event: message_delta\r\ndata: {\"usage\":{\"input_tokens\":1}}\r\r\n\ndata: {\"type\":\"error\"}"), uint64(0x203))
	f.Fuzz(func(t *testing.T, stream []byte, sizes uint64) {
		for _, path := range []string{"/responses", "/images/generations"} {
			want := look(path, true, StripEvent|StripRunning, stream)
			if want.passed != string(stream) {
				t.Fatalf("%q: passed %q", stream, want.passed)
			}
			check := func(how string, got total) {
				t.Helper()
				if got != want {
					t.Fatalf("%q %s:\ngot  %+v\nwant %+v", stream, how, got, want)
				}
			}
			check("byte by byte", look(path, true, StripEvent|StripRunning, bytewise(stream)...))
			var pieces [][]byte
			for rest, s := stream, sizes; len(rest) > 0; s = s>>8 | s<<56 {
				n := min(int(s&0xFF)+1, len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			check(fmt.Sprintf("in %d pieces", len(pieces)), look(path, true, StripEvent|StripRunning, pieces...))
		}
		m := (&Backend{}).NewMeter("/responses", true, 0)
		m.Read(stream)
		_, data, _ := bytes.Cut(m.ErrorEvent("broke"), []byte("data: "))
		if !json.Valid(data) {
			t.Fatalf("after %q the error event is %q", stream, data)
		}
	})
}

var eventChunks = map[string]string{
	"/responses": "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":41,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654","output_index":0,"content_index":0,"delta":" token","logprobs":[],"obfuscation":"Xk2Vb9cQ"}` + "\n\n",
	"/messages":  "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}` + "\n\n",
}

func TestEventReadAllocatesNothing(t *testing.T) {
	for path, chunk := range eventChunks {
		m := (&Backend{}).NewMeter(path, true, 0)
		usage := []byte("event: message_delta\ndata: {\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}\n\n")
		for range 2 {
			m.Read([]byte(chunk[:40]))
			m.Read([]byte(chunk[40:]))
		}
		for name, pieces := range map[string][][]byte{
			"whole": {[]byte(chunk)}, "in two": {[]byte(chunk[:50]), []byte(chunk[50:])}, "usage": {usage},
		} {
			if n := testing.AllocsPerRun(100, func() {
				for _, p := range pieces {
					m.Read(p)
				}
			}); n > 0 {
				t.Errorf("%s %s: %v allocations, want 0", path, name, n)
			}
		}
	}
}

// Budget: 500 ns and no allocation for a read with one event.
func BenchmarkEventMeter(b *testing.B) {
	for path, chunk := range eventChunks {
		b.Run(path[1:], func(b *testing.B) {
			m := (&Backend{}).NewMeter(path, true, 0)
			p := []byte(chunk)
			b.ReportAllocs()
			for b.Loop() {
				m.Read(p)
			}
		})
	}
}
