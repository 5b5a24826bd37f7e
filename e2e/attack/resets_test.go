package attack

import (
	"bytes"
	"crypto/tls"
	"io"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// A client of HTTP/2 that opens streams and resets them at once.
func rapidResets(v *victim) {
	c := must.Get(tls.Dial("tcp", v.addr, &tls.Config{RootCAs: v.trusted, ServerName: "127.0.0.1", NextProtos: []string{"h2"}}))(v)
	defer c.Close()
	var frames bytes.Buffer
	frame := func(kind, flags byte, stream uint32, payload []byte) {
		frames.Write([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)})
		frames.Write(payload)
	}
	frames.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	frame(4, 0, 0, nil)                                                                   // SETTINGS
	head := append([]byte{0x83, 0x87, 0x01, 1, 'x', 0x04, 20}, "/v1/chat/completions"...) // POST, https, :authority, :path
	const resets = 20_000
	for i := range uint32(resets) {
		frame(1, 4, 2*i+1, head)               // HEADERS, without END_STREAM
		frame(3, 0, 2*i+1, []byte{0, 0, 0, 8}) // RST_STREAM: CANCEL
	}
	go io.Copy(io.Discard, c)
	_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
	begun := time.Now()
	sent, err := c.Write(frames.Bytes())
	v.Logf("%d of %d bytes of resets taken within %v: %v", sent, frames.Len(), time.Since(begun).Round(time.Millisecond), err)
	resp, err := v.client.Get("https://" + v.addr + "/healthz")
	if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		v.Fatalf("afterwards: %v (%v), want 200 over HTTP/2", resp, err)
	}
	resp.Body.Close()
	proctest.Until(v, "nothing of it is left", func() bool {
		return v.metric("pacer_inflight{") <= 9 // those who are served
	})
}
