package redisstore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

// sumsKey is where gpu's sums are.
const sumsKey = "pacer:{gpu}:sums:llama"

// measured is a minute of one stream at 30 tokens/s.
func measured() profiles.Delta {
	return profiles.Delta{Target: gpu, Sums: profiles.SumsFrom(map[string]float64{
		"b0.s": 60, "b0.t": 60, "b0.y": 1800, "b0.k": 1800, "b0.r": 1800, "b0.n": 1800, "b0.w": 12,
		"f.a00": 10, "f.b0": 0.3, "f.yy": 0.01, "f.t": 60, "f.k": 1800, "f.k0": 1800,
		"s0.a00": 10, "s0.b0": 0.3, "s0.yy": 0.01, "s0.t": 60, "s0.k": 1800,
		"t.answers": 3, "t.output": 1800, "t.t": 60,
	}, time.Unix(1_700_000_000, 0))}
}

// logged is a store that writes its log to lines.
func logged(t *testing.T, s *redistest.Server, lines *bytes.Buffer) *redisstore.Store {
	t.Helper()
	return redisstore.Open(redisstore.Options{Conn: s.Client(t), HalfLife: storetest.HalfLife, Timeout: patience, Log: slog.New(slog.NewTextHandler(lines, nil))})
}

// near reports sums that are not those of measured, but for what the slow copy
// forgets while the test runs.
func near(t *testing.T, what string, got profiles.Sums) {
	t.Helper()
	g, w := storetest.Fields(got), storetest.Fields(measured().Sums)
	if len(g) != len(w) {
		t.Errorf("%s: %d sums, want %d", what, len(g), len(w))
	}
	for name, want := range w {
		if math.Abs(g[name]-want) > 1e-3*want {
			t.Errorf("%s: %s = %v, want %v", what, name, g[name], want)
		}
	}
}

// poisons are commands of somebody who may write to the server, or of a bit
// that fell over.
var poisons = map[string][]any{
	"negative tokens":     {"HSET", sumsKey, "b0.y", "-1e6"},
	"negative seconds":    {"HSET", sumsKey, "b0.s", "-60"},
	"no number":           {"HSET", sumsKey, "b0.y", "many"},
	"nothing":             {"HSET", sumsKey, "b0.y", ""},
	"nan":                 {"HSET", sumsKey, "b0.y", "nan"},
	"-nan":                {"HSET", sumsKey, "b0.t", "-nan"},
	"inf":                 {"HSET", sumsKey, "f.k", "inf"},
	"beyond all sums":     {"HSET", sumsKey, "f.a00", "1e31"},
	"endless speed":       {"HSET", sumsKey, "b0.y", "1e12"},
	"n times the streams": {"HSET", sumsKey, "b0.s", "6000"},
	"n times the time":    {"HSET", sumsKey, "b0.t", "6000"},
	"a bit of the sign":   {"HSET", sumsKey, "f.b0", "-0.3"},
	"a bit of the power":  {"HSET", sumsKey, "b0.s", "3932160"},
	"a matrix of nothing": {"HSET", sumsKey, "f.a01", "1e6"},
	"a year of it":        {"HSET", sumsKey, "b0.s", "3e7", "b0.t", "3e7"},
	"of the slow copy":    {"HSET", sumsKey, "s0.b0", "-1e20"},
	"of first tokens":     {"HSET", sumsKey, "ft.n", "1", "ft.y", "1e9"},
	"no birth":            {"HDEL", sumsKey, "@birth"},
	"no time of change":   {"HSET", sumsKey, "@updated", "yesterday"},
}

// Each poison is dropped by the first who reads it and what was known is put
// back, once, whoever reads it next; nobody sees a sum of it, and the log says it
// once.
func TestPoisonedSums(t *testing.T) {
	for name, poison := range poisons {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			var lines, others bytes.Buffer
			a, b := logged(t, s, &lines), logged(t, s, &others)
			push(t, a, "a", 1, measured())
			tokens(t, a, gpu)
			tokens(t, b, gpu) // both know
			s.Do(poison...)
			for i := range 3 {
				for _, store := range []*redisstore.Store{a, b} {
					sums, err := store.Load(t.Context(), []profiles.Target{gpu})
					if err != nil {
						t.Fatalf("load %d: %v", i, err)
					}
					near(t, fmt.Sprint("load ", i), sums[gpu])
				}
			}
			if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "backend=gpu model=llama found=") {
				t.Errorf("logged %q, want one line that names the target", got)
			}
			if others.Len() > 0 {
				t.Errorf("the other gateway logged %q", others.String())
			}
			for i := range 5 { // whoever does it again and again fills no log
				s.Do(poison...)
				sums, err := a.Load(t.Context(), []profiles.Target{gpu})
				if err != nil {
					t.Fatalf("poison %d: %v", i, err)
				}
				near(t, fmt.Sprint("poison ", i), sums[gpu])
			}
			if n := strings.Count(lines.String(), "\n"); n != 1 {
				t.Errorf("%d lines after six poisons, want 1", n)
			}
		})
	}
}

// What cannot be read in time is cut before it is read again, or the store would be taken
// for gone as long as it is there.
func TestHugePoisonIsNotReadAgain(t *testing.T) {
	for name, poison := range map[string][]any{
		"a sum":       {"HSET", sumsKey, "b0.y", strings.Repeat("1", 32<<20)},
		"a name":      {"HSET", sumsKey, strings.Repeat("n", 32<<20), "1"},
		"the birth":   {"HSET", sumsKey, "@birth", strings.Repeat("b", 32<<20)},
		"the version": {"HSET", sumsKey, "@v", strings.Repeat("1", 32<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			var lines bytes.Buffer
			a := logged(t, s, &lines)
			push(t, a, "a", 1, measured())
			tokens(t, a, gpu)
			s.Do(poison...)
			late, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := a.Load(late, []profiles.Target{gpu}); err == nil {
				t.Fatal("what came too late was taken")
			}
			before := sent(t, s)
			sums, err := a.Load(t.Context(), []profiles.Target{gpu})
			if n := sent(t, s) - before; n > 1<<20 {
				t.Errorf("%d bytes were read", n)
			}
			if name == "the version" { // cut, and no version of ours: left alone
				if err == nil || len(err.Error()) > 1000 {
					t.Errorf("got %.200v, want a few words about the version", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			near(t, name, sums[gpu])
		})
	}
}

// sent is how many bytes the server has sent.
func sent(t *testing.T, s *redistest.Server) (bytes int) {
	t.Helper()
	info, _ := s.Do("INFO", "stats").(string)
	_, rest, _ := strings.Cut(info, "total_net_output_bytes:")
	line, _, _ := strings.Cut(rest, "\r\n")
	bytes = must.Get(strconv.Atoi(line))(t)
	return bytes
}

// A delta that comes before anybody has read the poison is not added to it.
func TestADeltaMeetsPoison(t *testing.T) {
	for name, poison := range poisons {
		if strings.HasPrefix(name, "no ") && name != "no number" || name == "of first tokens" {
			continue // of nothing that the delta adds to: it is the reader who finds it
		}
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			var lines bytes.Buffer
			a := logged(t, s, &lines)
			push(t, a, "a", 1, measured())
			tokens(t, a, gpu)
			s.Do(poison...)
			push(t, a, "a", 2, measured())
			if got := s.Do("HGET", sumsKey, "b0.y"); got != "1800" {
				t.Errorf("%v tokens in Redis, want those of the delta alone", got)
			}
			sums := must.Get(a.Load(t.Context(), []profiles.Target{gpu}))(t)
			g := sums[gpu]
			if err := g.Check(); err != nil {
				t.Error(err)
			}
			if got := storetest.Fields(g)["b0.y"] / storetest.Fields(g)["b0.s"]; math.Abs(got-30) > 1e-6 {
				t.Errorf("%v tokens/s, want 30", got)
			}
			if n := strings.Count(lines.String(), "\n"); n != 1 {
				t.Errorf("%d lines, want 1:\n%s", n, lines.String())
			}
		})
	}
}

// A gateway that knows nothing drops the poison too; the one that knows puts
// its sums back, beside what came meanwhile.
func TestPoisonFoundByANewcomer(t *testing.T) {
	s := redistest.Start(t)
	a, newcomer := store(t, s), store(t, s)
	push(t, a, "a", 1, delta(gpu, 100))
	wantTokens(t, "a", tokens(t, a, gpu), 100)
	s.Do("HSET", sumsKey, "b3.y", "-9")
	wantTokens(t, "the newcomer", tokens(t, newcomer, gpu), 0)
	push(t, newcomer, "b", 1, delta(gpu, 5))
	wantTokens(t, "a", tokens(t, a, gpu), 105)
	wantTokens(t, "the newcomer", tokens(t, newcomer, gpu), 105)
}

// The number of a replica's last delta that it cannot have reached, or what is no
// number, does not keep the replica out; nor does something else in its place.
func TestPoisonedNumberOfAReplica(t *testing.T) {
	for _, poison := range [][]any{
		{"HSET", "pacer:{gpu}:seq:a", "llama", "99999999999"},
		{"HSET", "pacer:{gpu}:seq:a", "llama", "inf"},
		{"HSET", "pacer:{gpu}:seq:a", "llama", "last"},
		{"SET", "pacer:{gpu}:seq:a", "x"},
	} {
		s := redistest.Start(t)
		a := store(t, s)
		push(t, a, "a", 1, delta(gpu, 1))
		s.Do(poison...)
		push(t, a, "a", 2, delta(gpu, 10))
		push(t, a, "a", 2, delta(gpu, 10)) // a retry
		wantTokens(t, fmt.Sprint(poison...), tokens(t, a, gpu), 11)
	}
}

// Stamps that nobody's clock can have written: the slow copy fades on, and what
// is newer is not taken for older.
func TestPoisonedStamps(t *testing.T) {
	s := redistest.Start(t)
	a := store(t, s)
	push(t, a, "a", 1, measured())
	for i, stamp := range []string{"x", "-5", "nan", "99999999999999999999"} {
		s.Do("HSET", sumsKey, "@slow", stamp, "@updated", "99999999999999999")
		push(t, a, "a", uint64(i+2), measured())
		if got := s.Do("HGET", sumsKey, "@slow").(string); len(got) != 13 {
			t.Errorf("@slow is %s after %s, want ms of the server's clock", got, stamp)
		}
		if got := s.Do("HGET", sumsKey, "@updated"); got != "1700000000000000" {
			t.Errorf("@updated is %v, want that of the delta", got)
		}
		if sums, err := a.Load(t.Context(), []profiles.Target{gpu}); err != nil || len(sums) != 1 {
			t.Errorf("%d targets, %v", len(sums), err)
		}
	}
}
