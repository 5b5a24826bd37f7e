package redislimit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/redisconn"
)

//go:embed lua/exchange.lua
var exchangeSource string

const (
	// version is that of the hash, and a part of its key: what another version
	// writes is never touched.
	version = "1"

	// perTrip is how many keys go into one round trip: the server has 250 ms
	// for each, and takes about 20 µs for a key.
	perTrip = 256

	// idleEvery is in how many exchanges a key takes part that is not busy
	// here: its first request finds what others have used.
	idleEvery = 10

	// leaveTimeout bounds the last word of a replica that ends.
	leaveTimeout = 500 * time.Millisecond
)

// Options configures a Loop. The zero value of every optional field means the
// default named in its comment.
type Options struct {
	// Conn is where the limits are shared. Required.
	Conn *redisconn.Client

	// Replica names this process; unique per process start. Required.
	Replica string

	// Limiters returns those of the configuration in force by the names of
	// their keys; nil where a key has no limits. Required.
	Limiters func() map[string]*limit.Limiter

	// Replicas returns how many share the limits, this one included, and
	// whether they are out of touch: then each is held to its part, and nothing
	// is told until they are back. Required.
	Replicas func() (n int, lost bool)

	// Log is told when the sharing is lost and when it is back. Required.
	Log *slog.Logger

	// Every is the time between exchanges. Default: 200ms.
	Every time.Duration

	// Expiry is how long the last exchange is good for. Default: four times
	// Every.
	Expiry time.Duration
}

// Loop keeps limiters in step with those of other replicas. Only Run may be
// used by several goroutines, and only once.
type Loop struct {
	o       Options
	script  *redis.Script
	seq     uint64    // of the last report
	turn    int       // of idleEvery: at 0 keys that are not busy take part
	good    bool      // an exchange has worked
	failing time.Time // since when none does; zero = the last one worked
	lost    bool      // the last step held keys to their parts
	said    bool      // a key that cannot be shared was logged
	mended  time.Time // when it was last said that something was replaced; zero = never
}

// mendEvery is how often it is said that something was replaced.
const mendEvery = 10 * time.Minute

// New checks o. It starts nothing.
func New(o Options) (*Loop, error) {
	switch {
	case o.Conn == nil:
		return nil, errors.New("redislimit: Conn is missing")
	case o.Replica == "":
		return nil, errors.New("redislimit: Replica is missing")
	case o.Limiters == nil:
		return nil, errors.New("redislimit: Limiters is missing")
	case o.Replicas == nil:
		return nil, errors.New("redislimit: Replicas is missing")
	case o.Log == nil:
		return nil, errors.New("redislimit: Log is missing")
	}
	if o.Every <= 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Expiry <= 0 {
		o.Expiry = 4 * o.Every
	}
	return &Loop{o: o, script: redis.NewScript(exchangeSource)}, nil
}

// Run exchanges until ctx ends, then tells what is left.
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

// leave tells what is left. Without Redis nobody is told.
func (l *Loop) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if _, lost := l.o.Replicas(); !lost {
		_ = l.exchange(ctx, l.reports(time.Now()))
	}
}

// step is one exchange and what follows from it.
func (l *Loop) step(ctx context.Context) {
	replicas, lost := l.o.Replicas()
	var err error
	if !lost {
		err = l.talk(ctx)
		lost = !l.failing.IsZero() && (!l.good || time.Since(l.failing) > l.o.Expiry)
	}
	if ctx.Err() == nil {
		l.tell(lost, replicas, err)
	}
}

// talk exchanges what there is to tell and to ask, and notes whether it works.
func (l *Loop) talk(ctx context.Context) error {
	reports := l.reports(time.Now())
	if len(reports) == 0 {
		return nil
	}
	// Longer is no use: by then the next exchange is due.
	bounded, cancel := context.WithTimeout(ctx, max(2*l.o.Every, 100*time.Millisecond))
	defer cancel()
	err := l.exchange(bounded, reports)
	switch {
	case err == nil:
		l.good, l.failing = true, time.Time{}
	case l.failing.IsZero():
		l.failing = time.Now()
	}
	return err
}

// tell holds all keys to their parts while the others are lost.
func (l *Loop) tell(lost bool, replicas int, err error) {
	limited := 0
	now := time.Now()
	for _, limiter := range l.o.Limiters() {
		if limiter != nil {
			limited++
			if lost {
				limiter.Alone(now, replicas)
			}
		}
	}
	switch {
	case lost == l.lost || limited == 0:
		return
	case lost:
		args := []any{"replicas", replicas}
		if err != nil {
			args = append(args, "error", err)
		}
		l.o.Log.Warn("limits of keys are not shared: each replica allows its part of them", args...)
	default:
		l.o.Log.Info("limits of keys are shared", "replicas", replicas)
	}
	l.lost = lost
}

// report is what is told of one key.
type report struct {
	limit.Report
	name    string
	limiter *limit.Limiter
}

// reports collects what is to be told and asked.
func (l *Loop) reports(now time.Time) []report {
	l.seq++
	everybody := l.turn == 0
	l.turn = (l.turn + 1) % idleEvery
	var list []report
	for name, limiter := range l.o.Limiters() {
		if limiter != nil && (everybody || limiter.Busy(now)) {
			list = append(list, report{limiter.Report(now, l.seq), name, limiter})
		}
	}
	return list
}

// exchange tells reports and hands the answers on. Keys that the server cannot
// take, because there is something else in their place, are held to their
// parts.
func (l *Loop) exchange(ctx context.Context, reports []report) error {
	refused := error(nil)
	for trip := range slices.Chunk(reports, perTrip) {
		calls := make([]redisconn.Call, len(trip))
		for i := range trip {
			calls[i] = l.call(&trip[i])
		}
		var replies []*redis.Cmd
		err := l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
			replies, err = redisconn.RunAll(ctx, rdb, l.script, calls)
			return err
		})
		if err != nil {
			return err
		}
		now := time.Now()
		replicas, _ := l.o.Replicas()
		for i, reply := range replies {
			totals, replaced, err := readTotals(reply, &trip[i].Report)
			if replaced != "" {
				l.mend(now, trip[i].name, replaced)
			}
			if err != nil {
				refused = fmt.Errorf("key %s: %w", trip[i].name, err)
				trip[i].limiter.Alone(now, replicas)
				continue
			}
			trip[i].limiter.Answer(now, trip[i].Seq, totals)
		}
	}
	if refused != nil && !l.said {
		l.o.Log.Warn("the limits of a key cannot be shared: each replica allows its part of them", "error", refused)
	}
	l.said = refused != nil
	return nil
}

// mend says that something in Redis was replaced, which no replica can have
// written.
func (l *Loop) mend(now time.Time, name, found string) {
	if l.mended.IsZero() || now.Sub(l.mended) >= mendEvery {
		l.mended = now
		l.o.Log.Warn("limits of a key in Redis that no gateway can have written: replaced by what is known here", "key", name, "found", found)
	}
}

// call is one run of exchange.lua. Keys of other limits are other keys.
func (l *Loop) call(r *report) redisconn.Call {
	args := []any{l.o.Replica, r.Seq, r.Running, l.o.Expiry.Milliseconds()}
	for _, s := range []limit.Spent{r.Requests, r.Tokens} {
		args = append(args, number(s.Size), number(s.New), number(s.Used))
	}
	return redisconn.Call{Keys: []string{l.key(r)}, Args: args}
}

func (l *Loop) key(r *report) string {
	return l.o.Conn.Key(r.name, "limits", version, number(r.Requests.Size)+"-"+number(r.Tokens.Size))
}

// readTotals reads what exchange.lua returns to r, within what it can return:
// nobody owes for more than an hour.
func readTotals(reply *redis.Cmd, r *limit.Report) (t limit.Totals, replaced string, err error) {
	list, err := reply.Slice()
	if err != nil {
		return limit.Totals{}, "", err
	}
	if len(list) == 4 {
		requests, ok1 := list[0].(string)
		tokens, ok2 := list[1].(string)
		running, ok3 := list[2].(int64)
		replaced, ok4 := list[3].(string)
		if ok1 && ok2 && ok3 && ok4 && running >= 0 && running <= math.MaxInt32 {
			var err1, err2 error
			t.Requests, err1 = total(requests, r.Requests.Size)
			t.Tokens, err2 = total(tokens, r.Tokens.Size)
			t.Running = int(running)
			return t, replaced, errors.Join(err1, err2)
		}
	}
	return t, "", errors.New("an answer that is none of the script's")
}

// total reads what was used of a bucket of size per minute.
func total(text string, size float64) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && !(v >= 0 && v <= 60*size*(1+1e-9)) {
		err = fmt.Errorf("a total of %v where %v flow in per minute", v, size)
	}
	return v, err
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
