//go:build unix

package gateway

import (
	"encoding/binary"
	"hash/crc32"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/translate"
)

// translatedChunks are a piece of text as each API streams it.
var translatedChunks = map[translate.Name]string{
	translate.Chat:     delta,
	translate.Messages: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and\"}}\n\n",
	translate.Gemini: `data: {"candidates":[{"content":{"parts":[{"text":" and"}],"role":"model"},"index":0}],` +
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":12,"totalTokenCount":21},"modelVersion":"gemini-2.5-pro","responseId":"r1"}` + "\r\n\r\n",
	translate.Cohere:   cohereWord,
	translate.Converse: bedrockFrame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":" and"},"p":"abcdefghijklmnop"}`),
}

// bedrockFrame is a message of AWS's event stream.
func bedrockFrame(kind, payload string) string {
	var head []byte
	for _, h := range [][2]string{{":event-type", kind}, {":content-type", "application/json"}, {":message-type", "event"}} {
		head = append(append(head, byte(len(h[0]))), h[0]...)
		head = append(binary.BigEndian.AppendUint16(append(head, 7), uint16(len(h[1]))), h[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, head...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// A chunk that is translated costs at most twice one of the same API that is passed
// on, both without the kernel's share, and allocates nothing but for responses. Of
// Bedrock's none is passed on.
func BenchmarkRelayTranslated(b *testing.B) {
	for _, from := range []translate.Name{translate.Chat, translate.Messages, translate.Gemini, translate.Cohere, translate.Converse} {
		if from != translate.Converse {
			b.Run(from.String()+" as it is", func(b *testing.B) { benchmarkRelay(b, from, translate.None) })
		}
		for _, to := range []translate.Name{translate.Chat, translate.Messages, translate.Responses, translate.Gemini, translate.Cohere} {
			if from != to || from == translate.Chat { // a chat for OpenAI's clients of Mistral's
				b.Run(from.String()+" to "+to.String(), func(b *testing.B) { benchmarkRelay(b, from, to) })
			}
		}
	}
}

func benchmarkRelay(b *testing.B, from, to translate.Name) {
	chunk := translatedChunks[from]
	h := openWith(b, settings("a"), nil, houseOptions{})
	x := relayed(b, h, &repeat{chunk: chunk, n: b.N})
	switch {
	case to != translate.None:
		x.attempt.answer.meter = &streamTranslator{Stream: translate.NewStream(from, to, translate.Reply{ID: "1", Model: "m"})}
	case from == translate.Messages:
		x.attempt.answer.meter = x.attempt.backend.NewMeter("/messages", true, 0)
	case from != translate.Chat:
		x.attempt.answer.meter = &streamTranslator{Stream: translate.NewStream(from, from, translate.Reply{Plain: true})}
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
}

// cpuTime is what the process has used, in nanoseconds: other processes may take the
// cores away, and this does not count them.
func cpuTime(b *testing.B) int64 {
	var r syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return r.Utime.Nano() + r.Stime.Nano()
}
