package redisstore_test

import (
	"context"
	"net"
	"testing"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

// before is a connection that calls first before each of its writes.
type before struct {
	net.Conn
	first func()
}

func (b before) Write(p []byte) (int, error) {
	b.first()
	return b.Conn.Write(p)
}

// A gateway that knows the old sums looks before every step of an import. It never finds
// them missing, so it puts nothing back, and what was imported stands.
func TestAGatewayMeetsNoGapInAnImport(t *testing.T) {
	s := redistest.Start(t)
	gateway := store(t, s)
	target := profiles.Target{Backend: "gpu", Model: "m"}
	must.Get(gateway.Adopt(t.Context(), map[profiles.Target]profiles.Sums{target: storetest.Learned(10)}, false))(t)
	look := func() {
		if got, err := gateway.Load(t.Context(), []profiles.Target{target}); err != nil || len(got) != 1 {
			t.Errorf("the gateway finds %d targets, %v", len(got), err)
		}
	}
	look()
	looked := 0
	conn, err := redisconn.Open(redisconn.Options{
		Store: config.Store{Addrs: []string{s.Addr}, Prefix: "pacer"}, IOTimeout: patience,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", s.Addr)
			return before{c, func() { looked++; look() }}, err
		},
	})
	must.Do(t, err)
	t.Cleanup(conn.Close)
	importer := redisstore.Open(redisstore.Options{Conn: conn, HalfLife: storetest.HalfLife, Timeout: patience})
	want := storetest.Learned(30)
	if left, err := importer.Adopt(t.Context(), map[profiles.Target]profiles.Sums{target: want}, true); err != nil || len(left) != 0 {
		t.Fatalf("left %v, %v", left, err)
	}
	if looked < 2 {
		t.Fatalf("the gateway has looked %d times between steps: this has shown nothing", looked)
	}
	for range 2 {
		got := must.Get(gateway.Load(t.Context(), []profiles.Target{target}))(t)
		storetest.Same(t, "what was imported", got[target], want)
	}
}
