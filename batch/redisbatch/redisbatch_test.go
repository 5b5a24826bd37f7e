package redisbatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
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
	var sizes, owners []any
	for i := range mostKept / 2 {
		sizes, owners = append(sizes, fmt.Sprint(i), 0), append(owners, fmt.Sprint(i), mark("o"))
	}
	must.Do(t, conn.Do(t.Context(), func(ctx context.Context, rdb redis.UniversalClient) error {
		return errors.Join(rdb.HSet(ctx, s.key("sizes"), sizes...).Err(), rdb.HSet(ctx, s.key("owners"), owners...).Err())
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

// A build that knows no owners, and no turns, may run beside this one, before it or
// behind it: what either of them deletes leaves its room, what it does is counted, and
// jobs of it are done.
func TestBesideABuildThatKnowsNoOwners(t *testing.T) {
	s, do := storeOf(t)
	now := time.Now()
	file := func(id string, size int) error {
		return s.AddFile(t.Context(), batch.File{ID: id, Owner: "o", Half: true, Created: now, Expires: now.Add(time.Hour)}, make([]byte, size))
	}
	must.Do(t, file("f", 400))
	do(func(ctx context.Context, rdb redis.UniversalClient) error { // what it stores: no owner is named
		return errors.Join(rdb.HDel(ctx, s.key("owners"), "f").Err(), rdb.Del(ctx, s.key("sums")).Err())
	})
	must.Do(t, s.DeleteFile(t.Context(), "f"))
	must.Do(t, file("g", 400))
	do(func(ctx context.Context, rdb redis.UniversalClient) error { // how it deletes; the sums live for a second
		return errors.Join(rdb.HDel(ctx, s.key("sizes"), "g").Err(), rdb.ZRem(ctx, s.key("ends"), "g").Err(),
			rdb.Del(ctx, s.key("file", "g"), s.key("content", "g"), s.key("sums")).Err())
	})
	must.Do(t, file("h", 400))
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		if owners := rdb.HGetAll(ctx, s.key("owners")).Val(); len(owners) != 1 || owners["h"] != mark("o") {
			t.Errorf("the owners are %v, want that of h alone", owners)
		}
		return nil
	})

	must.Do(t, s.AddJob(t.Context(), batch.Job{ID: "j", Owner: "o", Half: true, Total: 2, Created: now, Expires: now.Add(time.Hour)}))
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		if n := rdb.HExists(ctx, s.key("sizes"), "j").Val(); !n {
			t.Error("it finds no entry of the job, by its id, to count what comes of it")
		}
		return errors.Join(rdb.HDel(ctx, s.key("job", "j"), "owner").Err(), rdb.Del(ctx, s.key("turns")).Err())
	})
	for range 2 {
		claims, err := s.Claim(t.Context(), now, now.Add(time.Minute), 1, true)
		if err != nil || len(claims) != 1 {
			t.Fatalf("a job that it added: %v, %v", claims, err)
		}
		must.Do(t, s.Done(t.Context(), claims[0], now, true, []byte("x")))
	}
	do(func(ctx context.Context, rdb redis.UniversalClient) error { // a job that it has ended is in turns
		return errors.Join(rdb.ZAdd(ctx, s.key("turns"), redis.Z{Member: mark("o") + "j"}).Err())
	})
	if claims, err := s.Claim(t.Context(), now, now.Add(time.Minute), 1, true); err != nil || len(claims) != 0 {
		t.Errorf("of a job that is over: %v, %v", claims, err)
	}
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		if left := rdb.ZRange(ctx, s.key("turns"), 0, -1).Val(); len(left) != 0 {
			t.Errorf("turns has %v", left)
		}
		return nil
	})
}

// What a claim costs in Redis, in commands and in bytes that it sends, does not grow
// with the jobs that run: nothing that names all of them is read.
func TestTheCostOfAClaim(t *testing.T) {
	s, do := storeOf(t)
	now := time.Now()
	jobs := 0
	addJobs := func(upTo int) {
		for ; jobs < upTo; jobs++ {
			owner := fmt.Sprint("owner", jobs%4)
			must.Do(t, s.AddJob(t.Context(), batch.Job{ID: fmt.Sprint("j", jobs), Owner: owner, Half: true, Total: 50, Created: now, Expires: now.Add(time.Hour)}))
		}
	}
	cost := func() (commands, bytes int) {
		do(func(ctx context.Context, rdb redis.UniversalClient) error {
			must.Get(s.Claim(ctx, now, now.Add(time.Minute), 0, true))(t) // has the sums there, which are for all claims of a second
			rdb.Persist(ctx, s.key("sums"))
			count := func(name string) (n int) {
				for _, m := range regexp.MustCompile(name+`(\d+)`).FindAllStringSubmatch(rdb.Info(ctx, "commandstats", "stats").Val(), -1) {
					one, _ := strconv.Atoi(m[1])
					n += one
				}
				return n
			}
			rdb.ConfigResetStat(ctx)
			for range 20 {
				if claims := must.Get(s.Claim(ctx, now, now.Add(time.Minute), 1, true))(t); len(claims) != 1 {
					t.Errorf("got %v", claims)
				}
			}
			commands, bytes = count(":calls="), count("total_net_output_bytes:")
			if n := count("_(?:hgetall|hvals|hkeys):calls="); n > 0 {
				t.Errorf("all entries were read %d times", n)
			}
			return nil
		})
		return commands / 20, bytes / 20
	}
	addJobs(80)
	commands, bytes := cost()
	addJobs(2000)
	commandsOfMany, bytesOfMany := cost()
	t.Logf("a claim among 80 jobs: %d commands, %d bytes sent; among 2,000: %d, %d", commands, bytes, commandsOfMany, bytesOfMany)
	if commandsOfMany > commands+10 || bytesOfMany > 2*bytes || commandsOfMany > 300 {
		t.Errorf("a claim among 2,000 jobs takes %d commands and sends %d bytes, among 80 %d and %d", commandsOfMany, bytesOfMany, commands, bytes)
	}
}

// A file that goes, or expires, has nobody add up all entries anew: who deletes one and
// adds one, again and again, would have Redis do it each time.
func TestADeleteAddsUpNothing(t *testing.T) {
	s, do := storeOf(t)
	now := time.Now()
	add := func(id string, keep time.Duration, at time.Time) {
		must.Do(t, s.AddFile(t.Context(), batch.File{ID: id, Owner: "o", Half: true, Created: at, Expires: at.Add(keep)}, nil))
	}
	add("stays", time.Hour, now)
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		return errors.Join(rdb.Persist(ctx, s.key("sums")).Err(), rdb.ConfigResetStat(ctx).Err())
	})
	for i := range 10 {
		add(fmt.Sprint("f", i), time.Hour, now)
		must.Do(t, s.DeleteFile(t.Context(), fmt.Sprint("f", i)))
		at := now.Add(time.Duration(i) * time.Minute)
		add(fmt.Sprint("short", i), time.Second, at) // the next one finds it expired
	}
	do(func(ctx context.Context, rdb redis.UniversalClient) error {
		if stat := regexp.MustCompile(`cmdstat_hgetall:calls=\d+`).FindString(rdb.Info(ctx, "commandstats").Val()); stat != "" {
			t.Errorf("all entries were read: %s", stat)
		}
		return nil
	})
}

// Sums that are kept are those that come of adding up, whatever was added, grew or went.
func TestSumsAreWhatTheyAddUpTo(t *testing.T) {
	s, do := storeOf(t)
	now := time.Now()
	sums := func() (sums map[string]string) {
		do(func(ctx context.Context, rdb redis.UniversalClient) error {
			sums = rdb.HGetAll(ctx, s.key("sums")).Val()
			return nil
		})
		return sums
	}
	compared := 0
	for i, step := range []func(){
		func() {
			must.Do(t, s.AddJob(t.Context(), batch.Job{ID: "j", Owner: "o", Metadata: []byte(`"abc"`), Total: 3, Created: now, Expires: now.Add(time.Hour)}))
		},
		func() {
			must.Do(t, s.AddFile(t.Context(), batch.File{ID: "f", Owner: "o", Created: now, Expires: now.Add(time.Hour)}, make([]byte, 100)))
		},
		func() {
			must.Do(t, s.AddFile(t.Context(), batch.File{ID: "g", Owner: "p", Created: now, Expires: now.Add(time.Minute)}, make([]byte, 50)))
		},
		func() { must.Do(t, s.Done(t.Context(), batch.Claim{Job: "j", Line: 1}, now, true, make([]byte, 30))) },
		func() { must.Do(t, s.DeleteFile(t.Context(), "f")) },
		func() { must.Get(s.Claim(t.Context(), now.Add(2*time.Minute), now.Add(3*time.Minute), 1, true))(t) },
	} {
		step()
		kept := sums()
		do(func(ctx context.Context, rdb redis.UniversalClient) error { return rdb.Del(ctx, s.key("sums")).Err() })
		must.Get(s.Claim(t.Context(), now, now.Add(time.Minute), 0, true))(t) // adds up where jobs run
		added := sums()
		if len(kept) == 0 || len(added) == 0 { // a second has passed
			continue
		}
		if compared++; !maps.Equal(kept, added) {
			t.Errorf("after step %d the sums are %v, and add up to %v", i, kept, added)
		}
	}
	if compared < 3 {
		t.Errorf("the sums of %d steps were compared, want most of 6", compared)
	}
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
