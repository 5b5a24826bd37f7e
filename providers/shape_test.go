package providers

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// told is what a meter makes of a stream in all.
type told struct {
	pass          string
	chunks, bytes int
	usage         Usage
	flags         string
}

func tellAll(m *streamMeter, reads [][]byte) (t told) {
	add := func(pass []byte, s Seen) {
		t.pass += string(pass)
		t.chunks += s.Chunks
		t.bytes += s.Bytes
		if s.Usage != nil {
			t.usage = *s.Usage
		}
		t.flags += fmt.Sprint(s.Reasoning, s.Done, s.Error, s.Bad, s.Moved, s.Tokens, s.Running, ";")
	}
	for _, r := range reads {
		add(m.Read(bytes.Clone(r)))
	}
	add(m.End())
	return t
}

// eventOf is an event as vLLM writes it, with key the text.
func eventOf(key, text string) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":{"` + key + `":"` + text + `"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
}

var shapes = []string{
	eventOf("content", "Hello"), eventOf("content", " you"), eventOf("content", ""), eventOf("content", `a \"b\"`), eventOf("content", "ü日"), eventOf("content", "a\xffb"),
	eventOf("reasoning_content", "So"), eventOf("reasoning_content", "what"), eventOf("role", "assistant"), eventOf("content", "x\ty"), eventOf("content", "<|\u0000|>"),
	strings.Replace(eventOf("content", "fin"), `"finish_reason":null`, `"finish_reason":"stop"`, 1),
	strings.Replace(eventOf("content", "use"), `}]}`, `}],"usage":null}`, 1), strings.Replace(eventOf("content", "use"), `}]}`, `}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, 1),
	strings.Replace(eventOf("content", "two"), `}]}`, `},{"index":1,"delta":{"content":"b"}}]}`, 1), strings.Replace(eventOf("content", "crlf"), "\n\n", "\r\n\r\n", 1),
	strings.Replace(eventOf("content", "print"), `}]}`, `}],"system_fingerprint":"fp"}`, 1), "event: error\n" + eventOf("content", "Hello"), ": ping\n\n", "\n", "data: [DONE]\n\n", "data: {}\n\n", "data: x\n\n",
	`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}` + "\n\n", "data: {\"error\":{\"message\":\"x\"}}\n\n",
}

// What is recognised by its shape is what would have been read: whatever comes, in
// whatever order, however it is cut, and whatever is taken out.
func FuzzShape(f *testing.F) {
	f.Add([]byte{0, 1, 1, 0, 11, 23, 20}, []byte{0, 0, 3}, uint8(StripEvent))
	f.Add([]byte{0, 1, 15, 1, 17, 1}, []byte{}, uint8(0))
	f.Add([]byte{6, 7, 0, 1, 12, 12, 16, 0}, []byte{200, 7}, uint8(StripEvent|StripNull|MovePrint))
	f.Fuzz(func(t *testing.T, events, cuts []byte, strip uint8) {
		if len(events) > 40 {
			return
		}
		var text []byte
		var reads [][]byte
		for i, e := range events {
			at := len(text)
			text = append(text, shapes[int(e)%len(shapes)]...)
			piece := text[at:]
			if i < len(cuts) && cuts[i] > 0 { // cut in two
				n := int(cuts[i]) % (len(piece) + 1)
				reads = append(reads, piece[:n])
				piece = piece[n:]
			}
			reads = append(reads, piece)
		}
		for range 4 { // and two, four and eight of those a read, so that reads end within events
			s := Strip(strip) & (StripEvent | StripNull | StripRunning | MovePrint)
			by, read := &streamMeter{strip: s}, &streamMeter{strip: s, shape: shape{off: true}}
			if got, want := tellAll(by, reads), tellAll(read, reads); got != want {
				t.Errorf("strip %v, %q:\nby shape %+v\nread     %+v", s, reads, got, want)
			}
			var pairs [][]byte
			for i := 0; i < len(reads); i += 2 {
				pairs = append(pairs, bytes.Join(reads[i:min(i+2, len(reads))], nil))
			}
			reads = pairs
		}
	})
}

// BenchmarkShapeInBulk is of reads that are cut where they end, as at full speed:
// budget 100 ns an event.
func BenchmarkShapeInBulk(b *testing.B) {
	const events, size = 150, 32 << 10
	text := []byte(strings.Repeat(eventOf("content", " token"), events*4))
	m := &streamMeter{strip: StripEvent}
	at, n := 0, 0
	for b.Loop() {
		if at+size > len(text) {
			m.Read(text[at:])
			at = 0
		}
		m.Read(text[at : at+size])
		at, n = at+size, n+size/(len(text)/(events*4))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
}

// A chunk that is recognised costs a fifth of one that is read: budget 100 ns.
func BenchmarkShape(b *testing.B) {
	for _, off := range []bool{false, true} {
		b.Run(fmt.Sprintf("off=%v", off), func(b *testing.B) {
			m := &streamMeter{strip: StripEvent, shape: shape{off: off}}
			event := []byte(eventOf("content", " token"))
			b.ReportAllocs()
			for b.Loop() {
				m.Read(event)
			}
		})
	}
}

func TestChunksAreRecognised(t *testing.T) {
	m := &streamMeter{strip: StripEvent}
	m.Read([]byte(eventOf("content", "Hello")))
	two := eventOf("content", " you") + eventOf("content", "!")
	if size, n, text := m.shape.count([]byte(two + eventOf("role", "x") + two)); size != len(two) || n != 2 || text != 5 {
		t.Errorf("%d bytes, %d events of %d bytes, want %d, 2 of 5", size, n, text, len(two))
	}
}
