package engines

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/timings"
)

const (
	grace = time.Second // the default of slo.grace

	// What is delivered of what was predicted at admission, p10 and p90.
	deliveredLeast = 0.85
	deliveredMost  = 1.15
)

// crowd is users of one route who come at random, whether those before them
// have been answered or not.
type crowd struct {
	mu  sync.Mutex
	all []answer
	wg  sync.WaitGroup
}

// come sends requests at rate a second, on average, until ctx ends.
func (c *crowd) come(ctx context.Context, t *testing.T, u *user, rate float64) {
	for {
		select {
		case <-time.After(time.Duration(rand.ExpFloat64() / rate * float64(time.Second))):
		case <-ctx.Done():
			return
		}
		c.wg.Go(func() {
			a := u.ask(t.Context(), 8+rand.IntN(64), 32+rand.IntN(96))
			c.mu.Lock()
			c.all = append(c.all, a)
			c.mu.Unlock()
		})
	}
}

// fate is what became of a crowd.
type fate struct{ served, kept, shed, failed int }

// judge waits for the crowd's answers and counts them.
func (c *crowd) judge(t *testing.T, floor float64) (f fate) {
	t.Helper()
	c.wg.Wait()
	for _, a := range c.all {
		switch {
		case a.served():
			f.served++
			if floor == 0 || a.kept(floor, grace) {
				f.kept++
			}
		case a.status == http.StatusTooManyRequests:
			f.shed++
		default:
			f.failed++
			t.Logf("failed: status %d: %v", a.status, a.err)
		}
	}
	return f
}

// TestFloors sends twice the users that an engine carries at a floor, with batch
// beside them, from the first second on: those who are let in keep their floor.
func TestFloors(t *testing.T) {
	for _, kind := range []engine{llamacpp, vllm} {
		t.Run(kind.name, func(t *testing.T) {
			e := kind.start(t)
			const carries = 8 // users that the floor allows
			words, tokens := func() int { return 8 + rand.IntN(64) }, func() int { return 32 + rand.IntN(96) }
			alone := timings.Users(whole(closed(t, newUser(e.url+"/v1", e.name), carries, 4, words, tokens)))[carries].TPS()
			floor := 0.9 * alone
			rate := 2 * carries / (80/floor + 1) // twice as many as can be answered
			g := gateway(t, fmt.Sprintf(`routes:
  - { model: chat, targets: [ { backend: %[1]s, model: %[1]s } ], slo: { min_tps: %.1[2]f } }
  - { model: nightly, class: batch, targets: [ { backend: %[1]s, model: %[1]s } ] }
`, e.name, floor), e)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var chat, nightly crowd
			var both sync.WaitGroup
			both.Go(func() { chat.come(ctx, t, newUser(g.Ready["data"]+"/v1", "chat"), rate) })
			both.Go(func() { nightly.come(ctx, t, newUser(g.Ready["data"]+"/v1", "nightly"), rate/2) })
			both.Wait()
			f, n := chat.judge(t, floor), nightly.judge(t, 0)
			r := record(t, e.name+"-floors")
			r.add("chat", chat.all)
			r.add("batch", nightly.all)
			r.write(t)
			t.Logf("floor %.1f, %.1f requests/s: chat %+v, batch %+v", floor, rate, f, n)
			var ratios []float64
			for _, a := range chat.all {
				if a.served() && a.predicted > 0 {
					ratios = append(ratios, a.delivered())
				}
			}
			p10, p90 := quantile(ratios, 0.1), quantile(ratios, 0.9)
			t.Logf("delivered ÷ predicted at admission: p10 %.2f, median %.2f, p90 %.2f of %d", p10, quantile(ratios, 0.5), p90, len(ratios))
			if !(p10 >= deliveredLeast && p90 <= deliveredMost) {
				t.Errorf("of what was predicted at admission %.2f to %.2f was delivered (p10, p90), want %.2f to %.2f", p10, p90, deliveredLeast, deliveredMost)
			}
			if f.failed+n.failed > 0 {
				t.Errorf("%d requests failed", f.failed+n.failed)
			}
			if f.served < 20 || float64(f.kept) < 0.99*float64(f.served) {
				t.Errorf("%d of %d served kept their floor, want 99 %% of at least 20", f.kept, f.served)
			}
			if n.served == 0 {
				t.Error("batch was never served")
			}
		})
	}
}

// TestCancelAndReturn hangs up in the midst of long answers, and kills and
// restarts the engine: it is rid of the former, and served by again after the
// latter.
func TestCancelAndReturn(t *testing.T) {
	for _, kind := range []engine{llamacpp, vllm} {
		t.Run(kind.name, func(t *testing.T) {
			e := kind.start(t)
			g := gateway(t, fmt.Sprintf("routes: [ { model: chat, targets: [ { backend: %[1]s, model: %[1]s } ] } ]\n", e.name), e)
			u := newUser(g.Ready["data"]+"/v1", "chat")
			if a := u.ask(t.Context(), 8, 16); !a.served() {
				t.Fatalf("before: %+v", a)
			}

			ctx, hangUp := context.WithCancel(t.Context())
			var users sync.WaitGroup
			for range 4 {
				users.Go(func() {
					if a := u.ask(ctx, 8, 1800); !errors.Is(a.err, context.Canceled) {
						t.Errorf("an answer of 1,800 tokens ended before its user hung up: %v", a.err)
					}
				})
			}
			proctest.Until(t, "the engine is at work", func() bool { return !e.idle(t) })
			hangUp()
			users.Wait()
			proctest.Until(t, "the engine does nothing for those who hung up", func() bool { return e.idle(t) })

			e.kill()
			if a := u.ask(t.Context(), 8, 16); a.served() || a.status != http.StatusBadGateway && a.status != http.StatusServiceUnavailable {
				t.Errorf("while it is dead: status %d: %v; want 502 or 503", a.status, a.err)
			}
			e.begin(t)
			proctest.Until(t, "it serves again", func() bool { return u.ask(t.Context(), 8, 16).served() })
		})
	}
}

// TestBenchServe runs vLLM's own benchmark against the engine and then against
// the gateway before it: all requests succeed, with as many tokens.
func TestBenchServe(t *testing.T) {
	e := vllm.start(t)
	g := gateway(t, fmt.Sprintf("routes: [ { model: %[1]s, targets: [ { backend: %[1]s, model: %[1]s } ] } ]\n", e.name), e)
	direct, through := e.benchServe(t, e.url), e.benchServe(t, g.Ready["data"])
	t.Logf("median TPOT: direct %.2f ms, through Pacer %.2f ms (%+.1f %%); tokens %d and %d", direct.TPOT, through.TPOT, 100*(through.TPOT/direct.TPOT-1), direct.Tokens, through.Tokens)
	for name, b := range map[string]bench{"direct": direct, "through Pacer": through} {
		if b.Completed != benchPrompts || b.Failed != 0 {
			t.Errorf("%s: %d completed, %d failed, want %d and 0", name, b.Completed, b.Failed, benchPrompts)
		}
	}
	if direct.Tokens != through.Tokens {
		t.Errorf("%d tokens direct, %d through Pacer", direct.Tokens, through.Tokens)
	}
}
