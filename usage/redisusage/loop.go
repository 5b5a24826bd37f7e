package redisusage

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/share"
	"github.com/pacer-dev/pacer/usage"
)

var (
	//go:embed lua/spend.lua
	spendSource string
	//go:embed lua/add.lua
	addSource string
	//go:embed lua/trim.lua
	trimSource string
)

const (
	// version is that of what is stored, and a part of its keys.
	version = "1"

	perBatch    = 128      // cells in one batch: the server has 250 ms for it
	perTrip     = 256      // budgets in one round trip
	perRead     = 64       // hours in one round trip
	mostPerHour = 4096     // cells of one hour
	mostFields  = 100_000  // of an hour that any fleet has: each key may have one more when it is full
	longestName = 16 << 10 // of a field: six names, each with escapes
	longestSums = 256
	addEvery    = time.Second

	// partExpiry is how long a replica is silent that holds nothing any more. One that is
	// stopped for a while, by a busy machine, still spends what it holds.
	partExpiry = 3 * time.Second

	hoursLive  = usage.KeepHours * time.Hour
	budgetLife = 40 * 24 * time.Hour // beyond the end of its period
)

// Options configures a Loop. All fields are required but Patience.
type Options struct {
	Conn    *redisconn.Client
	Replica string // unique per process start
	Book    *usage.Book
	Link    *share.Link // whether the others are out of touch
	Log     *slog.Logger

	// Patience is how long an exchange may take. Default: that of a share.Beat.
	Patience time.Duration
}

// Loop keeps a book in step with those of other replicas. Run is for one
// goroutine and once; Cells is safe for concurrent use.
type Loop struct {
	o          Options
	spend, add *redis.Script
	trim       *redis.Script
	unread     atomic.Int64 // first of perRead hours that could not be read: what is too long is taken out there before the next look; 0 = none
	told       time.Time    // when cells were told last
	most       int          // replicas that there were of late, for a store that was emptied
	mostAt     time.Time
	answered   time.Time // last exchange that succeeded
	cutOff     bool      // the store could not be reached for so long that others may take it for gone
	ends       bool
	refused    share.Seldom
}

// New checks o. It starts nothing.
func New(o Options) (*Loop, error) {
	if err := share.Missing("redisusage", o, "Conn", "Replica", "Book", "Link", "Log"); err != nil {
		return nil, err
	}
	return &Loop{o: o, spend: redis.NewScript(spendSource), add: redis.NewScript(addSource), trim: redis.NewScript(trimSource)}, nil
}

// Start learns what was spent before the first request comes.
func (l *Loop) Start(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(l.o.Patience, time.Second))
	defer cancel()
	if l.exchange(ctx) != nil {
		l.o.Book.Alone(l.o.Link.State().Replicas)
	}
}

// Run exchanges until ctx ends, then tells what is left.
func (l *Loop) Run(ctx context.Context) error {
	share.Loop(ctx, share.Beat{Every: share.Every, Patience: l.o.Patience, News: l.o.Book.News}, l.step, func(ctx context.Context) {
		l.ends = true // what it holds is the others' at once
		_ = l.exchange(ctx)
		_ = l.tell(ctx, 64)
	})
	return nil
}

// step is one exchange; alone each budget is held to this replica's part.
func (l *Loop) step(ctx context.Context) {
	err := l.exchange(ctx)
	if state := l.o.Link.State(); err != nil && state.Alone {
		l.o.Book.Alone(state.Replicas)
	}
	if now := time.Now(); now.Sub(l.told) >= addEvery && err == nil {
		l.told = now
		_ = l.tell(ctx, 4)
	}
}

// expiry is partExpiry, and beside it the time of two exchanges where the store is far: one
// that fails, with what the breaker waits, is no silence.
func (l *Loop) expiry() time.Duration { return partExpiry + 2*l.o.Patience }

// replicas is how many there are. A store that was just emptied knows of one alone:
// as long as the others may take to come back, the most of late counts.
func (l *Loop) replicas(now time.Time) int {
	if n := l.o.Link.State().Replicas; n >= l.most || now.Sub(l.mostAt) > share.ReturnGrace {
		l.most, l.mostAt = n, now
	}
	return l.most
}

// exchange tells what was spent, and hears what all have.
func (l *Loop) exchange(ctx context.Context) error {
	replicas := l.replicas(time.Now())
	l.o.Book.Replicas(replicas)
	for trip := range slices.Chunk(l.o.Book.Report(time.Now()), perTrip) {
		anew, err := l.trip(ctx, trip, replicas, false)
		if err == nil && len(anew) > 0 {
			_, err = l.trip(ctx, anew, replicas, true)
		}
		if err != nil {
			l.cutOff = l.cutOff || time.Since(l.answered) > l.expiry()/2
			return err // what was told is told again, under its number
		}
	}
	l.answered, l.cutOff = time.Now(), false
	return nil
}

// trip tells some of what was spent, with its parts or without, and returns of what
// the store wants the parts.
func (l *Loop) trip(ctx context.Context, trip []usage.Spent, replicas int, parts bool) (anew []usage.Spent, err error) {
	replies, err := l.o.Conn.Run(ctx, l.spend, l.calls(trip, replicas, parts)...)
	if err != nil {
		return nil, err
	}
	for i, reply := range replies {
		told, lost, err := readSpend(reply)
		switch {
		case err != nil:
			l.refused.Warn(l.o.Log, time.Now(), "a budget cannot be shared: each replica goes on with its part", "of", trip[i].Holder.String(), "error", err)
		case lost:
			anew = append(anew, trip[i])
		default:
			l.o.Book.Answer(trip[i], told)
		}
	}
	return anew, nil
}

// calls are those that tell trip, with its parts or without.
func (l *Loop) calls(trip []usage.Spent, replicas int, parts bool) []redisconn.Call {
	calls := make([]redisconn.Call, len(trip))
	for i, s := range trip {
		start := strconv.FormatInt(s.Start.Unix(), 10)
		calls[i] = redisconn.Call{
			Keys: []string{
				l.o.Conn.Key(s.Holder.String(), "budget", version, s.Per.String(), start),
				l.o.Conn.Key(s.Holder.String(), "budget", version, s.Per.String(), start, "left"),
			},
			Args: []any{
				l.o.Replica, s.Seq, int64(s.New), int64(s.Known), int64(s.Limit),
				l.expiry().Milliseconds(), (time.Until(s.End) + budgetLife).Milliseconds(), int64(s.Holds), s.Begun, replicas,
				int64(s.Reserved), int64(s.Want), bit(l.cutOff), bit(l.ends), share.ReturnGrace.Milliseconds(), int64(s.Expect), bit(parts),
			},
		}
		if parts {
			for _, p := range s.Parts {
				calls[i].Args = append(calls[i].Args, p.Replica, int64(p.Spent))
			}
		}
	}
	return calls
}

func bit(set bool) int {
	if set {
		return 1
	}
	return 0
}

// readSpend reads an answer; lost = the store wants the parts as well.
func readSpend(reply *redis.Cmd) (told usage.Told, lost bool, err error) {
	list, err := reply.Slice()
	if err != nil {
		return told, false, err
	}
	bad := errors.New("an answer that is none of the script's")
	if len(list) != 7 {
		return told, false, bad
	}
	money := func(v any) usage.Money {
		text, ok := v.(string)
		n, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil || n < 0 {
			return -1
		}
		return usage.Money(n)
	}
	want, ok1 := list[2].(int64)
	begun, ok2 := list[3].(string)
	parts, ok3 := list[4].([]any)
	whole, ok4 := list[5].(int64)
	told = usage.Told{Total: money(list[0]), Allowance: money(list[1]), Whole: whole == 1, Expect: money(list[6]), Begun: begun}
	if !ok1 || !ok2 || !ok3 || !ok4 || told.Total < 0 || told.Allowance < 0 || told.Expect < 0 || len(parts)%2 != 0 {
		return told, false, bad
	}
	for pair := range slices.Chunk(parts, 2) {
		name, ok := pair[0].(string)
		part := usage.Part{Replica: name, Spent: money(pair[1])}
		if !ok || part.Spent < 0 {
			return told, false, bad
		}
		told.Parts = append(told.Parts, part)
	}
	return told, want == 1, nil
}

// tell adds cells, at most so many batches.
func (l *Loop) tell(ctx context.Context, batches int) error {
	for range batches {
		batch := l.o.Book.Out(perBatch)
		if len(batch.Cells) == 0 {
			return nil
		}
		replies, err := l.o.Conn.Run(ctx, l.add, l.call(batch))
		if err != nil {
			return err
		}
		birth, err := replies[0].Text()
		if err != nil {
			l.refused.Warn(l.o.Log, time.Now(), "usage cannot be shared: it waits here", "error", err)
			return err
		}
		l.o.Book.Arrived(batch.Seq, birth)
	}
	return nil
}

func (l *Loop) call(batch usage.Batch) redisconn.Call {
	c := redisconn.Call{
		Keys: []string{l.o.Conn.Key("usage", "told", version)},
		Args: []any{l.o.Replica, batch.Seq, rand.Text(), hoursLive.Milliseconds(), mostPerHour},
	}
	at := map[usage.Hour]int{}
	for _, cell := range batch.Cells {
		if at[cell.Hour] == 0 {
			c.Keys = append(c.Keys, l.hourKey(cell.Hour))
			at[cell.Hour] = len(c.Keys)
		}
		s := &cell.Sums
		other := usage.Of{Key: cell.Key, Team: cell.Team, Route: usage.Other, Backend: usage.Other, Model: usage.Other, Tags: usage.Other}
		c.Args = append(c.Args, at[cell.Hour], nameOf(cell.Of), nameOf(other), s.Requests, s.Input, s.Cached, s.Output, s.Reasoning, int64(s.Cost))
	}
	return c
}

// Owns says whether key, less its prefix, is of usage or of a budget.
func Owns(key string) bool {
	tag, part, _ := strings.Cut(key, "}:")
	part, _, _ = strings.Cut(part, ":")
	return part == "budget" || tag == "{usage" && (part == "told" || part == "hour")
}

func (l *Loop) hourKey(h usage.Hour) string {
	return l.o.Conn.Key("usage", "hour", version, strconv.FormatInt(int64(h), 10))
}

// nameOf is the field of a cell: its names as a JSON list.
func nameOf(o usage.Of) string {
	data, err := json.Marshal([...]string{o.Key, o.Team, o.Route, o.Backend, o.Model, o.Tags})
	if err != nil {
		panic(err) // strings always have a form
	}
	return string(data)
}

// Cells returns what all replicas used in [from, to), with what this one has not
// told yet.
func (l *Loop) Cells(ctx context.Context, from, to usage.Hour) ([]usage.Cell, error) {
	to = min(to, usage.End(time.Now()))
	from = max(from, to-usage.KeepHours-3)
	out := l.o.Book.Cells(from, to)
	for first := from; first < to; first += perRead {
		replies := make([]*redis.MapStringStringCmd, min(perRead, to-first))
		n := usage.Hour(len(replies))
		if bad := usage.Hour(l.unread.Load()); bad != 0 && first < bad+perRead && bad < first+n {
			if err := l.cut(ctx, first, len(replies)); err != nil {
				return nil, fmt.Errorf("redisusage: %w", err)
			}
		}
		err := l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
			_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range replies {
					replies[i] = p.HGetAll(ctx, l.hourKey(first+usage.Hour(i)))
				}
				return nil
			})
			if redisconn.AboutCommand(err) {
				return nil // that hour is in no form of ours: it is left out
			}
			return err
		})
		if err != nil {
			l.unread.Store(int64(first))
			return nil, fmt.Errorf("redisusage: %w", err)
		}
		if bad := l.unread.Load(); first <= usage.Hour(bad) && usage.Hour(bad) < first+n {
			l.unread.CompareAndSwap(bad, 0)
		}
		for i, reply := range replies {
			for name, text := range reply.Val() {
				if c, ok := readCell(first+usage.Hour(i), name, text); ok {
					out = append(out, c)
				}
			}
		}
	}
	return out, nil
}

// cut has the server take out of n hours what is too long to be read in time.
func (l *Loop) cut(ctx context.Context, first usage.Hour, n int) error {
	calls := make([]redisconn.Call, n)
	for i := range calls {
		calls[i] = redisconn.Call{Keys: []string{l.hourKey(first + usage.Hour(i))}, Args: []any{longestName, longestSums, mostFields}}
	}
	_, err := l.o.Conn.Run(ctx, l.trim, calls...)
	return err
}

func readCell(h usage.Hour, name, text string) (usage.Cell, bool) {
	var names []string
	if json.Unmarshal([]byte(name), &names) != nil || len(names) != 6 {
		return usage.Cell{}, false
	}
	c := usage.Cell{Hour: h, Of: usage.Of{Key: names[0], Team: names[1], Route: names[2], Backend: names[3], Model: names[4], Tags: names[5]}}
	words := strings.Fields(text)
	into := []*int64{&c.Requests, &c.Input, &c.Cached, &c.Output, &c.Reasoning, (*int64)(&c.Cost)}
	if len(words) != len(into) {
		return usage.Cell{}, false
	}
	for i, word := range words {
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return usage.Cell{}, false
		}
		*into[i] = v
	}
	return c, true
}
