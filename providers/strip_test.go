package providers

import (
	"strings"
	"testing"
)

// eventBodies are what a scripted stream is made of; the first three are
// stripped.
var eventBodies = []string{
	`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
	`data:{"id":"é","usage":{"completion_tokens":3,"prompt_tokens":1},"choices" : [ ]}`,
	"id: 7\ndata: {\"choices\":[],\ndata: \"usage\":{\"completion_tokens\":4}}",
	`data: {"choices":[{"index":0,"delta":{"content":"é\"choices\":[]"}}]}`,
	`data: {"choices":[],"prompt_filter_results":[{}],"usage":{"completion_tokens":1}}`,
	`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":5}}`,
	`data: {"choices":[],"usage":{},"error":{"message":"x"}}`,
	"event: error\ndata: {\"choices\":[],\"usage\":{}}",
	`data: {"choices":[]}`,
	"data: [DONE]",
	"event: ping",
}

const strippedBodies = 3

// scripted makes a stream of a script: what of it may go out is known from how
// it was made, not from reading it. All lines of a stream end alike: behind a CR
// of one event an LF of the next would be part of the first.
func scripted(script []byte) (stream, passed string) {
	var in, out strings.Builder
	for _, b := range script {
		end := [...]string{"\n", "\r\n", "\r", "\n"}[script[0]>>4&3]
		body := eventBodies[int(b&0x0F)%len(eventBodies)]
		body = strings.ReplaceAll(body, "\n", end)
		comment := ""
		if b&0x40 != 0 {
			comment = ": ping é" + end
		}
		if b&0x80 != 0 {
			comment += end // a blank line, of which nothing comes
		}
		in.WriteString(comment + body + end + end)
		out.WriteString(comment)
		if int(b&0x0F)%len(eventBodies) >= strippedBodies {
			out.WriteString(body + end + end)
		}
	}
	return in.String(), out.String()
}

// FuzzStrip: what goes out is what came in, less exactly the usage events,
// however it is cut.
func FuzzStrip(f *testing.F) {
	f.Add([]byte{3, 3, 5, 0, 9}, uint64(0x0703))
	f.Add([]byte{4, 0x13, 0x51, 0x22, 0xE0, 0x29}, uint64(0x01))
	f.Add([]byte{0, 0, 0x10, 0x11, 0x12, 0x20, 0x21, 0x22}, uint64(0x3F0105))
	f.Fuzz(func(t *testing.T, script []byte, sizes uint64) {
		if len(script) > 64 {
			return
		}
		stream, want := scripted(script)
		var pieces [][]byte
		for rest, s := []byte(stream), sizes; len(rest) > 0; s = s>>8 | s<<56 {
			n := min(int(s&0x7F)+1, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		for _, cut := range [][][]byte{{[]byte(stream)}, bytewise([]byte(stream)), pieces} {
			if got := meter(StripEvent, cut...); got.passed != want {
				t.Fatalf("%q in %d pieces:\npassed %q\nwant   %q", stream, len(cut), got.passed, want)
			}
			if got := meter(0, cut...); got.passed != stream {
				t.Fatalf("%q in %d pieces, nothing to strip: passed %q", stream, len(cut), got.passed)
			}
		}
	})
}
