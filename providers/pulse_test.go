package providers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// A backend hangs when it owes an answer, none of its bytes comes, and its page does not
// answer; any of the three is enough to say otherwise.
func TestPulse(t *testing.T) {
	answers := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	fails := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	for name, c := range map[string]struct {
		page  http.HandlerFunc
		owes  bool
		bytes time.Duration // how often a byte comes; 0 = none does
		want  bool
	}{
		"it answers nothing": {hangs, true, 0, true},
		"its page says 500":  {fails, true, 0, true},
		"it owes nothing":    {hangs, false, 0, false},
		"its page answers":   {answers, true, 0, false},
		"bytes come":         {hangs, true, 3 * time.Second, false},
	} {
		for _, kind := range []string{"vllm", "openai"} {
			if kind == "openai" && name == "its page says 500" {
				c.want = false // it is no page of its health: whatever it says, somebody says it
			}
			t.Run(kind+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var network memnet.Network
					var asked atomic.Int64
					server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						asked.Add(1)
						if want := map[string]string{"vllm": "/health Bearer key", "openai": "/v1/models "}[kind]; r.URL.Path+" "+r.Header.Get("Authorization") != want {
							t.Errorf("asked for %s with %q, want %s", r.URL.Path, r.Header.Get("Authorization"), want)
						}
						c.page(w, r)
					})}
					l := must.Get(network.Listen("engine:80"))(t)
					go server.Serve(l)
					defer server.Close()
					began, said := time.Now(), time.Duration(0)
					var b *Backend
					o := Options{Name: "e", BaseURL: "http://engine/v1", Kind: kind, APIKey: "key", Dial: network.Dial, OnHung: func() {
						if b.Pulse().Hung() {
							said = time.Since(began)
						}
					}}
					b = must.Get(New(o))(t)
					p := must.Get(NewProber(ProberOptions{Backend: o, Pulse: b.Pulse(), OnCondition: func(Condition, error) {}}))(t)
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						_ = p.Run(ctx)
					}()
					if c.owes {
						b.Pulse().Owe(time.Now())
					}
					for range 40 {
						if <-time.After(max(c.bytes, time.Second)); c.bytes > 0 {
							b.Pulse().Hear(time.Now())
						}
					}
					if got := b.Pulse().Hung(); got != c.want || (said > 0) != c.want || said > 16*time.Second {
						t.Errorf("hung %v, said after %v; want %v, within 16s", got, said, c.want)
					}
					if kind == "openai" && !c.owes && asked.Load() > 0 {
						t.Errorf("it was asked %d times though nobody waits for it", asked.Load())
					}
					if c.want {
						sent := time.Now()
						<-time.After(time.Second)
						b.Pulse().Hear(time.Now())
						if b.Pulse().Hung() || !b.Pulse().HungSince(sent) || b.Pulse().HungSince(time.Now().Add(time.Second)) {
							t.Error("a byte came, and it hangs still, or never did")
						}
					}
					if c.owes {
						b.Pulse().Settle()
					}
					stop()
					<-ended
				})
			})
		}
	}
}

// What opened a breaker while its backend hung is over when that shows life; what opened
// it before is not.
func TestABreakerThatOpenedInAHangIsClosedByLife(t *testing.T) {
	for _, hung := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var told []string
			b := must.Get(New(Options{Name: "e", BaseURL: "http://engine/v1", OnHealth: func(h Health) { told = append(told, h.String()) }}))(t)
			p := b.Pulse()
			p.Owe(time.Now())
			hang := func() {
				for range 4 {
					began := time.Now()
					<-time.After(4 * time.Second)
					p.miss(began, time.Now())
				}
			}
			fail := func() {
				for range 5 {
					verdict, _ := b.Begin()
					verdict(fmt.Errorf("no first byte in time"))
				}
			}
			if hung {
				hang()
				fail()
			} else {
				fail()
				hang()
			}
			if !p.Hung() || len(told) == 0 || told[0] != "open" {
				t.Fatalf("hung %v, breaker %v; want both", p.Hung(), told)
			}
			p.Hear(time.Now())
			_, _ = b.Begin()
			if _, second := b.Begin(); second != hung { // half-open it takes one at a time
				t.Errorf("it opened while the backend hung: %v; then the breaker is %v", hung, told)
			}
			p.Settle()
		})
	}
}

// A backend may hang before it is known whether its pages answer: that is told as well, and
// that they do no more.
func TestThatPagesAnswerInAHangIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Pulse
		var told []string
		p = newPulse(func() { told = append(told, fmt.Sprint(p.Hung(), p.Stands())) })
		p.Owe(time.Now())
		for range 4 {
			began := time.Now()
			<-time.After(4 * time.Second)
			p.miss(began, time.Now())
		}
		for _, still := range []bool{true, true, false, false, true} {
			p.Stand(time.Now(), still, false)
		}
		p.Hear(time.Now())
		p.Stand(time.Now(), false, false)
		if want := []string{"true false", "true true", "true false", "true true", "false false"}; !slices.Equal(told, want) {
			t.Errorf("it hangs, and its pages answer: told %v, want %v", told, want)
		}
	})
}

// A backend is in doubt from the first look that saw nothing good until anything comes.
func TestABackendIsInDoubtUntilItShowsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulse(nil)
		miss := func() {
			began := time.Now()
			<-time.After(time.Second)
			p.miss(began, time.Now())
		}
		for name, shows := range map[string]func(time.Time){"a byte": p.Hear, "a look": p.See} {
			<-time.After(time.Second)
			if p.Doubtful() {
				t.Errorf("%s: it is in doubt before a look failed", name)
			}
			if miss(); !p.Doubtful() {
				t.Errorf("%s: a look failed, and nobody doubts it", name)
			}
			if shows(time.Now()); p.Doubtful() {
				t.Errorf("%s came, and it is in doubt still", name)
			}
		}
		began := time.Now()
		<-time.After(time.Second)
		p.Hear(time.Now())
		<-time.After(time.Second)
		if p.miss(began, time.Now()); p.Doubtful() {
			t.Error("a byte came since the look began, and it is in doubt")
		}
	})
}

// A backend without a page is asked less and less while it works in silence, and as soon as
// ever once a byte has come.
func TestWhoWorksInSilenceIsAskedLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		var asked atomic.Int64
		stuck := make(chan struct{})
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			select {
			case <-stuck:
				<-r.Context().Done()
			default:
				w.WriteHeader(http.StatusUnauthorized)
			}
		})}
		l := must.Get(network.Listen("engine:80"))(t)
		go server.Serve(l)
		defer server.Close()
		o := Options{Name: "e", BaseURL: "http://engine/v1", Kind: "openai", APIKey: "key", Dial: network.Dial}
		b := must.Get(New(o))(t)
		p := must.Get(NewProber(ProberOptions{Backend: o, Pulse: b.Pulse(), OnCondition: func(Condition, error) {}}))(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = p.Run(ctx)
		}()
		b.Pulse().Owe(time.Now())
		<-time.After(3 * time.Minute)
		if n := asked.Load(); n < 5 || n > 9 || b.Pulse().Hung() {
			t.Errorf("in three minutes of silence it was asked %d times, and hangs: %v; want 5 to 9 times, and that it does not", n, b.Pulse().Hung())
		}
		b.Pulse().Hear(time.Now())
		<-time.After(1500 * time.Millisecond) // till the prober has seen that
		close(stuck)
		<-time.After(16 * time.Second)
		if !b.Pulse().Hung() {
			t.Error("16 s after its last byte it is stuck, and not known to hang")
		}
		b.Pulse().Settle()
		stop()
		<-ended
	})
}
