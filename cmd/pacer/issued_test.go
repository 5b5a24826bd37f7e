package main

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/keys/filekeys"
)

// distant is a store that takes 0.2 s to hear a question, and as long to answer.
type distant struct{ keys.Store }

func (d distant) Load(ctx context.Context, mark string, known []keys.Key) ([]keys.Key, string, error) {
	sleep(200 * time.Millisecond)
	defer sleep(200 * time.Millisecond)
	return d.Store.Load(ctx, mark, known)
}

// keyholder is a gateway whose keys lie in store, and what it says to a key.
func keyholder(t *testing.T, store keys.Store, running *sync.WaitGroup) (p *program, says func(secret string) int, stop func()) {
	t.Helper()
	var network memnet.Network
	cfg := houseConfig(t, []gpu{{name: "a"}}, oneRoute+"keys: [ { name: of-file, key: sk-of-the-file } ]\n")
	p = must.Get(wire(cfg, slog.New(slog.DiscardHandler), options{dial: network.Dial, listen: network.Listen}))(t)
	p.issued.ring = keys.New(store)
	must.Do(t, p.issuing(cfg))
	ctx, cancel := context.WithCancelCause(context.Background())
	ready := make(chan struct{})
	running.Go(func() {
		if err := p.run(ctx, func(string, string) { close(ready) }); err != nil {
			t.Error(err)
		}
	})
	<-ready
	transport := &http.Transport{DialContext: network.Dial}
	says = func(secret string) int {
		r := must.Get(http.NewRequest(http.MethodGet, "http://127.0.0.1:8080/v1/models", nil))(t)
		r.Header.Set("Authorization", "Bearer "+secret)
		resp := must.Get(transport.RoundTrip(r))(t)
		defer resp.Body.Close()
		must.Get(io.Copy(io.Discard, resp.Body))(t)
		return resp.StatusCode
	}
	return p, says, func() {
		transport.CloseIdleConnections()
		cancel(nil)
	}
}

// A key that one gateway revokes is refused by all three within a second, whenever it
// is revoked, and with a store that takes 0.4 s to answer.
func TestARevokedKeyIsRefusedWithinASecond(t *testing.T) {
	for name, far := range map[string]bool{"a store beside": false, "a store far away": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var store keys.Store
				store = must.Get(filekeys.Open(dir))(t)
				if far {
					store = distant{store}
				}
				var running sync.WaitGroup
				defer running.Wait()
				var all []func(string) int
				var first *program
				for range 3 {
					p, says, stop := keyholder(t, store, &running)
					defer stop()
					all = append(all, says)
					if first == nil {
						first = p
					}
				}
				rnd := rand.New(rand.NewPCG(17, 17))
				var worst time.Duration
				for range 8 {
					_, secret, err := first.issued.ring.Create(t.Context(), time.Now(), "test", api.KeySpec{Name: "mobile", Routes: []string{"*"}})
					must.Do(t, err)
					first.applyKeys()
					sleep(2*time.Second + time.Duration(rnd.IntN(1000))*time.Millisecond)
					for i, says := range all {
						if got := says(secret); got != http.StatusOK {
							t.Fatalf("gateway %d answers %d to a key that was handed out", i, got)
						}
					}
					must.Get(first.issued.ring.Revoke(t.Context(), time.Now(), "test", "mobile"))(t)
					first.applyKeys()
					revoked := time.Now()
					for i, says := range all {
						for says(secret) != http.StatusUnauthorized {
							if time.Since(revoked) > 5*time.Second {
								t.Fatalf("gateway %d still takes the key 5 s after it was revoked", i)
							}
							sleep(10 * time.Millisecond)
						}
					}
					worst = max(worst, time.Since(revoked))
				}
				t.Logf("refused by all after %v at most", worst)
				if worst > time.Second {
					t.Errorf("a revoked key was taken for %v, want a second at most", worst)
				}
				for _, says := range all {
					if got := says("sk-of-the-file"); got != http.StatusOK {
						t.Errorf("the key of the file gets %d", got)
					}
				}
			})
		})
	}
}
