package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// What a request asks of the backend, in headers that every proxy passes on.
const (
	headerChunks = "X-Bench-Chunks"      // of the stream
	headerEvery  = "X-Bench-Interval-Us" // between two chunks; 0 = as fast as they are taken
)

// The answers. A chunk has the time at which it was written in its text, in
// nanoseconds and always as many digits.
const (
	document  = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"A short answer of a few words."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":8,"total_tokens":28}}`
	chunkHead = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"`
	chunkTail = `"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	lastChunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done      = "data: [DONE]\n\n"
)

// serveBackend is the backend's process: HTTP/1.1 by hand, so that it costs
// little beside what is measured.
func serveBackend() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("ready", l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			answer(c, bufio.NewReader(c))
		}()
	}
}

// answer answers the requests of one connection.
func answer(c net.Conn, r *bufio.Reader) {
	var body []byte
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if body, err = io.ReadAll(req.Body); err != nil {
			return
		}
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(document), document); err != nil {
				return
			}
			continue
		}
		chunks, _ := strconv.Atoi(req.Header.Get(headerChunks))
		every, _ := strconv.Atoi(req.Header.Get(headerEvery))
		if stream(c, chunks, time.Duration(every)*time.Microsecond, bytes.Contains(body, []byte("include_usage"))) != nil {
			return
		}
	}
}

// stream writes one stream, each event in a write and a chunk of its own.
func stream(c net.Conn, chunks int, every time.Duration, usage bool) error {
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	var out []byte
	send := func(event ...string) error {
		n := 0
		for _, e := range event {
			n += len(e)
		}
		out = strconv.AppendInt(out[:0], int64(n), 16)
		out = append(out, "\r\n"...)
		for _, e := range event {
			out = append(out, e...)
		}
		_, err := c.Write(append(out, "\r\n"...))
		return err
	}
	next := time.Now()
	for range chunks {
		if every > 0 {
			<-time.After(time.Until(next))
			next = next.Add(every)
		}
		if err := send(chunkHead, strconv.FormatInt(time.Now().UnixNano(), 10), chunkTail); err != nil {
			return err
		}
	}
	if err := send(lastChunk); err != nil {
		return err
	}
	if usage {
		if err := send(fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", chunks, chunks+20)); err != nil {
			return err
		}
	}
	if err := send(done); err != nil {
		return err
	}
	_, err := io.WriteString(c, "0\r\n\r\n")
	return err
}
