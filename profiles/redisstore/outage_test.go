package redisstore_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
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

var gpu = profiles.Target{Backend: "gpu", Model: "llama"}

// delta is evidence without occupied time, so that it adds up exactly.
func delta(t profiles.Target, tokens float64) profiles.Delta {
	return profiles.Delta{Target: t, Sums: profiles.SumsFrom(
		map[string]float64{"t.output": tokens, "t.answers": 1}, time.Unix(1_700_000_000, 0))}
}

// push pushes until the server, which may have just come back, takes it.
func push(t *testing.T, s *redisstore.Store, replica string, seq uint64, deltas ...profiles.Delta) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		err := s.Push(t.Context(), replica, seq, deltas)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("push %d of %s: %v", seq, replica, err)
		}
	}
}

func tokens(t *testing.T, s *redisstore.Store, target profiles.Target) float64 {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		sums, err := s.Load(t.Context(), []profiles.Target{target})
		if err == nil {
			return storetest.Fields(sums[target])["t.output"]
		}
		if time.Now().After(deadline) {
			t.Fatalf("load: %v", err)
		}
	}
}

func wantTokens(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v tokens, want %v", what, got, want)
	}
}

// A server that comes back empty gets everything back, once, however many
// replicas see it, and also when it was written to before it was read.
func TestEmptiedServerIsSeededOnce(t *testing.T) {
	s := redistest.Start(t)
	a, b, newcomer := store(t, s), store(t, s), store(t, s)
	push(t, a, "a", 1, delta(gpu, 1000))
	push(t, b, "b", 1, delta(gpu, 200))
	wantTokens(t, "a before", tokens(t, a, gpu), 1200)
	wantTokens(t, "b before", tokens(t, b, gpu), 1200)
	push(t, a, "a", 2, delta(gpu, 30)) // a knows that the server has this

	s.Restart()
	push(t, newcomer, "c", 1, delta(gpu, 4)) // who knows nothing makes the hash
	wantTokens(t, "the newcomer", tokens(t, newcomer, gpu), 4)
	push(t, b, "b", 2, delta(gpu, 0.25))
	push(t, a, "a", 3, delta(gpu, 0.25)) // this is not among what it puts back
	wantTokens(t, "a, which puts back what it knows", tokens(t, a, gpu), 1234.5)
	wantTokens(t, "b, which finds it put back", tokens(t, b, gpu), 1234.5)
	wantTokens(t, "the newcomer", tokens(t, newcomer, gpu), 1234.5)
	push(t, b, "b", 2, delta(gpu, 0.25)) // a retry
	wantTokens(t, "after a retry", tokens(t, a, gpu), 1234.5)

	s.Restart()
	wantTokens(t, "b, with nobody having written", tokens(t, b, gpu), 1234.5)
	wantTokens(t, "a", tokens(t, a, gpu), 1234.5)
}

// While the server is away deltas do not arrive, and each arrives once when it
// is back, although the first was tried many times.
func TestDeltasArriveOnceAfterAnOutage(t *testing.T) {
	s := redistest.Start(t)
	a := store(t, s)
	push(t, a, "a", 1, delta(gpu, 1))
	s.Kill()
	for range 20 {
		if err := a.Push(t.Context(), "a", 2, []profiles.Delta{delta(gpu, 10)}); err == nil {
			t.Fatal("a dead server took a push")
		}
		if _, err := a.Load(t.Context(), []profiles.Target{gpu}); err == nil {
			t.Fatal("a dead server answered")
		}
	}
	s.Restart()
	push(t, a, "a", 2, delta(gpu, 10))
	push(t, a, "a", 3, delta(gpu, 100))
	wantTokens(t, "after the outage", tokens(t, a, gpu), 110) // 1 was never loaded: it went with the server
}

// deaf is a connection that sends and, while on, never hears the answer.
type deaf struct {
	net.Conn
	on *atomic.Bool
}

func (d deaf) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if d.on.Load() {
		d.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestRetryAfterALostAnswerDoesNotCountTwice(t *testing.T) {
	s := redistest.Start(t)
	var on atomic.Bool
	conn, err := redisconn.Open(redisconn.Options{
		Store:      config.Store{Addrs: []string{s.Addr}, Prefix: "pacer"},
		MinBackoff: time.Nanosecond, MaxBackoff: time.Nanosecond,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return deaf{c, &on}, err
		},
	})
	must.Do(t, err)
	t.Cleanup(conn.Close)
	a := redisstore.New(conn)
	push(t, a, "a", 1, delta(gpu, 1)) // opens the connection and loads the script

	on.Store(true)
	if err := a.Push(t.Context(), "a", 2, []profiles.Delta{delta(gpu, 10)}); err == nil {
		t.Fatal("a push whose answer was lost is no error")
	}
	on.Store(false)
	if got := s.Do("HGET", "pacer:{gpu}:sums:llama", "t.output"); got != "11" {
		t.Fatalf("the server has %v tokens, want 11: the test lost more than the answer", got)
	}
	push(t, a, "a", 2, delta(gpu, 10))
	wantTokens(t, "after the retry", tokens(t, a, gpu), 11)
}

// The worst case: the server accepts, and never answers. Each call comes back
// by itself, whatever its caller would allow.
func TestFrozenServerHoldsUpNoCall(t *testing.T) {
	s := redistest.Start(t)
	conn := must.Get(redisconn.Open(redisconn.Options{
		Store:      config.Store{Addrs: []string{s.Addr}, Prefix: "pacer"},
		MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
	}))(t)
	t.Cleanup(conn.Close)
	a := redisstore.New(conn)
	push(t, a, "a", 1, delta(gpu, 1))
	s.Freeze()
	done := make(chan error, 2)
	go func() {
		done <- a.Push(t.Context(), "a", 2, []profiles.Delta{delta(gpu, 10)})
		_, err := a.Load(t.Context(), []profiles.Target{gpu})
		done <- err
	}()
	for range 2 {
		select {
		case err := <-done:
			if err == nil {
				t.Error("a frozen server answered")
			}
		case <-time.After(time.Minute): // its own bound is a second
			t.Fatal("a call on a frozen server does not return")
		}
	}
	s.Thaw()
	push(t, a, "a", 2, delta(gpu, 10))
	wantTokens(t, "thawed", tokens(t, a, gpu), 11)
}

func TestWrongPasswordIsSaidWithoutThePassword(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "right")
	conn, err := redisconn.New(config.Store{Addrs: []string{s.Addr}, Password: "hunter2-wrong"})
	must.Do(t, err)
	t.Cleanup(conn.Close)
	_, err = redisstore.New(conn).Load(t.Context(), []profiles.Target{gpu})
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("load with a wrong password: %v, want WRONGPASS and not the password", err)
	}
}

// Sums of a layout that is not ours, and keys that are none of ours, are left
// as they are and named; all others are served. What says that it is of our
// layout and cannot be is another thing: TestPoisonedSums.
func TestForeignKeysAreLeftAlone(t *testing.T) {
	s := redistest.Start(t)
	newer, text, bare := gpu, gpu, gpu
	newer.Model, text.Model, bare.Model = "newer", "text", "bare"
	s.Do("HSET", "pacer:{gpu}:sums:newer", "@v", "99", "b0.y", "1")
	s.Do("SET", "pacer:{gpu}:sums:text", "x")
	s.Do("HSET", "pacer:{gpu}:sums:bare", "b0.y", "1")
	a := store(t, s)
	for seq := uint64(1); seq <= 2; seq++ {
		err := a.Push(t.Context(), "a", seq, []profiles.Delta{delta(newer, 5), delta(text, 5), delta(gpu, 5), delta(bare, 5)})
		var refused *redisstore.RefusedError
		if !errors.As(err, &refused) || len(refused.Refused()) != 3 {
			t.Fatalf("push: %v, want three targets refused", err)
		}
		for _, part := range []string{`"newer"`, `"99"`, "2 more"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("push: %v does not name %s", err, part)
			}
		}
		sums, err := a.Load(t.Context(), []profiles.Target{newer, text, gpu, bare})
		if !errors.As(err, &refused) || len(refused.Refused()) != 3 {
			t.Errorf("load: %v, want three targets refused", err)
		}
		wantTokens(t, "the one that is ours", storetest.Fields(sums[gpu])["t.output"], 5*float64(seq))
		if len(sums) != 1 {
			t.Errorf("%d targets loaded, want 1", len(sums))
		}
	}
	if got := s.Do("HGET", "pacer:{gpu}:sums:newer", "b0.y"); got != "1" {
		t.Errorf("sums of a newer layout were changed to %v", got)
	}
	if got := s.Do("GET", "pacer:{gpu}:sums:text"); got != "x" {
		t.Errorf("a key that is none of ours was changed to %v", got)
	}
}

// The key of a target that this replica knows becomes one of a newer version:
// what is known is not put back over it.
func TestSumsOfANewerVersionAreNotPutBackOver(t *testing.T) {
	s := redistest.Start(t)
	a := store(t, s)
	push(t, a, "a", 1, delta(gpu, 5))
	wantTokens(t, "before", tokens(t, a, gpu), 5)
	s.Do("DEL", "pacer:{gpu}:sums:llama")
	s.Do("HSET", "pacer:{gpu}:sums:llama", "@v", "2", "x", "1")
	if _, err := a.Load(t.Context(), []profiles.Target{gpu}); err == nil || !strings.Contains(err.Error(), `version "2"`) {
		t.Errorf("load: %v, want an error that names version 2", err)
	}
	if got := s.Do("HLEN", "pacer:{gpu}:sums:llama"); got != int64(2) {
		t.Errorf("the newer sums have %v fields, want the 2 they had", got)
	}
}

func TestEveryKeyHasATimeToLiveAndOneSlotPerBackend(t *testing.T) {
	s := redistest.Start(t)
	a := store(t, s)
	push(t, a, "a", 1, delta(gpu, 1), delta(profiles.Target{Backend: "g{p}u", Model: "x"}, 1))
	wantTokens(t, "before", tokens(t, a, gpu), 1)
	s.Do("DEL", "pacer:{gpu}:sums:llama")
	wantTokens(t, "put back", tokens(t, a, gpu), 1)
	keys := s.Do("KEYS", "*").([]any)
	if len(keys) != 4 {
		t.Errorf("keys %v, want sums and numbers of two backends", keys)
	}
	for _, k := range keys {
		if ms := s.Do("PTTL", k).(int64); ms <= 0 || ms > (7*24*time.Hour).Milliseconds() {
			t.Errorf("%s lives for %d ms, want more than 0 and at most a week", k, ms)
		}
		if tag := k.(string); !strings.Contains(tag, "{gpu}") && !strings.Contains(tag, "{g%7Bp%7Du}") {
			t.Errorf("%s has no tag of its backend", k)
		}
	}
}

func BenchmarkPushAndLoad(b *testing.B) {
	// Budget: 100 ms, once a second, for 16 targets with twenty bins each.
	s := redistest.Start(b)
	a := store(b, s)
	var targets []profiles.Target
	var deltas []profiles.Delta
	for i := range 16 {
		fields := map[string]float64{"f.a00": 1.5, "t.answers": 1}
		for bin := range 20 {
			_, n := profiles.BinBounds(bin)
			fields["b"+strconv.Itoa(bin)+".y"] = 1.25 * float64(n)
			fields["b"+strconv.Itoa(bin)+".k"] = 1.25
			fields["b"+strconv.Itoa(bin)+".r"] = 1.25 * math.Pow(float64(n), 1.5)
			fields["b"+strconv.Itoa(bin)+".n"] = 1.25 * float64(n) * float64(n)
			fields["b"+strconv.Itoa(bin)+".s"] = 0.05 * float64(n)
			fields["b"+strconv.Itoa(bin)+".t"] = 0.05
		}
		for octave := range 5 {
			fields["s"+strconv.Itoa(octave)+".k"], fields["s"+strconv.Itoa(octave)+".t"] = 40, 0.5
		}
		t := profiles.Target{Backend: "gpu", Model: strconv.Itoa(i)}
		targets = append(targets, t)
		deltas = append(deltas, profiles.Delta{Target: t, Sums: profiles.SumsFrom(fields, time.Unix(1_700_000_000, 0))})
	}
	b.ReportAllocs()
	for seq := uint64(1); b.Loop(); seq++ {
		must.Do(b, a.Push(b.Context(), "a", seq, deltas))
		if sums, err := a.Load(b.Context(), targets); err != nil || len(sums) != len(targets) {
			b.Fatal(len(sums), err)
		}
	}
}

// Sums that an older version wrote, without slow copy and its stamp, are taken
// as they are, and begin one.
func TestSumsOfAnOlderVersionAreTaken(t *testing.T) {
	s := redistest.Start(t)
	s.Do("HSET", "pacer:{gpu}:sums:llama", "@v", "1", "@birth", "x", "t.output", "30", "f.k", "12")
	a := store(t, s)
	wantTokens(t, "as it was", tokens(t, a, gpu), 30)
	d := delta(gpu, 4)
	d.Sums = profiles.SumsFrom(map[string]float64{"t.output": 4, "s0.k": 5}, time.Unix(1_700_000_000, 0))
	push(t, a, "a", 1, d)
	wantTokens(t, "with a delta", tokens(t, a, gpu), 34)
	if got := s.Do("HGET", "pacer:{gpu}:sums:llama", "s0.k"); got != "5" {
		t.Errorf("the slow copy has %v steps, want 5", got)
	}
	if got := s.Do("HEXISTS", "pacer:{gpu}:sums:llama", "@slow"); got != int64(1) {
		t.Error("the slow copy has no stamp, and will never fade")
	}
}
