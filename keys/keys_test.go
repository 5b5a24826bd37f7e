package keys_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/keys/filekeys"
	"github.com/pacer-dev/pacer/keys/rediskeys"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// stores are the implementations, each opened anew by what it returns.
func stores(t *testing.T) map[string]func() keys.Store {
	dir := t.TempDir()
	server := redistest.Start(t)
	return map[string]func() keys.Store{
		"file": func() keys.Store {
			s := must.Get(filekeys.Open(dir))(t)
			return s
		},
		"redis": func() keys.Store { return rediskeys.New(server.Client(t)) },
	}
}

// A random walk of changes: what the store keeps is what was done, and the audit
// log has each change once, in order, and nothing else.
func TestARandomWalkOfChanges(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			ring := keys.New(open())
			rnd := rand.New(rand.NewPCG(7, 7))
			var want []string
			secrets := map[string]string{} // by name, of those that are not revoked
			for i := range 300 {
				now := noon.Add(time.Duration(rnd.IntN(3)) * time.Second) // ids grow although the clock does not
				name, who := fmt.Sprintf("k%d", rnd.IntN(12)), fmt.Sprintf("w%d", rnd.IntN(3))
				_, active := secrets[name]
				var did string
				var secret string
				var err error
				switch rnd.IntN(4) {
				case 0, 1:
					did = "key.create"
					_, secret, err = ring.Create(ctx, now, who, api.KeySpec{Name: name, Routes: []string{"chat"}})
					if active != errors.Is(err, keys.ErrExists) {
						t.Fatalf("step %d: create of %s, there: %v: %v", i, name, active, err)
					}
				case 2:
					did = "key.rotate"
					_, secret, err = ring.Rotate(ctx, now, who, name, time.Minute)
				case 3:
					did = "key.revoke"
					_, err = ring.Revoke(ctx, now, who, name)
					if err == nil {
						delete(secrets, name)
					}
				}
				if did != "key.create" && active != (err == nil) {
					t.Fatalf("step %d: %s of %s, there: %v: %v", i, did, name, active, err)
				}
				if err != nil {
					continue
				}
				if secret != "" {
					secrets[name] = secret
				}
				want = append(want, strings.Join([]string{who, did, name}, " "))
			}
			must.Do(t, ring.Note(ctx, noon, "file", "config.reload", ""))
			want = append(want, "file config.reload ")

			again := keys.New(open()) // as after a restart, or elsewhere
			if changed, err := again.Refresh(ctx); err != nil || !changed {
				t.Fatalf("refresh: %v, %v", changed, err)
			}
			active := map[string]bool{}
			for _, k := range again.List() {
				if !k.Revoked.IsZero() {
					continue
				}
				active[k.Spec.Name] = true
				if k.Hash != sha256.Sum256([]byte(secrets[k.Spec.Name])) || !strings.HasPrefix(secrets[k.Spec.Name], strings.TrimSuffix(k.Hint, "…")) {
					t.Errorf("%s has not the hash of its last secret", k.Spec.Name)
				}
			}
			if len(active) != len(secrets) {
				t.Errorf("%d keys are active, want %d", len(active), len(secrets))
			}
			entries := must.Get(again.Entries(ctx, 10_000))(t)
			var got []string
			for _, e := range slices.Backward(entries) {
				got = append(got, strings.Join([]string{e.Who, e.Did, e.To}, " "))
			}
			if !slices.Equal(got, want) {
				t.Errorf("the audit log has %d entries:\n%q\nwant %d:\n%q", len(got), got, len(want), want)
			}
			if changed, err := again.Refresh(ctx); err != nil || changed {
				t.Errorf("nothing changed, and Refresh says %v, %v", changed, err)
			}
		})
	}
}

// Who changes what another one has just changed is told so, and changes nothing.
func TestTwoWhoChangeOneKey(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store := open()
			a, b := keys.New(store), keys.New(store)
			if _, _, err := a.Create(ctx, noon, "a", api.KeySpec{Name: "k"}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := b.Create(ctx, noon, "b", api.KeySpec{Name: "k"}); !errors.Is(err, keys.ErrConflict) {
				t.Errorf("the second create: %v, want a conflict", err)
			}
			must.Get(b.Refresh(ctx))(t)
			must.Get(b.Revoke(ctx, noon, "b", "k"))(t)
			if _, _, err := a.Rotate(ctx, noon, "a", "k", 0); !errors.Is(err, keys.ErrConflict) {
				t.Errorf("a rotation of what is revoked: %v, want a conflict", err)
			}
			entries, err := a.Entries(ctx, 10)
			if err != nil || len(entries) != 2 {
				t.Errorf("%d entries, %v; want those of what was done", len(entries), err)
			}
			if changed, err := a.Refresh(ctx); err != nil || !changed || a.List()[0].Revoked.IsZero() {
				t.Errorf("a does not hear of it: %v, %v", changed, err)
			}
			if err := a.Sweep(ctx, noon.Add(31*24*time.Hour)); err != nil || len(a.List()) != 0 {
				t.Errorf("a month later %d keys, %v; want none", len(a.List()), err)
			}
		})
	}
}

// A Redis that has lost its data gets the keys back, revoked ones as such.
func TestARedisThatLostItsKeys(t *testing.T) {
	server := redistest.Start(t)
	ctx := context.Background()
	a, b := keys.New(rediskeys.New(server.Client(t))), keys.New(rediskeys.New(server.Client(t)))
	for _, name := range []string{"one", "two"} {
		if _, _, err := a.Create(ctx, noon, "w", api.KeySpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	must.Get(b.Refresh(ctx))(t)
	must.Get(a.Revoke(ctx, noon, "w", "two"))(t)
	server.Restart()
	for _, r := range []*keys.Ring{b, a, b, b} { // b is the first, and has not heard
		must.Get(r.Refresh(ctx))(t)
	}
	for i, r := range []*keys.Ring{a, b} {
		if list := r.List(); len(list) != 2 || !list[0].Revoked.IsZero() || list[1].Revoked.IsZero() {
			t.Errorf("%d has %+v, want the second one revoked", i, list)
		}
	}
	for _, key := range server.Do("KEYS", "*").([]any) {
		if server.Do("PTTL", key).(int64) <= 0 {
			t.Errorf("%s lives for ever", key)
		}
	}
}

// A text of 200 MB that somebody put there takes longer than an exchange may: it is
// taken out, and the keys stay.
func TestAHugeKeyIsNotRead(t *testing.T) {
	server := redistest.Start(t)
	ctx := context.Background()
	store := rediskeys.New(server.Client(t))
	a := keys.New(store)
	if _, _, err := a.Create(ctx, noon, "w", api.KeySpec{Name: "one"}); err != nil {
		t.Fatal(err)
	}
	sent := func() int {
		info, _ := server.Do("INFO", "stats").(string)
		_, rest, _ := strings.Cut(info, "total_net_output_bytes:")
		line, _, _ := strings.Cut(rest, "\r\n")
		return must.Get(strconv.Atoi(line))(t)
	}
	huge := strings.Repeat("x", 4<<20)
	for _, key := range server.Do("KEYS", "*").([]any) {
		server.Do("HSET", key, "forged", huge, huge, "1 {}", "@rev", huge)
	}
	before := sent()
	for range 2 {
		must.Get(a.Refresh(ctx))(t)
	}
	if entries, err := store.Entries(ctx, 10); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v; want that of one", len(entries), err)
	}
	if n := sent() - before; n > 1<<20 || len(a.List()) != 1 {
		t.Errorf("%d bytes were read, and %d keys are known", n, len(a.List()))
	}
}

// A file of keys that cannot be read is no reason to begin anew: that would bring
// back who was revoked.
func TestAFileOfKeysThatIsBroken(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "keys.json"), []byte("{"), 0o600))
	if _, err := filekeys.Open(dir); err == nil || !strings.Contains(err.Error(), "keys.json") {
		t.Errorf("opened with %v, want an error that names the file", err)
	}
}

// slow is a store whose answer to Load is under way while something else happens.
type slow struct {
	keys.Store
	meanwhile func()
}

func (s *slow) Load(ctx context.Context, mark string, known []keys.Key) ([]keys.Key, string, error) {
	list, next, err := s.Store.Load(ctx, mark, known)
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return list, next, err
}

// A key that is handed out while the store is asked for all keys is not in its
// answer, and stays: it was refused, and its budget began anew, until the next look.
func TestAKeyThatIsHandedOutWhileTheStoreIsAsked(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store := &slow{Store: open()}
			ring, other := keys.New(store), keys.New(store.Store)
			if _, _, err := other.Create(ctx, noon, "w", api.KeySpec{Name: "old"}); err != nil {
				t.Fatal(err)
			}
			store.meanwhile = func() {
				store.meanwhile = nil
				if _, _, err := ring.Create(ctx, noon, "w", api.KeySpec{Name: "fresh"}); err != nil {
					t.Error(err)
				}
			}
			for look := range 3 {
				must.Get(ring.Refresh(ctx))(t)
				if list := ring.List(); len(list) != 2 || list[0].Spec.Name != "fresh" {
					t.Errorf("after look %d there are %d keys, want the old and the fresh one", look+1, len(list))
				}
			}
		})
	}
}
