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
	"github.com/pacer-dev/pacer/share"
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

	// Link says whether the others are out of touch: then each is held to its
	// part, and nothing is told until they are back. Required.
	Link *share.Link

	// Log is told of keys that cannot be shared, and of what was replaced.
	// Required.
	Log *slog.Logger

	// Every is the time between exchanges. Default: share.Every.
	Every time.Duration

	// Expiry is how long the last exchange is good for. Default: share.Expiry.
	Expiry time.Duration
}

// Loop keeps limiters in step with those of other replicas. Only Run may be
// used by several goroutines, and only once.
type Loop struct {
	o       Options
	script  *redis.Script
	seq     uint64       // of the last report
	turn    int          // of idleEvery: at 0 keys that are not busy take part
	refused share.Seldom // a key cannot be shared
	mended  share.Seldom // something was replaced
}

// New checks o. It starts nothing.
func New(o Options) (*Loop, error) {
	if err := share.Missing("redislimit", o, "Conn", "Replica", "Limiters", "Link", "Log"); err != nil {
		return nil, err
	}
	if o.Every <= 0 {
		o.Every = share.Every
	}
	if o.Expiry <= 0 {
		o.Expiry = share.Expiry
	}
	return &Loop{o: o, script: redis.NewScript(exchangeSource)}, nil
}

// Run exchanges until ctx ends, then tells what is left.
func (l *Loop) Run(ctx context.Context) error {
	share.Loop(ctx, share.Beat{Every: l.o.Every}, l.step, l.leave)
	return nil
}

// leave tells what is left. Alone there is nobody to tell.
func (l *Loop) leave(ctx context.Context) {
	if !l.o.Link.State().Alone {
		_ = l.exchange(ctx, l.reports(time.Now()))
	}
}

// step is one exchange; alone all keys are held to their parts instead. An
// exchange that fails leaves all keys as they are: the breaker of the connection
// makes the next one of loads fail too, and so turns the verdict.
func (l *Loop) step(ctx context.Context) {
	if state := l.o.Link.State(); state.Alone {
		now := time.Now()
		for _, limiter := range l.o.Limiters() {
			if limiter != nil {
				limiter.Alone(now, state.Replicas)
			}
		}
		return
	}
	_ = l.exchange(ctx, l.reports(time.Now()))
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

// exchange tells reports and hands the answers on, as far as the server gives any.
// Keys that the server cannot take, because there is something else in their place,
// are held to their parts.
func (l *Loop) exchange(ctx context.Context, reports []report) error {
	for trip := range slices.Chunk(reports, perTrip) {
		calls := make([]redisconn.Call, len(trip))
		for i := range trip {
			calls[i] = l.call(&trip[i])
		}
		replies, err := l.o.Conn.Run(ctx, l.script, calls...)
		if err != nil {
			return err // what was told is told again, under its number
		}
		now := time.Now()
		for i, reply := range replies {
			totals, replaced, err := readTotals(reply, &trip[i].Report)
			if replaced != "" {
				l.mended.Warn(l.o.Log, now, "limits of a key in Redis that no gateway can have written: replaced by what is known here", "key", trip[i].name, "found", replaced)
			}
			if err != nil {
				l.refused.Warn(l.o.Log, now, "the limits of a key cannot be shared: each replica allows its part of them", "key", trip[i].name, "error", err)
				trip[i].limiter.Alone(now, l.o.Link.State().Replicas)
				continue
			}
			trip[i].limiter.Answer(now, trip[i].Seq, totals)
		}
	}
	return nil
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
