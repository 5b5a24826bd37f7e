package redishistory

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica is one gateway's history, with a clock of its own.
type replica struct {
	*Loop
	ring *history.Ring
	log  bytes.Buffer
}

func newReplica(t *testing.T, s *redistest.Server, id string, past ...string) *replica {
	t.Helper()
	r := &replica{ring: history.NewRing(time.Now().Add(-20 * time.Minute))}
	r.ring.Configure([]string{"chat"}, []string{"a"})
	r.Loop = must.Get(New(Options{
		Conn: s.Client(t), Replica: id, Name: "host-" + id, Past: past, Ring: r.ring, Watch: history.NewWatch(r.ring),
		Alone: func() bool { return false }, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	}))(t)
	return r
}

// newReader returns a replica alone in its store, and what others write there with.
func newReader(t *testing.T) (*replica, *redis.Client) {
	t.Helper()
	s := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	r := newReplica(t, s, "reader")
	r.ring.Advance(time.Now())
	return r, rdb
}

// serve counts n requests in each of the steps from so long ago to now, and tells
// Redis after each.
func (r *replica) serve(t *testing.T, ago time.Duration, n int) {
	t.Helper()
	for now := time.Now(); ago > 0; ago -= history.Step {
		for range n {
			r.ring.Route("chat").Add(history.Outcome{Result: history.Met, TPS: 40, TTFT: 0.1})
		}
		r.ring.Advance(now.Add(-ago))
		must.Do(t, r.write(t.Context()))
	}
	r.ring.Advance(time.Now())
}

func (r *replica) offered(w history.Window) uint64 {
	return r.ring.Figures(time.Now(), r.ring.Route("chat"), w).Offered()
}

// Each step is counted once, however often it is read; one that comes later learns
// the past of the others bit by bit; one that restarted does not count itself twice.
func TestReplicasCountEachOtherOnce(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s, "a"), newReplica(t, s, "b")
	a.step(t.Context())
	b.step(t.Context())
	a.serve(t, 10*time.Minute, 3)
	want := a.offered(history.Hour)
	if want < 170 {
		t.Fatalf("a has counted %d", want)
	}
	b.ring.Advance(time.Now())
	for range 12 { // 60 steps, a dozen each
		b.step(t.Context())
	}
	if got := b.offered(history.Hour); got < want-3 || got > want {
		t.Errorf("b says %d for both, of which a has counted %d", got, want)
	}
	if n, all := b.ring.Replicas(time.Now()); n != 2 || !all {
		t.Errorf("b counts %d replicas, all %v", n, all)
	}
	after := newReplica(t, s, "c", "a") // a, which was restarted with its disk
	after.ring.Advance(time.Now())
	for range 12 {
		after.step(t.Context())
	}
	if got := after.offered(history.Hour); got != 0 {
		t.Errorf("the one that has a's history from its disk counts %d once more", got)
	}
	marks, _ := b.o.Watch.Marks(0, 10)
	if len(marks) != 0 {
		t.Errorf("nobody noticed anything, and b has %+v", marks)
	}
	a.o.Watch.Note(time.Now(), "reload", "one route more")
	a.step(t.Context())
	b.step(t.Context())
	if marks, _ = b.o.Watch.Marks(0, 10); len(marks) != 1 || marks[0].Replica != "host-a" || marks[0].Text != "one route more" {
		t.Errorf("a reloaded, and b has %+v", marks)
	}
}

// What somebody else wrote into Redis is no history, whatever it is, and costs no
// more than a line.
func TestForeignHistories(t *testing.T) {
	b, rdb := newReader(t)
	ctx := context.Background()
	bomb := func() string {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(bytes.Repeat([]byte(" "), 64<<20))
		z.Close()
		return out.String()
	}()
	at := b.ring.Ended()
	present := `{"at":` + slot(at) + `}`
	full := `{"at":9223372036854775807,"time":"` + time.Now().UTC().Format(time.RFC3339) + `","name":"x"}`
	for i, bad := range []string{"", "nonsense", "{}", present, strings.Repeat("x", maxMarks+1), full, `{"at":-5,"time":"` + time.Now().UTC().Format(time.RFC3339) + `"}`} {
		rdb.HSet(ctx, b.index(), string(rune('m'+i)), bad)
	}
	here := `{"at":` + "AT" + `,"time":"` + time.Now().UTC().Format(time.RFC3339) + `","name":"x"}`
	rdb.HSet(ctx, b.index(), "z", strings.Replace(here, "AT", strconv.FormatInt(at, 10), 1))
	for i, bad := range []string{"", "nonsense", bomb, strings.Repeat("x", maxPacked+1)} {
		rdb.HSet(ctx, b.steps("z"), slot(at-int64(i)), bad)
	}
	for range 5 {
		b.step(ctx)
	}
	if got := b.offered(history.SixHours); got != 0 {
		t.Errorf("%d requests were believed", got)
	}
	if lines := strings.Count(b.log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines, want one in ten minutes:\n%s", lines, b.log.String())
	}
	rdb.Del(ctx, b.index())
	rdb.Set(ctx, b.index(), "no hash", 0)
	b.step(ctx) // and nothing happens
}

// What is too large to be read in time is not read at all, or the store would be taken
// for gone as long as it is there.
func TestAHugeHistoryIsNotRead(t *testing.T) {
	b, rdb := newReader(t)
	ctx := context.Background()
	huge := strings.Repeat("x", 32<<20)
	at := b.ring.Ended()
	rdb.HSet(ctx, b.index(), "huge", huge, strings.Repeat("n", 1<<20), "{}")
	rdb.HSet(ctx, b.index(), "z", fmt.Sprintf(`{"at":%d,"time":%q,"name":"x"}`, at, time.Now().UTC().Format(time.RFC3339)))
	rdb.HSet(ctx, b.steps("z"), slot(at), huge)
	before := sent(t, rdb)
	for range 3 {
		b.step(ctx)
	}
	if n := sent(t, rdb) - before; n > 1<<20 {
		t.Errorf("%d bytes were read", n)
	}
	if left := must.Get(rdb.HKeys(ctx, b.index()).Result())(t); len(left) != 2 || slices.Contains(left, "huge") {
		t.Errorf("%.200q are left, want z and the reader", left)
	}
	if log := b.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "huge") {
		t.Errorf("the log says %q", log)
	}
}

// sent is how many bytes the server has sent.
func sent(t *testing.T, rdb redis.UniversalClient) (bytes int) {
	t.Helper()
	_, rest, _ := strings.Cut(rdb.Info(t.Context(), "stats").Val(), "total_net_output_bytes:")
	line, _, _ := strings.Cut(rest, "\r\n")
	bytes = must.Get(strconv.Atoi(line))(t)
	return bytes
}

// Nor are more names than any fleet has: a part of them is read, and taken out.
func TestManyNamesAreNotRead(t *testing.T) {
	b, rdb := newReader(t)
	ctx := context.Background()
	var fields []any
	for i := range 150_000 {
		fields = append(fields, fmt.Sprintf("%060d", i), "")
	}
	rdb.HSet(ctx, b.index(), fields...)
	before := sent(t, rdb)
	b.step(ctx)
	if n := sent(t, rdb) - before; n > maxRead+maxRead/2 {
		t.Errorf("%d bytes were read", n)
	}
	if left := rdb.HLen(ctx, b.index()).Val(); left > 100_000 {
		t.Errorf("%d names are left", left)
	}
}

// A replica whose clock is minutes off counts, and the line says so; one that is gone
// does not, whatever its clock was.
func TestAClockThatIsMinutesOff(t *testing.T) {
	a, rdb := newReader(t)
	writes := func(ago time.Duration) {
		text := must.Get(json.Marshal(presence{At: 1, Time: time.Now().Add(-ago), Name: "late"}))(t)
		must.Do(t, rdb.HSet(t.Context(), a.index(), "late", text).Err())
	}
	for _, ago := range []time.Duration{245 * time.Second, 240 * time.Second} {
		writes(ago)
		a.step(t.Context())
	}
	if n, all := a.ring.Replicas(time.Now()); n != 2 || !all {
		t.Errorf("one writes that is 4 minutes late, and there are %d, all %v", n, all)
	}
	if said := regexp.MustCompile(`clocks of two gateways differ.*ahead_s=-24[0-9]`).FindAllString(a.log.String(), -1); len(said) != 1 {
		t.Errorf("the log says\n%s", a.log.String())
	}
	a.read["late"].heard = time.Now().Add(-alive - time.Second) // it wrote nothing since
	a.step(t.Context())
	if n, _ := a.ring.Replicas(time.Now()); n != 1 {
		t.Errorf("it is gone, and there are %d", n)
	}
}

// Two fleets that have one prefix by mistake, and backends of one name, are told so: once,
// and not while a changed file goes round. Replicas of one fleet are not.
func TestOneNameAtTwoAddresses(t *testing.T) {
	s := redistest.Start(t)
	at := map[string]string{"gpu": "http://10.0.0.1:8000/v1", "api": "https://api.example/v1"}
	a, b, c := newReplica(t, s, "a"), newReplica(t, s, "b"), newReplica(t, s, "c")
	elsewhere := maps.Clone(at)
	for _, r := range []*replica{a, b} {
		r.o.Engines = func() map[string]string { return at }
	}
	all := func(times int) {
		for range times {
			for _, r := range []*replica{a, b, c} { // c is of a version that tells nothing
				r.step(t.Context())
			}
		}
	}
	lines := func(r *replica) int {
		return strings.Count(r.log.String(), "backend of the same name at another address")
	}
	all(2 * oftenStrange)
	b.o.Engines = func() map[string]string { return elsewhere }
	elsewhere["gpu"] = "http://10.0.0.2:8000/v1"
	all(oftenStrange - 2)
	elsewhere["gpu"] = at["gpu"]
	all(2)
	for _, r := range []*replica{a, b, c} {
		if n := lines(r); n != 0 {
			t.Errorf("%s said so %d times, and both have one engine:\n%s", r.o.Name, n, r.log.String())
		}
	}
	elsewhere["gpu"] = "http://10.0.0.2:8000/v1"
	all(3 * oftenStrange)
	for _, r := range []*replica{a, b} {
		if n := lines(r); n != 1 || !strings.Contains(r.log.String(), "backend=gpu") {
			t.Errorf("%s said so %d times, want once, of gpu:\n%s", r.o.Name, n, r.log.String())
		}
		marks, _ := r.o.Watch.Marks(0, 10)
		own := 0
		for _, m := range marks {
			if m.Kind == "store" && m.Replica == "" {
				own++
			}
		}
		if own != 1 {
			t.Errorf("%s has the marks %+v, want one of its own", r.o.Name, marks)
		}
	}
	if n := lines(c); n != 0 {
		t.Errorf("c tells nothing, and says %q", c.log.String())
	}
}

// A process that has ended is heard of for a while, by its clock or the one here: one that
// follows it, and has a backend elsewhere, is no second fleet. That is said after two minutes.
func TestWhoHasGoneIsNoStranger(t *testing.T) {
	var log bytes.Buffer
	watch := history.NewWatch(history.NewRing(time.Now()))
	s := strangers{own: hashed(map[string]string{"gpu": "http://10.0.0.2:8000/v1"})}
	before := hashed(map[string]string{"gpu": "http://10.0.0.1:8000/v1"})
	began := time.Now()
	said := func(from, to time.Duration) int {
		for at := from; at < to; at += every {
			s.hear("before", before)
			s.tell(slog.New(slog.NewTextHandler(&log, nil)), watch, began.Add(at))
		}
		marks, _ := watch.Marks(0, 10)
		return strings.Count(log.String(), "another gateway") + len(marks)
	}
	if n := said(0, 2*alive); n > 0 {
		t.Errorf("%d lines and marks of a process that ended %v ago:\n%s", n, 2*alive, log.String())
	}
	if n := said(2*alive, 2*time.Minute); n != 2 {
		t.Errorf("%d lines and marks after two minutes, want one of either:\n%s", n, log.String())
	}
}
