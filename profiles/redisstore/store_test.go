package redisstore_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRedis(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		s := redistest.Start(t)
		return subject(s, func() profiles.Store { return store(t, s) })
	})
}

// patience is what a real server is given where its slowness is not what is
// tested: the machine may be busy.
const patience = 20 * time.Second

// subject is a store as open makes it on s.
func subject(s *redistest.Server, open func() profiles.Store) storetest.Subject {
	return storetest.Subject{Store: open(), Reopen: open, Pass: func(d time.Duration) { pass(s, d) }}
}

// pass lets d go by: a clock that cannot be moved is behind by d when what it
// stamped is.
func pass(s *redistest.Server, d time.Duration) {
	for _, key := range s.Do("KEYS", "*:sums:*").([]any) {
		if s.Do("HEXISTS", key, "@slow").(int64) == 1 {
			s.Do("HINCRBY", key, "@slow", -d.Milliseconds())
		}
	}
}

// store is one replica's store on s, which asks again a millisecond after a
// failure.
func store(t testing.TB, s *redistest.Server) *redisstore.Store {
	t.Helper()
	return redisstore.Open(redisstore.Options{Conn: s.Client(t), HalfLife: storetest.HalfLife, Timeout: patience})
}
