package redisusage

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/usage"
)

const huge = 4 << 20

// What somebody put there that cannot be read in time is taken out, or each look at what
// was used would have the store taken for gone.
func TestAHugeCellIsNotReadAgain(t *testing.T) {
	server := redistest.Start(t)
	at := time.Now()
	now := usage.HourOf(at)
	for name, field := range map[string][]any{
		"a value": {nameOf(usage.Of{Key: "forged"}), strings.Repeat("1", huge)},
		"a name":  {strings.Repeat("n", huge), "1 1 1 1 1 1"},
	} {
		r := newReplica(t, server, name, usage.Dollar)
		r.book.Add(usage.Record{At: at, Of: usage.Of{Key: holder.Name}, Sums: usage.Sums{Requests: 1}})
		must.Do(t, r.loop.tell(t.Context(), 4))
		server.Do(append([]any{"HSET", r.loop.hourKey(now)}, field...)...)
		late, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.loop.Cells(late, now, now+1); err == nil {
			t.Fatal("what came too late was taken")
		}
		must.Get(r.loop.Cells(t.Context(), now-24, now-1))(t) // another day can be read
		before := sent(t, server)
		cells := must.Get(r.loop.Cells(t.Context(), now, now+1))(t)
		if n := sent(t, server) - before; n > 1<<20 || len(cells) != 1 || cells[0].Requests == 0 {
			t.Errorf("%s: %d bytes were read, and %d cells", name, n, len(cells))
		}
	}
}

// An hour in which very many keys asked is no forged one: a look that fails takes nothing
// out of it.
func TestAnHourOfManyKeysIsKept(t *testing.T) {
	const many = 20_000
	server := redistest.Start(t)
	r := newReplica(t, server, "one", usage.Dollar)
	now := usage.HourOf(time.Now())
	fields := []any{"HSET", r.loop.hourKey(now)}
	for i := range many {
		fields = append(fields, nameOf(usage.Of{Key: fmt.Sprint("key ", i), Route: usage.Other}), "1 1 1 1 1 1")
	}
	server.Do(fields...)
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.loop.Cells(late, now, now+1); err == nil {
		t.Fatal("what came too late was taken")
	}
	if cells := must.Get(r.loop.Cells(t.Context(), now, now+1))(t); len(cells) != many {
		t.Errorf("%d cells are left of %d", len(cells), many)
	}
}

// Nor does what a budget or the sums are told with grow by it.
func TestNothingHugeIsTold(t *testing.T) {
	fresh := func() string { return fmt.Sprint(time.Now().UnixMilli()) }
	for name, put := range map[string]func(server *redistest.Server, budget, told string){
		"a part": func(s *redistest.Server, budget, _ string) {
			s.Do("HSET", budget, "@"+strings.Repeat("r", huge), fresh()+" 1 0")
		},
		"the begin": func(s *redistest.Server, budget, _ string) {
			s.Do("HSET", budget, "@begun", fresh()+" "+strings.Repeat("1", huge)+" 0")
		},
		"who left": func(s *redistest.Server, budget, _ string) {
			s.Do("HSET", budget+":left", "@"+strings.Repeat("r", huge), "1")
		},
		"the birth": func(s *redistest.Server, _, told string) { s.Do("HSET", told, "@birth", strings.Repeat("b", huge)) },
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			r := newReplica(t, server, "one", usage.Dollar)
			step := func() {
				r.book.Add(usage.Record{At: time.Now(), Of: usage.Of{Key: holder.Name}, Sums: usage.Sums{Requests: 1, Cost: 1000}})
				r.exchange(t)
				must.Do(t, r.loop.tell(t.Context(), 4))
			}
			step()
			for _, key := range server.Do("KEYS", "*budget*").([]any) {
				if text := key.(string); !strings.HasSuffix(text, ":left") {
					put(server, text, r.loop.o.Conn.Key("usage", "told", version))
				}
			}
			r = newReplica(t, server, "two", usage.Dollar)
			before := sent(t, server)
			step()
			step()
			if n := sent(t, server) - before; n > 1<<20 {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
}

// sent is how many bytes the server has sent.
func sent(t *testing.T, s *redistest.Server) int {
	t.Helper()
	info, _ := s.Do("INFO", "stats").(string)
	_, rest, _ := strings.Cut(info, "total_net_output_bytes:")
	line, _, _ := strings.Cut(rest, "\r\n")
	return must.Get(strconv.Atoi(line))(t)
}
