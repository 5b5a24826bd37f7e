package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// redisURL gives a server on a socket a TCP port, for as long as the test runs.
func redisURL(t *testing.T, s *redistest.Server) string {
	return redisThrough(t, s, &wire{})
}

// wire is what the connections to a Redis do to what they carry.
type wire struct {
	delay atomic.Int64 // nanoseconds by which every answer is late
	armed atomic.Bool  // deaf from the next push of curves on
	deaf  atomic.Bool  // commands arrive and their answers are lost
}

// redisThrough is redisURL over w.
func redisThrough(t *testing.T, s *redistest.Server, w *wire) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", s.Addr)
			if err != nil {
				client.Close()
				continue
			}
			go forward(client, answers{server, w})
			go forward(server, commands{client, w})
		}
	}()
	return "redis://" + l.Addr().String() + "/0"
}

// forward copies until either side ends, then ends both.
func forward(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

// commands are on their way to the server.
type commands struct {
	net.Conn
	wire *wire
}

func (c commands) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.wire.armed.Load() && bytes.Contains(p[:n], []byte(":seq:")) {
		c.wire.deaf.Store(true)
	}
	return n, err
}

// answers are on their way back.
type answers struct {
	net.Conn
	wire *wire
}

func (a answers) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if a.wire.deaf.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	if d := time.Duration(a.wire.delay.Load()); d > 0 {
		<-time.After(d)
	}
	return n, err
}

// A restarted gateway knows its curves before it has served anything.
func TestARestartedGatewayKnowsItsCurves(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	engine := proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	file := gatewayConfig(t, engine.Ready["url"], "store: \""+redisURL(t, redis)+"\"\n")

	first := proctest.Start(t, nil, "serve", "-c", file)
	var known float64
	proctest.Until(t, "streams learned", func() bool { // by more streams where a busy machine made lumps of most tokens
		load(t, first, 8, 3)
		known = learned(t, first)
		return known >= most(8*3)
	})
	if code := first.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("ended with %d, want 0:\n%s", code, first.Log())
	}

	second := proctest.Start(t, nil, "serve", "-c", file)
	// At once, or with the next exchange where Redis is late beside all other tests.
	proctest.Until(t, fmt.Sprintf("after a restart: the %.0f tokens that the first one knew", known), func() bool {
		p := target(t, second)
		return float64(p.TokensSeen) >= 0.99*known && len(p.Points) > 0 && p.Points[0].TPS.Known()
	})
}

// What one gateway learns the other knows, and adds to.
func TestTwoGatewaysShareCurves(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	engine := proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	file := gatewayConfig(t, engine.Ready["url"], "replicas: 2\nstore: \""+redisURL(t, redis)+"\"\n")
	a, b := proctest.Start(t, nil, "serve", "-c", file), proctest.Start(t, nil, "serve", "-c", file)
	load(t, a, 4, 2)
	proctest.Until(t, "b knows what a learned", func() bool { return learned(t, b) >= most(4*2) })
	load(t, b, 8, 3)
	proctest.Until(t, "a knows more than its own streams can have taught", func() bool { return learned(t, a) > 4*2*(perStream-1) })
}

// Without its Redis a gateway serves on, and says so.
func TestRedisGoneServesOn(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	engine := proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], "store: \""+redisURL(t, redis)+"\"\n"))
	load(t, gateway, 2, 1)
	redis.Kill()
	load(t, gateway, 4, 2)
	proctest.Until(t, "pacer_store_up 0", func() bool {
		return strings.Contains(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), "\npacer_store_up 0")
	})
	known := learned(t, gateway)
	load(t, gateway, 4, 1)
	proctest.Until(t, "what was learned without Redis", func() bool { return learned(t, gateway) >= known+most(4) })
	if resp, err := http.Get(gateway.Ready["data"] + "/readyz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %v, %v; want 200: it serves", resp, err)
	}
}
