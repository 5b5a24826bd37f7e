package translate

import (
	"bytes"
	"testing"
)

const (
	chatChunk    = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"big","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
	geminiChunk  = `data: {"candidates":[{"content":{"parts":[{"text":"word "}],"role":"model"},"index":0}],"modelVersion":"gemini-2.5-pro","responseId":"r1"}` + "\r\n\r\n"
	messageChunk = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n"
)

// A chunk costs its scan, one reading of its JSON and what is appended: budget 2 µs
// and no allocation.
func BenchmarkChunk(b *testing.B) {
	for name, c := range map[string]struct {
		from, to Name
		chunk    string
	}{
		"chat to messages":   {Chat, Messages, chatChunk},
		"messages to chat":   {Messages, Chat, messageChunk},
		"chat to gemini":     {Chat, Gemini, chatChunk},
		"gemini to chat":     {Gemini, Chat, geminiChunk},
		"gemini to messages": {Gemini, Messages, geminiChunk},
		"messages to gemini": {Messages, Gemini, messageChunk},
	} {
		b.Run(name, func(b *testing.B) {
			s := NewStream(c.from, c.to, Reply{ID: "x", Model: "m"})
			chunk := []byte(c.chunk)
			s.Feed(chunk)
			b.ReportAllocs()
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if out, look := s.Feed(chunk); look.Chunks != 1 || !bytes.Contains(out, []byte("word ")) {
					b.Fatalf("%q %+v", out, look)
				}
			}
		})
	}
}
