package storemove

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/curvesfile"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// configured is a configuration of two backends with that store.
func configured(t *testing.T, store string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pacer.yaml")
	text := fmt.Sprintf(`%s
backends:
  - { name: a, url: "http://127.0.0.1:1" }
  - { name: b, url: "http://127.0.0.1:2" }
routes:
  - { model: chat, targets: [ { backend: a, model: llama }, { backend: b, model: llama } ] }
`, store)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	cfg := must.Get(config.Load(path))(t)
	return cfg
}

// onRedis is a configuration with that Redis.
func onRedis(t *testing.T, s *redistest.Server, prefix string) *config.Config {
	cfg := configured(t, "store: memory")
	cfg.Store = config.Store{Addrs: []string{s.Addr}, Prefix: prefix}
	return cfg
}

func memoryIn(t *testing.T) string {
	return fmt.Sprintf("store: memory\nstate_dir: %q", t.TempDir())
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 123_000, time.UTC)

// learned is the evidence of a stream alone on a, of 101 tokens with so much between two.
func learned(gap time.Duration) map[profiles.Target]profiles.Sums {
	book := profiles.NewBook(profiles.Options{})
	target := profiles.Target{Backend: "a", Model: "llama"}
	at := now
	occupancy := profiles.NewOccupancy(at)
	stream := book.Open(target, profiles.Open{Sent: at, Occupancy: occupancy})
	occupancy.Set(at, 1)
	for range 101 {
		stream.Read(at, 1)
		at = at.Add(gap)
	}
	stream.Usage(profiles.Usage{PromptTokens: 12, CompletionTokens: 101})
	stream.Close(at, true)
	sums := map[profiles.Target]profiles.Sums{}
	for _, d := range book.Fold(at.Add(10 * time.Second)) {
		s := sums[d.Target]
		s.Add(d, 10*time.Minute)
		sums[d.Target] = s
	}
	return sums
}

// stock puts sums into the store of cfg.
func stock(t *testing.T, cfg *config.Config, sums map[profiles.Target]profiles.Sums) {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, curvesfile.New(now, sums).Write(&b))
	if got, err := Import(t.Context(), cfg, &b, false); err != nil || len(got.Taken) != len(sums) {
		t.Fatalf("%+v, %v", got, err)
	}
}

// Curves go from a file into Redis, from there into the file of a gateway without Redis,
// and are the very same at the end.
func TestCurvesGoAround(t *testing.T) {
	shared, alone := onRedis(t, redistest.Start(t), "pacer"), configured(t, memoryIn(t))
	sums := learned(25 * time.Millisecond)
	stock(t, shared, sums)
	m, err := Migrate(t.Context(), shared, alone)
	if err != nil || m.Copied != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	f, where, err := Export(t.Context(), alone)
	if err != nil || where != CurvesFile(alone.StateDir) {
		t.Fatalf("from %s: %v", where, err)
	}
	got, err := f.Sums()
	must.Do(t, err)
	for target, want := range sums {
		storetest.Same(t, target.Backend, got[target], want)
	}
	if l := f.Curves[0].Levels; len(l) != 1 || l[0].N != 1 || l[0].TPS != 40 {
		t.Errorf("levels %+v, want one stream at 40 tokens/s", l)
	}
}

// What is there stays unless it is to be replaced, and a target that the configuration
// does not have is named.
func TestImportSaysWhatItDid(t *testing.T) {
	cfg := configured(t, memoryIn(t))
	stock(t, cfg, learned(25*time.Millisecond))
	new := learned(10 * time.Millisecond)
	gone := profiles.Target{Backend: "gone", Model: "llama"}
	for target := range new {
		new[gone] = new[target]
		break
	}
	var b bytes.Buffer
	must.Do(t, curvesfile.New(now, new).Write(&b))
	text := b.String()
	got, err := Import(t.Context(), cfg, strings.NewReader(text), false)
	if err != nil || len(got.Left) != 1 || got.Left[0].Backend != "a" || len(got.Taken) != 1 || len(got.Unknown) != 1 || got.Unknown[0] != gone {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = Import(t.Context(), cfg, strings.NewReader(text), true); err != nil || len(got.Left) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if f, _, err := Export(t.Context(), cfg); err != nil || len(f.Curves) != 1 || f.Curves[0].Levels[0].TPS != 100 {
		t.Errorf("%+v, %v: the new one is not there", f, err)
	}
}

// What is no export, or was changed by hand so that nobody can have measured it, changes
// nothing and says why.
func TestFilesThatCannotBe(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, curvesfile.New(now, learned(25*time.Millisecond)).Write(&b))
	good := b.String()
	for text, says := range map[string]string{
		"":                           "no file of pacer store export",
		`{"format":"x","version":1}`: "no file of pacer store export",
		strings.Replace(good, `"version": 1`, `"version": 2`, 1): "of version 2",
		strings.Replace(good, `"b0.t": `, `"b0.t": -`, 1):        `a "llama"`,
		good[:len(good)/2]: "no file of pacer store export",
	} {
		cfg := configured(t, memoryIn(t))
		if _, err := Import(t.Context(), cfg, strings.NewReader(text), false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s…: %v, want %q", text, err, says)
		}
		if _, err := os.Stat(CurvesFile(cfg.StateDir)); err == nil {
			t.Errorf("%.60s… was written to the store", text)
		}
	}
	if _, _, err := Export(t.Context(), configured(t, "store: memory")); err == nil || !strings.Contains(err.Error(), "state_dir") {
		t.Errorf("without a place to keep curves: %v", err)
	}
}

// Every kind of key goes to the other store under the new prefix, with its life; what is
// there stays, what lives for seconds is left, and keys of others are not touched.
func TestMigrateTakesEverything(t *testing.T) {
	const huge = 40_000
	from, to := redistest.Start(t), redistest.Start(t)
	old, next := onRedis(t, from, "pacer"), onRedis(t, to, "team:pacer")
	stock(t, old, learned(25*time.Millisecond))
	from.Do("SET", "pacer:{s}:text", "x", "EX", "3600")
	from.Do("RPUSH", "pacer:{s}:list", "1", "2", "1")
	from.Do("SADD", "pacer:{s}:set", "1", "2")
	from.Do("ZADD", "pacer:{s}:zset", "1.5", "a", "2", "b")
	from.Do("HSET", "pacer:{s}:there", "old", "1")
	from.Do("EVAL", "for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], i, string.rep('x', 50) .. i) end", "1", "pacer:{s}:huge", huge)
	from.Do("SET", "pacer:{s}:good", "for good")
	from.Do("SET", "pacer:{s}:load", "x", "EX", "5")
	from.Do("SET", "pacerx:{s}:other", "x")
	to.Do("HSET", "team:pacer:{s}:there", "new", "1")
	m, err := Migrate(t.Context(), old, next)
	if err != nil || m.Copied != 7 || m.Left != 1 || m.Passing != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, c := range []struct {
		want any
		ask  []any
	}{
		{"x", []any{"GET", "team:pacer:{s}:text"}},
		{int64(3), []any{"LLEN", "team:pacer:{s}:list"}},
		{int64(2), []any{"SCARD", "team:pacer:{s}:set"}},
		{1.5, []any{"ZSCORE", "team:pacer:{s}:zset", "a"}},
		{int64(0), []any{"HEXISTS", "team:pacer:{s}:there", "old"}},
		{int64(huge), []any{"HLEN", "team:pacer:{s}:huge"}},
		{strings.Repeat("x", 50) + fmt.Sprint(huge), []any{"HGET", "team:pacer:{s}:huge", huge}},
		{int64(-1), []any{"PTTL", "team:pacer:{s}:good"}},
		{int64(8), []any{"DBSIZE"}},
	} {
		if got := to.Do(c.ask...); got != c.want {
			t.Errorf("%v: %v, want %v", c.ask, got, c.want)
		}
	}
	// A command that writes all of a large key would hold up the gateways of that server.
	var writes int
	_, counted, _ := strings.Cut(to.Do("INFO", "commandstats").(string), "cmdstat_hset:calls=")
	if _, err := fmt.Sscanf(counted, "%d,", &writes); err != nil || writes < huge/perCommand {
		t.Errorf("%d fields were written by %d commands (%v), want %d each at most", huge, writes, err, perCommand)
	}
	if life := to.Do("PTTL", "team:pacer:{s}:text").(int64); life < 3_500_000 || life > 3_600_000 {
		t.Errorf("the text lives for %d ms, want an hour", life)
	}
	conn, err := redisconn.Open(redisconn.Options{Store: next.Store, IOTimeout: patience})
	must.Do(t, err)
	defer conn.Close()
	for target, want := range learned(25 * time.Millisecond) {
		got := must.Get(redisstore.Open(redisstore.Options{Conn: conn, Timeout: patience}).Load(t.Context(), []profiles.Target{target}))(t)
		storetest.Same(t, "in the new store", got[target], want)
	}
	if _, err := Migrate(t.Context(), old, old); err == nil {
		t.Error("a store was migrated into itself")
	}
}

// What is of people goes to the store of all regions, all else to the region's, and back
// out of it. What stays where it is is no move.
func TestMigrateKnowsTheStoreOfAllRegions(t *testing.T) {
	alone, region, all := redistest.Start(t), redistest.Start(t), redistest.Start(t)
	people := []string{"{key%3Aana}:budget:1:month:1", "{usage}:hour:1:5", "{usage}:told:1", "{keys}:issued:1", "{keys}:audit:1"}
	engines := []string{"{keys}:sums:llama", "{usage}:sums:llama", "{budget}:sums:m", "{batch}:1:job", "{history}"}
	for _, key := range append(people, engines...) {
		alone.Do("SET", "pacer:"+key, "x")
	}
	one := onRedis(t, alone, "pacer")
	split := onRedis(t, region, "pacer")
	split.Store.Global = &config.Store{Addrs: []string{all.Addr}, Prefix: "world"}
	m, err := Migrate(t.Context(), one, split)
	if err != nil || m.Copied != len(people)+len(engines) {
		t.Fatalf("%+v, %v", m, err)
	}
	holds := func(what string, s *redistest.Server, prefix string, keys []string) {
		t.Helper()
		for _, key := range keys {
			if s.Do("EXISTS", prefix+key) != int64(1) {
				t.Errorf("%s has no %s", what, key)
			}
		}
		if n := s.Do("DBSIZE").(int64); n != int64(len(keys)) {
			t.Errorf("%s has %d keys, want %d", what, n, len(keys))
		}
	}
	holds("the region", region, "pacer:", engines)
	holds("the store of all regions", all, "world:", people)

	// What is of people leaves, while all else stays where it is.
	joined := onRedis(t, region, "pacer")
	if m, err = Migrate(t.Context(), split, joined); err != nil || m.Copied != len(people) || m.Left != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	holds("the region", region, "pacer:", append(people, engines...))
	if _, err := Migrate(t.Context(), split, split); err == nil {
		t.Error("two stores were migrated into themselves")
	}
}
