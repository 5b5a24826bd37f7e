package redisbatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// An owner who is not alone has half of the entries that there may be.
func TestEntriesOfAnOwner(t *testing.T) {
	server := redistest.Start(t)
	conn := must.Get(redisconn.New(config.Store{Addrs: []string{server.Addr}, Prefix: "pacer"}))(t)
	t.Cleanup(conn.Close)
	s := Open(conn, 1000, time.Hour)
	var entries []any
	for i := range mostKept / 2 {
		entries = append(entries, mark("o")+fmt.Sprint(i), 0)
	}
	must.Do(t, conn.Do(t.Context(), func(ctx context.Context, rdb redis.UniversalClient) error {
		return rdb.HSet(ctx, s.key("sizes"), entries...).Err()
	}))
	now := time.Now()
	for owner, want := range map[string]error{"o": batch.ErrHalf, "p": nil} {
		if err := s.AddFile(t.Context(), batch.File{ID: "f" + owner, Owner: owner, Half: true, Created: now, Expires: now.Add(time.Hour)}, nil); !errors.Is(err, want) {
			t.Errorf("a file of %s: %v, want %v", owner, err, want)
		}
		if err := s.AddJob(t.Context(), batch.Job{ID: "j" + owner, Owner: owner, Half: true, Total: 1, Created: now, Expires: now.Add(time.Hour)}); !errors.Is(err, want) {
			t.Errorf("a job of %s: %v, want %v", owner, err, want)
		}
	}
	must.Do(t, s.AddFile(t.Context(), batch.File{ID: "alone", Owner: "o", Created: now, Expires: now.Add(time.Hour)}, nil))
}

// A job is found beside however many that rest for want of room of their owner.
func TestAJobBesideManyThatRest(t *testing.T) {
	server := redistest.Start(t)
	conn := must.Get(redisconn.New(config.Store{Addrs: []string{server.Addr}, Prefix: "pacer"}))(t)
	t.Cleanup(conn.Close)
	s := Open(conn, 1000, time.Hour)
	now := time.Now()
	must.Do(t, s.AddFile(t.Context(), batch.File{ID: "f", Owner: "o", Half: true, Created: now, Expires: now.Add(time.Hour)}, make([]byte, 500)))
	add := func(id, owner string, at time.Time) {
		must.Do(t, s.AddJob(t.Context(), batch.Job{ID: id, Owner: owner, Half: true, Total: 1, Created: at, Expires: now.Add(time.Hour)}))
	}
	for i := range batch.MostRunning {
		add(fmt.Sprint("j", i), "o", now)
	}
	add("other", "p", now.Add(time.Second))
	for range 1000 { // each looks at one job in thirty
		if claims, err := s.Claim(t.Context(), now, now.Add(time.Minute), 1); len(claims) > 0 {
			if claims[0].Job != "other" {
				t.Errorf("got %v", claims)
			}
			return
		} else if !errors.Is(err, batch.ErrFull) {
			t.Fatal(err)
		}
	}
	t.Error("the job of another owner is not found")
}
