package redisconn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is what a real server is given where its slowness is not what is
// tested: the machine may be busy.
const patience = 20 * time.Second

func open(t *testing.T, o redisconn.Options) *redisconn.Client {
	t.Helper()
	if o.IOTimeout == 0 && o.Dial == nil {
		o.IOTimeout = patience
	}
	c := must.Get(redisconn.Open(o))(t)
	t.Cleanup(c.Close)
	return c
}

func ping(ctx context.Context, rdb redis.UniversalClient) error { return rdb.Ping(ctx).Err() }

func TestOpenNamesWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		o    redisconn.Options
		want string
	}{
		{redisconn.Options{Store: config.Store{Memory: true}}, "memory"},
		{redisconn.Options{}, "Addrs"},
	} {
		if _, err := redisconn.Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open = %v, want an error that names %s", err, c.want)
		}
	}
}

func TestWrongPasswordIsSaidWithoutThePassword(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "right-one")
	const secret = "hunter2-not-this-one"
	for _, user := range []string{"", "default"} {
		c := open(t, redisconn.Options{
			Store: config.Store{Addrs: []string{s.Addr}, Username: user, Password: secret},
		})
		err := c.Do(t.Context(), ping)
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("user %q: error %v, want WRONGPASS", user, err)
		}
		again := c.Do(t.Context(), ping)
		var out *redisconn.OutError
		if !errors.As(again, &out) {
			t.Errorf("user %q: asked again at once: %v", user, again)
		}
		for _, text := range []string{err.Error(), again.Error()} {
			if strings.Contains(text, secret) {
				t.Errorf("user %q: the password is in %q", user, text)
			}
		}
	}
	right := open(t, redisconn.Options{Store: config.Store{Addrs: []string{s.Addr}, Password: "right-one"}})
	if err := right.Do(t.Context(), ping); err != nil {
		t.Errorf("with the right password: %v", err)
	}
}

// Ten minutes of a dead server: however often the loops ask, it is dialled
// twice per period and never in between.
func TestDeadServerIsAskedOncePerPeriod(t *testing.T) {
	var asked, dials atomic.Int32
	synctest.Test(t, func(t *testing.T) {
		c := open(t, redisconn.Options{
			Store: config.Store{Addrs: []string{"redis:6379"}},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				return nil, errors.New("connection refused")
			},
		})
		for range 6000 {
			if err := c.Do(t.Context(), func(ctx context.Context, rdb redis.UniversalClient) error {
				asked.Add(1)
				return rdb.Ping(ctx).Err()
			}); err == nil {
				t.Fatal("a dead server answered")
			}
			<-time.After(100 * time.Millisecond) // virtual
		}
		c.Close()
	})
	// After 1 + 2 + 4 + 8 s, every 10 to 12 s.
	if n := asked.Load(); n < 50 || n > 65 {
		t.Errorf("asked %d times in ten minutes, want 50 to 65", n)
	}
	if n := dials.Load(); n > 130 {
		t.Errorf("dialled %d times in ten minutes, want at most 130", n)
	}
}

func TestServerThatComesBackIsAsked(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, redisconn.Options{
		Store:      config.Store{Addrs: []string{s.Addr}},
		MinBackoff: time.Nanosecond, MaxBackoff: time.Nanosecond,
	})
	must.Do(t, c.Do(t.Context(), ping))
	s.Kill()
	if err := c.Do(t.Context(), ping); err == nil {
		t.Fatal("a dead server answered")
	}
	s.Restart()
	if err := c.Do(t.Context(), ping); err != nil {
		t.Errorf("back, and not asked: %v", err)
	}
}

// The deadline of the caller counts, not only the client's own.
func TestDeadlineOfTheCallerInterruptsARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, redisconn.Options{
			Store: config.Store{Addrs: []string{"redis:6379"}},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }() // hears, and never answers
				return ours, nil
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := c.Do(ctx, ping)
		if took := time.Since(start); err == nil || took != 30*time.Millisecond {
			t.Errorf("Do = %v after %v, want an error after 30ms", err, took)
		}
		var out *redisconn.OutError
		if err := c.Do(t.Context(), ping); !errors.As(err, &out) {
			t.Errorf("a server that is too slow was asked again: %v", err)
		}
		c.Close()
	})
}

// A frozen server accepts connections and never answers: the worse case.
func TestFrozenServerCostsOneBoundedCall(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, redisconn.Options{Store: config.Store{Addrs: []string{s.Addr}}, MinBackoff: time.Hour, MaxBackoff: time.Hour})
	must.Do(t, c.Do(t.Context(), ping))
	s.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := c.Do(ctx, ping); err == nil {
		t.Fatal("a frozen server answered")
	}
	var out *redisconn.OutError
	if err := c.Do(t.Context(), ping); !errors.As(err, &out) {
		t.Errorf("asked a frozen server again: %v", err)
	}
}

func TestCommandsOwnErrorIsNoFailureOfTheServer(t *testing.T) {
	s := redistest.Start(t)
	s.Do("SET", "text", "x")
	c := open(t, redisconn.Options{Store: config.Store{Addrs: []string{s.Addr}}})
	err := c.Do(t.Context(), func(ctx context.Context, rdb redis.UniversalClient) error {
		return rdb.HGetAll(ctx, "text").Err()
	})
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Fatalf("error %v, want WRONGTYPE", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Do(cancelled, ping); err == nil {
		t.Fatal("a cancelled call answered")
	}
	if err := c.Do(t.Context(), ping); err != nil {
		t.Errorf("after a command's own error and a cancelled call: %v", err)
	}
}

func TestPanicOfTheCallerLeavesTheBreakerUsable(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, redisconn.Options{Store: config.Store{Addrs: []string{s.Addr}}})
	func() {
		defer func() { _ = recover() }()
		_ = c.Do(t.Context(), func(context.Context, redis.UniversalClient) error { panic("caller") })
	}()
	if err := c.Do(t.Context(), ping); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestScriptsSurviveAServerThatForgotThem(t *testing.T) {
	s := redistest.Start(t)
	c := open(t, redisconn.Options{Store: config.Store{Addrs: []string{s.Addr}}})
	script := redis.NewScript(`if ARGV[1] == 'bad' then return redis.error_reply('SOME own error') end return ARGV[1]`)
	run := func(args ...string) []*redis.Cmd {
		t.Helper()
		var calls []redisconn.Call
		for _, a := range args {
			calls = append(calls, redisconn.Call{Keys: []string{c.Key("b", a)}, Args: []any{a}})
		}
		return must.Get(c.Run(t.Context(), script, calls...))(t)
	}
	for round := range 3 {
		replies := run("one", "bad", "two")
		for i, want := range []string{"one", "", "two"} {
			if want == "" {
				if err := replies[i].Err(); !redis.HasErrorPrefix(err, "SOME") {
					t.Errorf("round %d: reply %d: error %v, want the script's own", round, i, err)
				}
			} else if got, err := replies[i].Text(); err != nil || got != want {
				t.Errorf("round %d: reply %d = %q, %v; want %q", round, i, got, err, want)
			}
		}
		if round == 1 {
			s.Do("SCRIPT", "FLUSH")
		}
	}
}

func TestKeysOfOneTagShareASlotAndNeverMeet(t *testing.T) {
	c := open(t, redisconn.Options{Store: config.Store{Addrs: []string{"x:1"}, Prefix: "team:pa{c}er"}})
	if got, want := c.Key("h200-a", "sums", "meta-llama/Llama 3"), "team:pa%7Bc%7Der:{h200-a}:sums:meta-llama/Llama%203"; got != want {
		t.Errorf("Key = %s, want %s", got, want)
	}
	odd := []string{"", "%", "a", "a:b", "a}", "{a}", "a b", "ä", "a%3Ab", "a\x00", "a\n"}
	seen := map[string]bool{}
	for _, tag := range odd {
		for _, part := range odd {
			key := c.Key(tag, part)
			if seen[key] {
				t.Errorf("Key(%q, %q) = %s: another pair has it", tag, part, key)
			}
			seen[key] = true
			open, end := strings.Index(key, "{"), strings.Index(key, "}")
			if strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || end < open+2 {
				t.Errorf("Key(%q, %q) = %s: not exactly one tag that is not empty", tag, part, key)
			}
		}
	}
}
