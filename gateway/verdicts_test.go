package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
)

// slowStore takes a second for each content.
type slowStore struct {
	batch.Store
	reads, now, most atomic.Int64 // all of them, at this moment, and at most at once
}

func (s *slowStore) Content(ctx context.Context, id string) ([]byte, error) {
	s.reads.Add(1)
	if n := s.now.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.now.Add(-1)
	time.Sleep(time.Second)
	return s.Store.Content(ctx, id)
}

// A file is checked once for an endpoint, however often a batch of it is asked for, and
// one file of a key at a time.
func TestAFileIsCheckedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Keys = []config.Key{key("one", "sk-one"), key("other", "sk-other")}
		c.Batches = config.Batches{Slots: 4, Bytes: 1 << 20, Keep: time.Hour}
		store := &slowStore{Store: batch.NewMemory(1<<20, time.Hour)}
		h := openWith(t, c, map[string]http.Handler{"a": echo("application/json", `{}`)}, houseOptions{batches: store})
		t.Cleanup(h.idle)
		begin := func(secret string, id any, endpoint string) reply {
			return h.post("/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"24h"}`, id, endpoint), "Authorization", "Bearer "+secret)
		}
		bad := h.fields(h.store("sk-one", input+"{"))["id"]
		good := h.fields(h.store("sk-one", input))["id"]
		others := h.fields(h.store("sk-other", input))["id"]
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				id, want := bad, "invalid_json_line"
				if i%2 == 1 {
					id, want = good, `"in_progress"`
				}
				if r := begin("sk-one", id, "/v1/embeddings"); r.status != 200 || !strings.Contains(r.body, want) {
					t.Errorf("got %d %s, want %s", r.status, r.body, want)
				}
			})
		}
		all.Wait()
		if reads, most := store.reads.Load(), store.most.Load(); reads != 2 || most != 1 {
			t.Errorf("two files of one key were read %d times, %d at once; want 2, and 1", reads, most)
		}
		all.Go(func() { begin("sk-one", good, "/v1/responses") })
		all.Go(func() { begin("sk-other", others, "/v1/embeddings") })
		all.Wait()
		if reads, most := store.reads.Load(), store.most.Load(); reads != 4 || most != 2 {
			t.Errorf("another endpoint, and another key: %d reads, %d at once; want 4, and 2", reads, most)
		}
		h.do(h.request("DELETE", fmt.Sprint("/v1/files/", bad), "", "Authorization", "Bearer sk-one"))
		if r := begin("sk-one", bad, "/v1/embeddings"); r.status != 400 || !strings.Contains(r.body, "There is no file") {
			t.Errorf("a file that was deleted: got %d %s", r.status, r.body)
		}
		if r := begin("sk-other", good, "/v1/embeddings"); r.status != 400 {
			t.Errorf("another key's file: got %d %s", r.status, r.body)
		}
	})
}

// What is remembered has an end, and who waits may go.
func TestVerdictsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v verdicts
		good := func() (fileVerdict, error) { return fileVerdict{lines: 1}, nil }
		for i := range mostVerdicts + 10 {
			_, _ = v.of(t.Context(), "a", checkedFile{fmt.Sprint(i), ""}, good)
		}
		if len(v.known) != mostVerdicts || len(v.order) != mostVerdicts || len(v.turns) != 0 {
			t.Errorf("%d verdicts in %d, %d turns; want %d, as many, and none", len(v.known), len(v.order), len(v.turns), mostVerdicts)
		}
		over := make(chan struct{})
		go func() {
			_, _ = v.of(t.Context(), "a", checkedFile{"x", ""}, func() (fileVerdict, error) { <-over; return good() })
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.of(ctx, "a", checkedFile{"y", ""}, good); err == nil {
			t.Error("two files of one client are checked at once")
		}
		close(over)
		synctest.Wait()
		if len(v.turns) != 0 {
			t.Errorf("%d turns are left", len(v.turns))
		}
	})
}

// One key of several has half of the room for files and batches, and is told what to do.
// A key that is alone, and whoever comes where there are no keys, has all.
func TestAKeyHasHalfOfTheRoomForFiles(t *testing.T) {
	for _, x := range []struct {
		name string
		keys []config.Key
		half bool
	}{
		{"no keys", nil, false},
		{"one key", []config.Key{key("one", "sk-one")}, false},
		{"one key that is rotated", []config.Key{key("one", "sk-one"), key("one", "sk-old")}, false},
		{"two keys", []config.Key{key("one", "sk-one"), key("other", "sk-other")}, true},
	} {
		half := x.half
		bubble(t, x.name, func(t *testing.T) {
			c := settings("a")
			c.Keys = x.keys
			c.Batches = config.Batches{Slots: 4, Bytes: 1000, Keep: time.Hour}
			h := openWith(t, c, map[string]http.Handler{"a": echo("application/json", `{}`)}, houseOptions{batches: batch.NewMemory(1000, time.Hour)})
			t.Cleanup(h.idle)
			id := h.fields(h.store("sk-one", strings.Repeat("x", 450)))["id"]
			r := h.store("sk-one", strings.Repeat("x", 450))
			if refused := r.status == 400 && strings.Contains(r.body, "files_full") && strings.Contains(r.body, "Delete files that are done with, or wait"); refused != half || !half && r.status != 200 {
				t.Errorf("a second file: got %d %s", r.status, r.body)
			}
			if !half {
				return
			}
			if r := h.store("sk-other", strings.Repeat("x", 501)); r.status != 400 || !strings.Contains(r.body, "500 bytes") || !strings.Contains(r.body, "batches.bytes") {
				t.Errorf("a file that never fits: got %d %s", r.status, r.body)
			}
			ask := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h","metadata":{"x":%q}}`, id, strings.Repeat("y", 100))
			if r := h.post("/v1/batches", ask, "Authorization", "Bearer sk-one"); r.status != 400 || !strings.Contains(r.body, "half of the room") {
				t.Errorf("a batch: got %d %s", r.status, r.body)
			}
			if r := h.store("sk-other", strings.Repeat("x", 450)); r.status != 200 {
				t.Errorf("another key: got %d %s", r.status, r.body)
			}
		})
	}
}
