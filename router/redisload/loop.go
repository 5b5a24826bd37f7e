package redisload

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/router"
)

//go:embed lua/exchange.lua
var exchangeSource string

const (
	// hashLife is how long the hash outlives the last replica.
	hashLife = time.Minute
	// leaveTimeout bounds the last word of a replica that ends.
	leaveTimeout = 500 * time.Millisecond
	// returnGrace is how long after an outage the replicas that are not back
	// yet are still believed in: each asks again in its own time, up to twelve
	// seconds later than the first.
	returnGrace = 13 * time.Second
	// oddEvery is how often it is said that a report cannot be.
	oddEvery = 10 * time.Minute
)

// Options configures a Loop. The zero value of every optional field means the
// default named in its comment.
type Options struct {
	// Conn is where the load is shared. Required.
	Conn *redisconn.Client

	// Replica names this process; unique per process start. Required.
	Replica string

	// Replicas is how many share the backends while Redis has not told.
	// Default: 1.
	Replicas int

	// Loads returns what this replica runs: router.Router.Loads. Required.
	Loads func() []router.BackendLoad

	// OnLoad is told what the others run, after every exchange. Required.
	OnLoad func(router.RemoteLoad)

	// Log is told when the sharing is lost and when it is back. Required.
	Log *slog.Logger

	// Every is the time between exchanges. Default: 200ms.
	Every time.Duration

	// Expiry is how old another's load may be. Default: four times Every, so
	// that with the exchange that finds it a dead replica is gone within a second.
	Expiry time.Duration
}

// Loop publishes and reads load. Only Run may be used by several goroutines,
// and only once.
type Loop struct {
	o      Options
	script *redis.Script
	key    string
	view   view
	odd    time.Time // when it was last said that a report cannot be; zero = never
}

// New checks o. It starts nothing.
func New(o Options) (*Loop, error) {
	switch {
	case o.Conn == nil:
		return nil, errors.New("redisload: Conn is missing")
	case o.Replica == "":
		return nil, errors.New("redisload: Replica is missing")
	case o.Loads == nil:
		return nil, errors.New("redisload: Loads is missing")
	case o.OnLoad == nil:
		return nil, errors.New("redisload: OnLoad is missing")
	case o.Log == nil:
		return nil, errors.New("redisload: Log is missing")
	}
	if o.Every <= 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Expiry <= 0 {
		o.Expiry = 4 * o.Every
	}
	return &Loop{
		o:      o,
		script: redis.NewScript(exchangeSource),
		key:    o.Conn.Key("load"),
		view:   view{replicas: max(o.Replicas, 1), expiry: o.Expiry, grace: returnGrace},
	}, nil
}

// Run exchanges load until ctx ends, then takes this replica out.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.o.Every)
	defer tick.Stop()
	defer l.leave(ctx)
	for {
		l.step(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// step is one exchange and what follows from it.
func (l *Loop) step(ctx context.Context) {
	others, err := l.exchange(ctx)
	if ctx.Err() != nil {
		return
	}
	lost := l.view.lost
	remote, ok := l.view.see(time.Now(), others, err)
	switch {
	case l.view.lost && !lost:
		l.o.Log.Warn("load is not shared: the other replicas are taken to be as busy as this one", "replicas", l.view.replicas, "error", err)
	case lost && !l.view.lost:
		l.o.Log.Info("load is shared", "replicas", l.view.replicas)
	}
	if ok {
		l.o.OnLoad(remote)
	}
}

// exchange writes our load and reads that of the others, by replica.
func (l *Loop) exchange(ctx context.Context) (map[string]report, error) {
	// Longer is no use: by then the next exchange is due.
	ctx, cancel := context.WithTimeout(ctx, max(2*l.o.Every, 100*time.Millisecond))
	defer cancel()
	mine := encode(l.o.Loads())
	var flat []string
	err := l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		flat, err = l.script.Run(ctx, rdb, []string{l.key},
			l.o.Replica, mine, l.o.Expiry.Milliseconds(), max(hashLife, l.o.Expiry).Milliseconds()).StringSlice()
		return err
	})
	if err != nil {
		return nil, err
	}
	others := make(map[string]report, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		r, err := decode(flat[i+1])
		if err != nil {
			l.wonder(time.Now(), flat[i], err)
		}
		others[flat[i]] = r
	}
	return others, nil
}

// wonder says that a replica reports what no gateway can have written.
func (l *Loop) wonder(now time.Time, replica string, err error) {
	if l.odd.IsZero() || now.Sub(l.odd) >= oddEvery {
		l.odd = now
		l.o.Log.Warn("a load in Redis that no gateway can have written: it counts as none", "replica", replica[:min(len(replica), 64)], "error", err)
	}
}

// leave takes this replica out, so that the others need not wait for its
// expiry. Without Redis there is nothing to leave.
func (l *Loop) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_ = l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		return rdb.HDel(ctx, l.key, l.o.Replica).Err()
	})
}
