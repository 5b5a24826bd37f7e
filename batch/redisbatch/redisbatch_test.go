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
		if claims, err := s.Claim(t.Context(), now, now.Add(time.Minute), 1, true); len(claims) > 0 {
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

// What the build before had counted, without a mark, goes with its file.
func TestAFileOfTheBuildBeforeLeavesItsRoom(t *testing.T) {
	s, do := storeOf(t)
	now := time.Now()
	must.Do(t, s.AddFile(t.Context(), batch.File{ID: "f", Owner: "o", Created: now, Expires: now.Add(time.Hour)}, make([]byte, 900)))
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		return errors.Join(rdb.Del(ctx, s.key("sizes"), s.key("ends")).Err(), rdb.HSet(ctx, s.key("sizes"), "f", 900).Err(),
			rdb.ZAdd(ctx, s.key("ends"), redis.Z{Score: float64(ms(now.Add(time.Hour))), Member: "f"}).Err())
	})
	must.Do(t, s.DeleteFile(t.Context(), "f"))
	must.Do(t, s.AddFile(t.Context(), batch.File{ID: "g", Owner: "o", Created: now, Expires: now.Add(time.Hour)}, make([]byte, 900)))
}

// An owner's lists end with the last of what they name, and forget what is beyond.
func TestOwnersListsLiveLongAndAreBounded(t *testing.T) {
	s, do := storeOf(t)
	now := time.Now()
	addJob := func(id string, window time.Duration) {
		must.Do(t, s.AddJob(t.Context(), batch.Job{ID: id, Owner: "o", Total: 1, Created: now, Expires: now.Add(window)}))
	}
	addFile := func(id string, keep time.Duration) {
		must.Do(t, s.AddFile(t.Context(), batch.File{ID: id, Owner: "o", Created: now, Expires: now.Add(keep)}, nil))
	}
	addFile("long", 48*time.Hour)
	addFile("short", time.Minute)
	addJob("long", 24*time.Hour)
	addJob("short", time.Minute)
	var expired []redis.Z // more than that are not there at once
	for i := range mostKept {
		expired = append(expired, redis.Z{Member: fmt.Sprint("f", i)})
	}
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		return rdb.ZAdd(ctx, s.key("files", "o"), expired...).Err()
	})
	addFile("last", time.Hour)
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		jobs, files := rdb.PTTL(ctx, s.key("jobs", "o")).Val(), rdb.PTTL(ctx, s.key("files", "o")).Val()
		if jobs < 24*time.Hour || files < 24*time.Hour {
			t.Errorf("the list of jobs lives for %v, that of files for %v; want a day and more", jobs, files)
		}
		if n := rdb.ZCard(ctx, s.key("files", "o")).Val(); n != mostKept {
			t.Errorf("%d files are named, want %d", n, mostKept)
		}
		return nil
	})
}

// storeOf returns a store of 1000 bytes, and what asks its Redis.
func storeOf(t *testing.T) (*Store, func(func(context.Context, redis.UniversalClient) error)) {
	server := redistest.Start(t)
	conn := must.Get(redisconn.New(config.Store{Addrs: []string{server.Addr}, Prefix: "pacer"}))(t)
	t.Cleanup(conn.Close)
	return Open(conn, 1000, time.Hour), func(command func(context.Context, redis.UniversalClient) error) {
		t.Helper()
		must.Do(t, conn.Do(t.Context(), command))
	}
}
