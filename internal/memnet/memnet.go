// Package memnet is a network inside the process, for tests in virtual time:
// named listeners, connections over net.Pipe.
package memnet

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
)

// ErrRefused is what Dial returns when nobody listens.
var ErrRefused = errors.New("memnet: connection refused")

// Network is a set of listeners by "host:port". The zero value is empty and
// ready; it is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	ports     int // given out for port 0
}

// firstPort is the first that Listen gives out for port 0.
const firstPort = 40001

// Listen opens addr, which must be free. Port 0 stands for a free one.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	if host, ok := strings.CutSuffix(addr, ":0"); ok {
		addr = host + ":" + strconv.Itoa(firstPort+n.ports)
		n.ports++
	}
	if n.listeners[addr] != nil {
		return nil, errors.New("memnet: address in use: " + addr)
	}
	l := &listener{network: n, addr: addr, accept: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to addr. It has the form of net.Dialer.DialContext.
func (n *Network) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, ErrRefused
	}
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		return nil, ErrRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	network *Network
	addr    string
	accept  chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		delete(l.network.listeners, l.addr)
		l.network.mu.Unlock()
	})
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.addr) }

type addr string

func (addr) Network() string  { return "memnet" }
func (a addr) String() string { return string(a) }
