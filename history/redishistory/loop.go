// Package redishistory lets the replicas of a gateway know how it went on the others,
// through Redis: each writes what it counted in each step of ten seconds, when that
// has ended, and the marks of its timeline; and reads what the others wrote.
//
// Nothing waits for it, and all of it is bounded: an hour of steps for each replica,
// a hundred marks, a thousand replicas, bytes for each. What no gateway can have
// written counts as nothing.
package redishistory

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/share"
)

//go:embed lua/read.lua
var readSource string

const (
	// every is the time between two exchanges: half of a step.
	every = 5 * time.Second

	// life is how long a replica's steps stay when it is gone, and alive how long it
	// counts as one of them: since it last wrote, by either clock.
	life  = time.Hour
	alive = 30 * time.Second

	// atOnce is how many steps of one replica are read in one exchange: those that a
	// new gateway lacks come little by little.
	atOnce = 12

	// mostWritten is how many steps are written in one exchange, after an outage.
	mostWritten = 60

	maxReplicas = 64      // that are read
	maxPacked   = 1 << 20 // bytes of one step, packed
	maxPlain    = 8 << 20 // and as it is
	maxMarks    = 128 << 10
	maxRead     = 4 << 20 // in one answer of the store, which has to be here in time
)

// Options configures a Loop; all fields but Name, Past, Engines and Every are required.
type Options struct {
	Conn    *redisconn.Client
	Replica string   // unique per process start
	Name    string   // for people; "" = Replica
	Past    []string // replicas whose history this one has taken over from its disk
	Ring    *history.Ring
	Watch   *history.Watch

	// Engines returns where this replica reaches each of its backends, by name. What has
	// one name in one store is taken for one engine. Default: nobody is told.
	Engines func() map[string]string

	// Alone tells whether the replicas know of each other; false = they do.
	Alone func() bool
	Log   *slog.Logger

	// Every is the time between exchanges. Default: 5s.
	Every time.Duration
}

// Loop exchanges the history with the other replicas.
type Loop struct {
	o       Options
	script  *redis.Script
	written int64             // last step of this replica that is in Redis
	read    map[string]*taken // by replica
	odd     share.Seldom
	apart   share.Seldom
	strange strangers
}

// taken is what was read of a replica.
type taken struct {
	steps [history.ReportSteps]int64 // the last one read in each place
	wrote time.Time                  // by its clock, as it said last
	heard time.Time                  // when that last changed, by the clock here; zero = never
}

// alive reports whether the replica runs, which says that it wrote at wrote. Clocks may
// be apart by any time, but that of a replica that is gone stands still.
func (k *taken) alive(now, wrote time.Time) bool {
	if !k.wrote.IsZero() && !wrote.Equal(k.wrote) {
		k.heard = now
	}
	k.wrote = wrote
	return now.Sub(wrote).Abs() <= alive || !k.heard.IsZero() && now.Sub(k.heard) <= alive
}

// presence is what a replica says of itself.
type presence struct {
	At    int64          `json:"at"`    // last step that has ended
	Time  time.Time      `json:"time"`  // by its clock
	Name  string         `json:"name"`  // for people
	Marks []history.Mark `json:"marks"` // the latest

	// Engines are the backends that it has, and at what address, as hashes.
	Engines map[string]string `json:"engines,omitempty"`
}

// New checks o.
func New(o Options) (*Loop, error) {
	if err := share.Missing("redishistory", o, "Conn", "Replica", "Ring", "Watch", "Alone", "Log"); err != nil {
		return nil, err
	}
	if o.Every <= 0 {
		o.Every = every
	}
	o.Name = cmp.Or(o.Name, o.Replica)
	return &Loop{o: o, script: redis.NewScript(readSource), read: map[string]*taken{}}, nil
}

// Run exchanges until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	share.Loop(ctx, share.Beat{Every: l.o.Every}, l.step, l.leave)
	return nil
}

func (l *Loop) index() string               { return l.o.Conn.Key("history") }
func (l *Loop) steps(replica string) string { return l.o.Conn.Key("history", replica) }

// step is one exchange. What fails is tried again with the next one; that the store is
// gone others say.
func (l *Loop) step(ctx context.Context) {
	if err := l.write(ctx); err != nil {
		return
	}
	there, err := l.presences(ctx)
	if err != nil {
		return
	}
	now := time.Now()
	replicas, marks := 1, map[string][]history.Mark{}
	for replica, p := range there {
		known := l.read[replica]
		if known == nil {
			known = &taken{}
			l.read[replica] = known
		}
		if known.alive(now, p.Time) {
			if ahead := p.Time.Sub(now); ahead.Abs() > alive {
				l.apart.Warn(l.o.Log, now, "the clocks of two gateways differ, so what both count is not of the same time: set them right (NTP)", "replica", p.Name, "ahead_s", ahead.Round(time.Second).Seconds())
			}
			if !slices.Contains(l.o.Past, replica) {
				replicas++
			}
			for i := range p.Marks {
				p.Marks[i].Replica = p.Name
			}
			marks[replica] = p.Marks
			if !slices.Contains(l.o.Past, replica) {
				l.strange.hear(p.Name, p.Engines)
			}
		}
		if slices.Contains(l.o.Past, replica) {
			continue // this one has that from its disk
		}
		if err := l.take(ctx, replica, known, p.At); err != nil {
			return
		}
	}
	maps.DeleteFunc(l.read, func(replica string, _ *taken) bool { _, still := there[replica]; return !still })
	l.strange.tell(l.o.Log, l.o.Watch, now)
	if !l.o.Alone() {
		l.o.Ring.Heard(now, replicas)
		l.o.Watch.Others(now, marks)
	}
}

// write puts the steps that have ended since the last exchange, and this replica
// itself, into Redis.
func (l *Loop) write(ctx context.Context) error {
	ended := l.o.Ring.Ended()
	if l.written == 0 {
		l.written = ended - 1 // what was before, others may have from the process that counted it
	}
	from := max(l.written+1, ended-history.ReportSteps+1)
	ended = min(ended, from+mostWritten-1)
	fields := []any{}
	for at := from; at <= ended; at++ {
		data, err := pack(l.o.Ring.Report(at))
		if err != nil {
			return err
		}
		fields = append(fields, slot(at), data)
	}
	if l.o.Engines != nil {
		l.strange.own = hashed(l.o.Engines())
	}
	me, err := json.Marshal(presence{At: ended, Time: time.Now().UTC(), Name: l.o.Name, Marks: l.o.Watch.Reported(), Engines: l.strange.own})
	if err != nil {
		return err
	}
	err = l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			if len(fields) > 0 {
				p.HSet(ctx, l.steps(l.o.Replica), fields...)
				p.PExpire(ctx, l.steps(l.o.Replica), life)
			}
			p.HSet(ctx, l.index(), l.o.Replica, me)
			p.PExpire(ctx, l.index(), life)
			return nil
		})
		return err
	})
	if err == nil {
		l.written = ended
	}
	return err
}

// slot is the place of a step in the hash of its replica, which so never grows.
func slot(at int64) string { return strconv.FormatInt(at%history.ReportSteps, 10) }

// presences are the other replicas, and forgets those that are gone for good.
func (l *Loop) presences(ctx context.Context) (map[string]presence, error) {
	var all []string
	err := l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		all, err = l.script.Run(ctx, rdb, []string{l.index()}, maxMarks, maxRead).StringSlice()
		return err
	})
	if err != nil {
		return nil, err
	}
	out := map[string]presence{}
	var gone []string
	for i := 0; i+1 < len(all); i += 2 {
		replica, text := all[i], all[i+1]
		if replica == l.o.Replica || len(out) == maxReplicas {
			continue
		}
		var p presence
		err := errors.New("it is empty, or too large")
		if text != "" {
			err = json.Unmarshal([]byte(text), &p)
		}
		if err == nil && time.Since(p.Time) <= life && len(p.Name) <= 128 {
			p.Name = cmp.Or(p.Name, replica)
			out[replica] = p
			continue
		}
		if err != nil {
			l.odd.Warn(l.o.Log, time.Now(), "a history in Redis that no gateway can have written: it counts as none", "replica", replica, "error", err)
		}
		gone = append(gone, replica)
	}
	if len(gone) == 0 {
		return out, nil
	}
	return out, l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		return rdb.HDel(ctx, l.index(), gone...).Err()
	})
}

// take reads of a replica the latest steps that were not read yet.
func (l *Loop) take(ctx context.Context, replica string, known *taken, ended int64) error {
	wanted := []any{maxPacked, maxRead}
	var ats []int64
	for at := min(ended, l.o.Ring.Ended()+1); at > ended-history.ReportSteps && at > 0 && len(ats) < atOnce; at-- {
		if known.steps[at%history.ReportSteps] != at {
			wanted, ats = append(wanted, slot(at)), append(ats, at)
		}
	}
	if len(ats) == 0 {
		return nil
	}
	var values []any
	err := l.o.Conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		values, err = l.script.Run(ctx, rdb, []string{l.steps(replica)}, wanted...).Slice()
		return err
	})
	if err != nil {
		return err
	}
	for i, v := range values {
		known.steps[ats[i]%history.ReportSteps] = ats[i] // read, whatever it is
		text, ok := v.(string)
		if !ok {
			continue // there is none
		}
		rep, err := unpack(text)
		if err == nil && rep.At != ats[i] {
			continue // of an hour before, or one that has come since
		}
		if err == nil && !l.o.Ring.Merge(rep) {
			err = errors.New("it has figures that cannot be")
		}
		if err != nil {
			l.odd.Warn(l.o.Log, time.Now(), "a history in Redis that no gateway can have written: it counts as none", "replica", replica, "error", err)
		}
	}
	return nil
}

// leave says nothing: what was counted stays for an hour.
func (l *Loop) leave(context.Context) {}

func pack(rep *history.Report) (string, error) {
	var b strings.Builder
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return "", err
	}
	if err := errors.Join(json.NewEncoder(z).Encode(rep), z.Close()); err != nil {
		return "", err
	}
	return b.String(), nil
}

func unpack(text string) (*history.Report, error) {
	if text == "" {
		return nil, errors.New("it is empty, or too large")
	}
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxPlain+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxPlain {
		return nil, fmt.Errorf("it has more than %d bytes", maxPlain)
	}
	rep := &history.Report{}
	d := json.NewDecoder(bytes.NewReader(plain))
	return rep, d.Decode(rep)
}
