package redisstore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

// The whole suite on a cluster of one node, which refuses a script whose keys
// lie in different slots as any cluster does.
// Left alone, every node that listens on a socket takes 10000 for its bus.
func TestRedisCluster(t *testing.T) {
	s := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-port", redistest.FreePort(t), "--bind", "127.0.0.1")
	s.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(s.Do("CLUSTER", "INFO").(string), "cluster_state:ok"); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("the cluster is not ready:\n%s", s.Do("CLUSTER", "INFO"))
		}
	}
	conn, err := redisconn.Open(redisconn.Options{
		Store: config.Store{Addrs: []string{"node-a:6379", "node-b:6379"}, Prefix: "pacer"},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { // the node has no address of its own
			return (&net.Dialer{}).DialContext(ctx, "unix", s.Addr)
		},
		IOTimeout: patience,
	})
	must.Do(t, err)
	t.Cleanup(conn.Close)
	storetest.Run(t, func(*testing.T) storetest.Subject {
		s.Do("FLUSHALL")
		s.Do("SCRIPT", "FLUSH")
		return subject(s, func() profiles.Store {
			return redisstore.Open(redisstore.Options{Conn: conn, HalfLife: storetest.HalfLife, Timeout: patience})
		})
	})
}
