package h1client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// slowClose is a connection whose end takes until the server has answered it.
type slowClose struct {
	net.Conn
	half     sync.Once
	answered chan struct{}
}

// CloseWrite tells the server that the client goes; it does not return before what
// the server says to that was read.
func (c *slowClose) CloseWrite() error {
	err := c.Conn.(*net.TCPConn).CloseWrite()
	<-c.answered
	return err
}

func (c *slowClose) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.half.Do(func() { close(c.answered) })
	return n, err
}

// A handler that ends because its client has gone lets net/http write an empty 200.
// That is no answer to a request that was given up.
func TestAnAnswerToOurGoingIsNone(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	asked := make(chan struct{})
	var server sync.WaitGroup
	server.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		close(asked)
		_, _ = io.Copy(io.Discard, r) // until the client goes
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	client := New(Options{Addr: l.Addr().String(), ConnectTimeout: time.Minute, IdleTimeout: time.Minute, MaxIdle: 1, MaxHead: maxHead, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &slowClose{Conn: c, answered: make(chan struct{})}, err
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	resp, err := client.Do(ctx, &Request{Head: []byte("GET /models HTTP/1.1\r\nHost: engine\r\n\r\n")})
	if err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the end of a request that was given up is %v, %v, want that it was given up", resp, err)
	}
	server.Wait()
}
