package bench

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// What a request asks of the backend, in headers that every proxy passes on.
const (
	headerChunks = "X-Bench-Chunks"      // of the stream
	headerEvery  = "X-Bench-Interval-Us" // between two chunks; 0 = as fast as they are taken
	headerHold   = "X-Bench-Hold"        // a name: behind the chunks nothing comes until the connection ends
)

// pathEnded, behind which a name stands, says when the connection ended that was held
// under it.
const pathEnded = "/ended/"

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
// little beside what is measured. Its arguments are a certificate and its key; without
// any it is plain.
func serveBackend() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if len(os.Args) == 3 {
		certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
		if err != nil {
			return err
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}})
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
		if name, asked := bytes.CutPrefix([]byte(req.URL.Path), []byte(pathEnded)); asked {
			at := strconv.FormatInt(<-heldAs(string(name)), 10)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(at), at)
			return
		}
		if name := req.Header.Get(headerHold); name != "" {
			hold(c, r, req, name)
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

// held are the ends of connections, in nanoseconds of the clock, by name.
var held sync.Map

func heldAs(name string) chan int64 {
	ended, _ := held.LoadOrStore(name, make(chan int64, 1))
	return ended.(chan int64)
}

// hold answers with the chunks that req asks for, if any, and says nothing more until
// the connection ends.
func hold(c net.Conn, r *bufio.Reader, req *http.Request, name string) {
	chunks, _ := strconv.Atoi(req.Header.Get(headerChunks))
	every, _ := strconv.Atoi(req.Header.Get(headerEvery))
	if s := (&sender{conn: c}); chunks > 0 && s.chunks(chunks, time.Duration(every)*time.Microsecond) != nil {
		return
	}
	_, _ = r.ReadByte()
	heldAs(name) <- time.Now().UnixNano()
}

// sender writes a stream, each event in a write and a chunk of its own.
type sender struct {
	conn net.Conn
	out  []byte
}

func (s *sender) send(event ...string) error {
	n := 0
	for _, e := range event {
		n += len(e)
	}
	s.out = append(strconv.AppendInt(s.out[:0], int64(n), 16), "\r\n"...)
	for _, e := range event {
		s.out = append(s.out, e...)
	}
	s.out = append(s.out, "\r\n"...)
	_, err := s.conn.Write(s.out)
	return err
}

// chunks writes the head and so many chunks with a token.
func (s *sender) chunks(chunks int, every time.Duration) error {
	if _, err := io.WriteString(s.conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	next := time.Now()
	for range chunks {
		if every > 0 {
			<-time.After(time.Until(next))
			next = next.Add(every)
		}
		if err := s.send(chunkHead, strconv.FormatInt(time.Now().UnixNano(), 10), chunkTail); err != nil {
			return err
		}
	}
	return nil
}

// stream writes one stream.
func stream(c net.Conn, chunks int, every time.Duration, usage bool) error {
	s := &sender{conn: c}
	if err := s.chunks(chunks, every); err != nil {
		return err
	}
	if err := s.send(lastChunk); err != nil {
		return err
	}
	if usage {
		if err := s.send(fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", chunks, chunks+20)); err != nil {
			return err
		}
	}
	if err := s.send(done); err != nil {
		return err
	}
	_, err := io.WriteString(c, "0\r\n\r\n")
	return err
}
