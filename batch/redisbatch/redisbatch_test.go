package redisbatch

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/batch/storetest"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
)

func TestStore(t *testing.T) {
	server := redistest.Start(t)
	n := 0
	storetest.Run(t, func(t *testing.T) batch.Store {
		n++
		conn := must.Get(redisconn.New(config.Store{Addrs: []string{server.Addr}, Prefix: "pacer" + string(rune('a'+n))}))(t)
		t.Cleanup(conn.Close)
		return Open(conn, 1000, time.Hour)
	})
}
