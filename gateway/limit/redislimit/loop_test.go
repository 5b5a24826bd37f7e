package redislimit

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/share"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hundred is so few that little flows in during a test.
var hundred = config.KeyLimits{RequestsPerMinute: 100, TokensPerMinute: 1}

// replica is one gateway's end, driven step by step, as patient as a busy
// machine may need.
type replica struct {
	*Loop
	link     *share.Link
	limiters map[string]*limit.Limiter
	log      bytes.Buffer
}

// lost is what the exchange of loads sees when the others are out of touch, found
// that two others are there.
func (r *replica) lost() {
	r.link.See(time.Now().Add(time.Hour), 0, errors.New("out"))
}
func (r *replica) found() { r.link.See(time.Now(), 2, nil) }

func newReplica(t *testing.T, s *redistest.Server, name string, l config.KeyLimits) *replica {
	t.Helper()
	r := &replica{limiters: map[string]*limit.Limiter{"mobile": limit.New(l), "open": nil}}
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	conn, err := redisconn.Open(redisconn.Options{
		Store:      config.Store{Addrs: []string{s.Addr}, Prefix: "pacer"},
		MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, IOTimeout: 20 * time.Second,
	})
	must.Do(t, err)
	t.Cleanup(conn.Close)
	if r.link, err = share.NewLink(share.Options{Log: log}); err != nil {
		t.Fatal(err)
	}
	r.found()
	r.Loop, err = New(Options{
		Conn: conn, Link: r.link, Replica: name, Log: log, Every: 10 * time.Second, Expiry: 40 * time.Second,
		Limiters: func() map[string]*limit.Limiter { return r.limiters },
	})
	must.Do(t, err)
	return r
}

// take is a request whose body is there as soon as its head.
func take(l *limit.Limiter, now time.Time, tokens int) (*limit.Permit, error) {
	p, err := l.Enter(now)
	if err == nil {
		err = p.Charge(now, tokens, 1)
	}
	return p, err
}

// take lets through as many of n requests as the key may have, and returns
// how many; each costs so many tokens.
func (r *replica) take(n, tokens int) (taken int, permits []*limit.Permit) {
	for range n {
		p, err := take(r.limiters["mobile"], time.Now(), tokens)
		if err != nil {
			break
		}
		taken++
		permits = append(permits, p)
	}
	return taken, permits
}

func (r *replica) left() int { return r.limiters["mobile"].State(time.Now()).Requests.Remaining }

func steps(t *testing.T, replicas ...*replica) {
	t.Helper()
	for range 2 { // what the last one told the first one hears
		for _, r := range replicas {
			r.turn = 0 // its turn to ask for all keys
			r.step(t.Context())
		}
	}
}

// flowed is what has flowed into a bucket of so many a minute since start, in
// whole ones, rounded up.
func flowed(start time.Time, perMinute float64) int {
	return int(time.Since(start).Minutes()*perMinute) + 1
}

func TestReplicasShareOneBucket(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s, "a", hundred), newReplica(t, s, "b", hundred)
	start := time.Now()
	a.take(60, 0)
	b.take(30, 0)
	steps(t, a, b)
	for _, r := range []*replica{a, b} {
		if got := r.left(); got < 10 || got > 10+flowed(start, 100) {
			t.Errorf("%s sees %d requests left of 100, want 10 after 60 and 30", r.o.Replica, got)
		}
	}
	got, _ := b.take(100, 0)
	if most := 10 + flowed(start, 100); got < 10 || got > most {
		t.Errorf("b let %d through where 10 were left", got)
	}
	steps(t, b, a)
	if got, _ := a.take(100, 0); got > flowed(start, 100) {
		t.Errorf("a let %d through after b used the rest", got)
	}
}

// The stated bound: together replicas pass a limit by what they let through
// between two exchanges, and no more, however long it goes on.
func TestOvershootIsWhatOnePeriodLetsThrough(t *testing.T) {
	s := redistest.Start(t)
	const perPeriod = 7
	var fleet []*replica
	for i := range 3 {
		fleet = append(fleet, newReplica(t, s, fmt.Sprint(i), hundred))
	}
	start := time.Now()
	passed := 0
	for range 40 {
		for _, r := range fleet {
			n, permits := r.take(perPeriod, 0)
			passed += n
			for _, p := range permits {
				p.Settle(time.Now(), 0)
			}
			r.step(t.Context())
		}
	}
	most := 100 + len(fleet)*perPeriod + flowed(start, 100)
	t.Logf("%d requests passed of %d asked, limit 100, bound %d", passed, 40*3*perPeriod, most)
	if passed < 100 || passed > most {
		t.Errorf("%d requests passed a limit of 100, want at least that and at most %d", passed, most)
	}
}

func TestTokensAreSettledOverReplicas(t *testing.T) {
	s := redistest.Start(t)
	l := config.KeyLimits{TokensPerMinute: 1000}
	a, b := newReplica(t, s, "a", l), newReplica(t, s, "b", l)
	start := time.Now()
	_, permits := a.take(1, 900)
	steps(t, a, b)
	if got, _ := b.take(1, 200+flowed(start, 1000)); got != 0 {
		t.Error("b let 200 tokens through where 100 are left")
	}
	permits[0].Settle(time.Now(), 300) // 600 come back
	steps(t, a, b)
	left := b.limiters["mobile"].State(time.Now()).Tokens.Remaining
	if left < 700 || left > 700+flowed(start, 1000) {
		t.Errorf("b sees %d tokens left, want 700", left)
	}
}

func TestConcurrencyIsOverAllReplicas(t *testing.T) {
	s := redistest.Start(t)
	l := config.KeyLimits{Concurrency: 5}
	a, b := newReplica(t, s, "a", l), newReplica(t, s, "b", l)
	_, running := a.take(3, 0)
	steps(t, a, b)
	if got, _ := b.take(5, 0); got != 2 {
		t.Errorf("b let %d through while a runs 3 of 5, want 2", got)
	}
	for _, p := range running {
		p.Settle(time.Now(), 0)
	}
	steps(t, a, b)
	if got, _ := b.take(5, 0); got != 3 {
		t.Errorf("b let %d more through when a has ended its own, want 3", got)
	}
	// A replica that is silent for longer than the expiry runs none.
	a.o.Expiry = -time.Millisecond
	a.take(1, 0)
	a.step(t.Context())
	if got, _ := a.take(5, 0); got != 4 {
		t.Errorf("a let %d through, want 4: b is dead", got)
	}
}

// What was told and not answered counts once.
func TestALostAnswerDoesNotCountTwice(t *testing.T) {
	s := redistest.Start(t)
	a := newReplica(t, s, "a", hundred)
	start := time.Now()
	a.take(40, 0)
	reports := a.reports(time.Now())
	if len(reports) != 1 {
		t.Fatalf("%d keys to tell of, want 1", len(reports))
	}
	call := a.call(&reports[0])
	args := append([]any{"EVAL", exchangeSource, 1, call.Keys[0]}, call.Args...)
	s.Do(args...) // its answer is lost
	a.step(t.Context())
	if got := a.left(); got < 60 || got > 60+flowed(start, 100) {
		t.Errorf("%d requests left, want 60 of 100 after 40 that were told twice", got)
	}
}

// Without Redis the replicas together get the limit; what they used is told
// when it is back, also to one that has lost everything.
func TestRedisLost(t *testing.T) {
	s := redistest.Start(t)
	fleet := []*replica{newReplica(t, s, "0", hundred), newReplica(t, s, "1", hundred), newReplica(t, s, "2", hundred)}
	start := time.Now()
	fleet[0].take(40, 0)
	steps(t, fleet...)
	s.Kill()
	passed := 40
	for _, r := range fleet {
		r.take(1, 0) // so that there is something to tell
		passed++
		r.step(t.Context())
		r.lost()
		r.step(t.Context())
		got, _ := r.take(100, 0)
		passed += got
		if lines := strings.Count(r.log.String(), "\n"); lines != 1 || !strings.Contains(r.log.String(), "level=WARN") || !strings.Contains(r.log.String(), "replicas=3") {
			t.Errorf("the loss is said as %q, want one warning that names 3 replicas", r.log.String())
		}
	}
	// Each may round its part of 20 down, and up by what flows in.
	if passed < 97 || passed > 100+flowed(start, 100)+len(fleet) {
		t.Errorf("%d requests passed without Redis, want about 100 and no more", passed)
	}

	s.Restart()
	for _, r := range fleet {
		r.found()
	}
	steps(t, fleet...) // what was told and not answered
	steps(t, fleet...) // what was used since
	for _, r := range fleet {
		if got := r.left(); got > 100-passed+flowed(start, 100) {
			t.Errorf("replica %s sees %d requests left of 100 after %d passed", r.o.Replica, got, passed)
		}
		if lines := strings.Count(r.log.String(), "\n"); lines != 2 || !strings.Contains(r.log.String(), "level=INFO") {
			t.Errorf("the return is said as %q, want one line more", r.log.String())
		}
	}
	if got, _ := fleet[1].take(100, 0); got > flowed(start, 100)+3 {
		t.Errorf("%d more passed when Redis was back, empty", got)
	}
}

// While the others are out of touch nothing is told, and each has its part,
// though this replica reaches Redis.
func TestReplicasOutOfTouch(t *testing.T) {
	s := redistest.Start(t)
	a := newReplica(t, s, "a", config.KeyLimits{RequestsPerMinute: 9})
	a.lost()
	start := time.Now()
	a.step(t.Context())
	if got, _ := a.take(9, 0); got < 3 || got > 3+flowed(start, 3) {
		t.Errorf("%d requests passed, want a third of 9", got)
	}
	a.step(t.Context())
	if n := s.Do("DBSIZE"); n != int64(0) {
		t.Errorf("%v keys in Redis, want none yet", n)
	}
	a.found()
	a.step(t.Context())
	if got := a.left(); got < 5 || got > 6+flowed(start, 9) {
		t.Errorf("%d requests left when in touch again, want 6 of 9", got)
	}
}

// Who only asks writes nothing.
func TestAskingWritesNothing(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s, "a", hundred), newReplica(t, s, "b", hundred)
	start := time.Now()
	a.step(t.Context())
	if n := s.Do("DBSIZE"); n != int64(0) {
		t.Errorf("%v keys in Redis before anything was used", n)
	}
	b.take(1, 0)
	steps(t, b, a)
	if got := a.left(); got < 99 || got > 99+flowed(start, 100) {
		t.Errorf("a sees %d requests left, want 99 of 100", got)
	}
	if got := s.Do("HEXISTS", "pacer:{mobile}:limits:1:100-1", "a"); got != int64(0) {
		t.Error("a, which used nothing, stands in the hash")
	}
}

func TestKeysInRedis(t *testing.T) {
	s := redistest.Start(t)
	a := newReplica(t, s, "a", hundred)
	a.take(1, 0)
	a.step(t.Context())
	keys := s.Do("KEYS", "*").([]any)
	if want := "pacer:{mobile}:limits:1:100-1"; len(keys) != 1 || keys[0] != want {
		t.Fatalf("keys %v, want %s", keys, want)
	}
	if ms := s.Do("PTTL", keys[0]).(int64); ms <= 0 || ms > (2*time.Hour).Milliseconds() {
		t.Errorf("it lives for %d ms, want up to an hour and a bit", ms)
	}

	// Another configuration of the key is another bucket.
	a.limiters["mobile"] = limit.New(config.KeyLimits{RequestsPerMinute: 50})
	a.take(1, 0)
	a.step(t.Context())
	if got := s.Do("EXISTS", "pacer:{mobile}:limits:1:50-0"); got != int64(1) {
		t.Error("the key with other limits is not told of")
	}
}

// What no gateway can have written in a key's place is replaced by what this one
// knows, at once and said once; other keys are not held up.
func TestAGarbageLimitKeyIsReplaced(t *testing.T) {
	const key = "pacer:{mobile}:limits:1:9-60"
	future := strconv.FormatInt(time.Now().Add(100*24*time.Hour).UnixMicro(), 10)
	past := strconv.FormatInt(time.Now().Add(-24*time.Hour).UnixMicro(), 10)
	for name, poison := range map[string][]any{
		"no number":                    {"HSET", key, "requests", "many"},
		"nothing":                      {"HSET", key, "requests", ""},
		"nan":                          {"HSET", key, "requests", "nan"},
		"-nan":                         {"HSET", key, "tokens", "-nan"},
		"inf":                          {"HSET", key, "requests", "inf"},
		"below 0":                      {"HSET", key, "requests", "-99999999999999999"},
		"huge":                         {"HSET", key, "tokens", "1e300"},
		"the far future":               {"HSET", key, "requests", future, "tokens", future},
		"long ago":                     {"HSET", key, "requests", past, "tokens", past},
		"a string":                     {"SET", key, "x"},
		"a list":                       {"RPUSH", key, "x"},
		"a number that is not reached": {"HSET", key, "a", "1 99999999999 0"},
		"no report":                    {"HSET", key, "a", "x"},
		"a stranger":                   {"HSET", key, "stranger", "who writes something else"},
		"a million at once":            {"HSET", key, "b", strconv.FormatInt(time.Now().UnixMilli(), 10) + " 1 99999999"},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			l := config.KeyLimits{RequestsPerMinute: 9, TokensPerMinute: 60, Concurrency: 100}
			a := newReplica(t, s, "a", l)
			a.limiters["web"] = limit.New(l)
			start := time.Now()
			a.take(3, 5)
			steps(t, a)
			for range 4 {
				if poison[0] != "HSET" {
					s.Do("DEL", key)
				}
				s.Do(poison...)
				steps(t, a)
				left := a.limiters["mobile"].State(time.Now())
				if got := left.Requests.Remaining; got < 6 || got > 6+flowed(start, 9) {
					t.Errorf("%d requests left, want 6 of 9", got)
				}
				if got := left.Tokens.Remaining; got < 45 || got > 45+flowed(start, 60) {
					t.Errorf("%d tokens left, want 45 of 60", got)
				}
			}
			if got, _ := a.take(1, 5); got != 1 {
				t.Error("the key is locked out")
			}
			if _, err := take(a.limiters["web"], time.Now(), 0); err != nil {
				t.Errorf("the other key: %v", err)
			}
			steps(t, a)
			if got := a.left(); got < 5 || got > 5+flowed(start, 9) {
				t.Errorf("%d requests left, want 5 of 9: what is used is told on", got)
			}
			if log := a.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "key=mobile found=") {
				t.Errorf("logged %q, want one line that names the key", log)
			}
		})
	}
}

// An hour is the most that anybody owes: what lies within it is obeyed, and
// ends with it. A server whose clock was set back does not lock a key at all.
func TestAClockSetBackLocksNobodyOut(t *testing.T) {
	s := redistest.Start(t)
	s.Do("HSET", "pacer:{mobile}:limits:1:9-0", "requests", strconv.FormatInt(time.Now().Add(50*time.Minute).UnixMicro(), 10))
	a := newReplica(t, s, "a", config.KeyLimits{RequestsPerMinute: 9})
	a.take(1, 0)
	a.step(t.Context())
	_, err := take(a.limiters["mobile"], time.Now(), 0)
	exceeded, ok := err.(*limit.Exceeded)
	if !ok || exceeded.RetryAfter > 62*time.Minute {
		t.Errorf("%v, want to wait an hour at most", err)
	}
	s.Do("HSET", "pacer:{mobile}:limits:1:9-0", "requests", strconv.FormatInt(time.Now().Add(24*time.Hour).UnixMicro(), 10))
	b := newReplica(t, s, "b", config.KeyLimits{RequestsPerMinute: 9})
	b.step(t.Context())
	if got, _ := b.take(1, 0); got != 1 {
		t.Error("a day ahead, and the key is locked out")
	}
}

// An answer that the script cannot give, of a server that is none, is no total.
func TestTotalsAreBounded(t *testing.T) {
	r := &limit.Report{Requests: limit.Spent{Size: 9}, Tokens: limit.Spent{Size: 60}}
	for _, c := range []struct {
		reply []any
		ok    bool
	}{
		{[]any{"3", "600", int64(2), ""}, true},
		{[]any{"540", "3600", int64(0), ""}, true},
		{[]any{"nan", "0", int64(0), ""}, false},
		{[]any{"-1", "0", int64(0), ""}, false},
		{[]any{"0", "inf", int64(0), ""}, false},
		{[]any{"600", "0", int64(0), ""}, false},
		{[]any{"0", "0", int64(-1), ""}, false},
		{[]any{"0", "0", int64(1) << 40, ""}, false},
		{[]any{"x", "0", int64(0), ""}, false},
		{[]any{"0", "0", int64(0)}, false},
		{[]any{int64(0), "0", int64(0), ""}, false},
	} {
		cmd := redis.NewCmd(t.Context())
		cmd.SetVal(c.reply)
		if _, _, err := readTotals(cmd, r); (err == nil) != c.ok {
			t.Errorf("%v: %v, want it taken: %v", c.reply, err, c.ok)
		}
	}
}

func BenchmarkExchange(b *testing.B) {
	// Budget: 20 ms, five times a second, for 256 keys.
	s := redistest.Start(b)
	conn := must.Get(redisconn.Open(redisconn.Options{Store: config.Store{Addrs: []string{s.Addr}, Prefix: "pacer"}}))(b)
	b.Cleanup(conn.Close)
	limiters := map[string]*limit.Limiter{}
	for i := range 256 {
		limiters[fmt.Sprint(i)] = limit.New(config.KeyLimits{RequestsPerMinute: 1e9, TokensPerMinute: 1e9, Concurrency: 1e9})
	}
	link := must.Get(share.NewLink(share.Options{Log: slog.New(slog.DiscardHandler)}))(b)
	l := must.Get(New(Options{
		Conn: conn, Link: link, Replica: "a", Log: slog.New(slog.DiscardHandler),
		Limiters: func() map[string]*limit.Limiter { return limiters },
	}))(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, limiter := range limiters {
			must.Get(take(limiter, time.Now(), 100))(b)
		}
		must.Do(b, l.exchange(b.Context(), l.reports(time.Now())))
	}
}
