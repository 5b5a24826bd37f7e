package redisload

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/router/peers"
	"github.com/pacer-dev/pacer/share"
)

//go:embed lua/exchange.lua
var exchangeSource string

// hashLife is how long the hash outlives the last replica.
const hashLife = time.Minute

// Options configures a Loop. The zero value of every optional field means the
// default named in its comment.
type Options struct {
	// Conn is where the load is shared. Required.
	Conn *redisconn.Client

	// Key is the name of what is exchanged, below the prefix; "" = load. Who tells
	// nothing but that he is alive has another one: in one store both would be one.
	Key string

	// Replica names this process; unique per process start. Required.
	Replica string

	// Link takes what became of each exchange, and gives the verdict. Required.
	Link *share.Link

	// Own returns what this replica runs: router.Router.Own. Required.
	Own func(now time.Time) map[string]router.Load

	// Sent returns which prompts this replica sent of late, and OnSent is told what one of
	// the others sent to a target, more than once. Default: nothing is told.
	Sent   func(now time.Time) map[router.Target][]byte
	OnSent func(now time.Time, t router.Target, text []byte)

	// News changes when the others are to hear of something at once:
	// router.Router.News. Default: they never are.
	News func() uint64

	// OnLoad is told what the others run, after every exchange. Required.
	OnLoad func(router.RemoteLoad)

	// Log is told of reports that no gateway can have written. Required.
	Log *slog.Logger

	// Every is the time between exchanges. Default: share.Every.
	Every time.Duration

	// Expiry is how old another's load may be. Default: share.Expiry.
	Expiry time.Duration

	// Patience is how long an exchange may take. Default: that of a share.Beat.
	Patience time.Duration
}

// Loop publishes and reads load. Only Run may be used by several goroutines,
// and only once.
type Loop struct {
	o      Options
	script *redis.Script
	key    string
	odd    share.Seldom // a report that cannot be
}

// New checks o. It starts nothing.
func New(o Options) (*Loop, error) {
	if err := share.Missing("redisload", o, "Conn", "Replica", "Link", "Own", "OnLoad", "Log"); err != nil {
		return nil, err
	}
	if o.Every <= 0 {
		o.Every = share.Every
	}
	if o.Expiry <= 0 {
		o.Expiry = share.Expiry
	}
	return &Loop{o: o, script: redis.NewScript(exchangeSource), key: o.Conn.Key(cmp.Or(o.Key, "load"))}, nil
}

// Run exchanges load until ctx ends, then takes this replica out.
func (l *Loop) Run(ctx context.Context) error {
	share.Loop(ctx, share.Beat{Every: l.o.Every, Patience: l.o.Patience, News: l.o.News}, l.step, l.leave)
	return nil
}

// step is one exchange and what follows from it.
func (l *Loop) step(ctx context.Context) {
	others, err := l.exchange(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	state := l.o.Link.See(time.Now(), len(others), err)
	if remote, ok := peers.Remote(state, others, err); ok {
		l.o.OnLoad(remote)
	}
}

// exchange writes our load and reads that of the others, by replica.
func (l *Loop) exchange(ctx context.Context) (map[string]peers.Report, error) {
	now := time.Now()
	var sent map[router.Target][]byte
	if l.o.Sent != nil {
		sent = l.o.Sent(now)
	}
	mine := peers.Encode(now, l.o.Own(now), sent)
	var flat []string
	err := l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		flat, err = l.script.Run(ctx, rdb, []string{l.key},
			l.o.Replica, mine, l.o.Expiry.Milliseconds(), max(hashLife, l.o.Expiry).Milliseconds()).StringSlice()
		return err
	})
	if err != nil {
		return nil, err
	}
	read := now.Add(time.Since(now) / 2) // when the script ran, in the mean
	others := make(map[string]peers.Report, len(flat)/3)
	for i := 0; i+2 < len(flat); i += 3 {
		r, err := peers.Decode(flat[i+1])
		if ms, _ := strconv.Atoi(flat[i+2]); err == nil {
			r.At = read.Add(-time.Duration(ms) * time.Millisecond)
		}
		if err != nil {
			l.odd.Warn(l.o.Log, time.Now(), "a load in Redis that no gateway can have written: it counts as none", "replica", flat[i][:min(len(flat[i]), 64)], "error", err)
		}
		others[flat[i]] = r
		if l.o.OnSent != nil {
			r.EachSent(func(t router.Target, text []byte) { l.o.OnSent(now, t, text) })
		}
	}
	return others, nil
}

// leave takes this replica out, so that the others need not wait for its
// expiry. Without Redis there is nothing to leave.
func (l *Loop) leave(ctx context.Context) {
	_ = l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		return rdb.HDel(ctx, l.key, l.o.Replica).Err()
	})
}
