//go:build unix

package gateway

import (
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/translate"
)

// translatedChunks are a piece of text as each API streams it.
var translatedChunks = map[translate.Name]string{
	translate.Chat:     delta,
	translate.Messages: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and\"}}\n\n",
	translate.Gemini: `data: {"candidates":[{"content":{"parts":[{"text":" and"}],"role":"model"},"index":0}],` +
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":12,"totalTokenCount":21},"modelVersion":"gemini-2.5-pro","responseId":"r1"}` + "\r\n\r\n",
}

// A chunk that is translated costs at most twice one of the same API that is passed
// on, both without the kernel's share, and allocates nothing.
func BenchmarkRelayTranslated(b *testing.B) {
	for _, c := range []struct {
		name     string
		from, to translate.Name
	}{
		{"chat as it is", translate.Chat, translate.None},
		{"chat to messages", translate.Chat, translate.Messages},
		{"chat to responses", translate.Chat, translate.Responses},
		{"chat to gemini", translate.Chat, translate.Gemini},
		{"messages as it is", translate.Messages, translate.None},
		{"messages to chat", translate.Messages, translate.Chat},
		{"gemini as it is", translate.Gemini, translate.None},
		{"gemini to chat", translate.Gemini, translate.Chat},
		{"gemini to messages", translate.Gemini, translate.Messages},
	} {
		b.Run(c.name, func(b *testing.B) {
			chunk := translatedChunks[c.from]
			h := openWith(b, settings("a"), nil, houseOptions{})
			x := relayed(b, h, &repeat{chunk: chunk, n: b.N})
			switch {
			case c.to == translate.None && c.from == translate.Messages:
				x.attempt.answer.meter = x.attempt.backend.NewMeter("/messages", true, 0)
			case c.to == translate.None && c.from == translate.Gemini:
				x.attempt.answer.meter = &streamTranslator{Stream: translate.NewStream(c.from, c.from, translate.Reply{Plain: true})}
			case c.to != translate.None:
				x.attempt.answer.meter = &streamTranslator{Stream: translate.NewStream(c.from, c.to, translate.Reply{ID: "1", Model: "m"})}
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(chunk)))
			b.ResetTimer()
			before := cpuTime(b)
			err := x.relay()
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			b.StopTimer()
			if err == nil {
				b.Fatal("a stream without an end was taken for whole")
			}
			x.settle(err)
		})
	}
}

// cpuTime is what the process has used, in nanoseconds: other processes may take the
// cores away, and this does not count them.
func cpuTime(b *testing.B) int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
