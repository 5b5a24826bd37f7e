package gateway

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/sim"
)

// engine is a simulated GPU without noise: a step takes 20 ms and 1 ms for
// each sequence.
func engine(t *testing.T, change ...func(*sim.Options)) *sim.Server {
	t.Helper()
	o := sim.Options{Names: []string{"big"}, Model: sim.Model{A: 0.020, C: 0.001, D: 0.00001}, Noise: -1}
	for _, f := range change {
		f(&o)
	}
	s := must.Get(sim.NewServer(o))(t)
	return s
}

// A client that hangs up frees the backend at once, whatever it was waiting
// for, and that is no verdict about the backend.
func TestAClientThatHangsUpCancelsInEveryPhase(t *testing.T) {
	const (
		stream   = `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":1000,"stream":true}`
		document = `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":1000}`
	)
	for name, c := range map[string]struct {
		body    string
		busy    int           // streams that fill the engine's slots before
		inLine  bool          // and Pacer's own places
		after   time.Duration // when it hangs up
		reached bool          // the engine has heard of it
	}{
		"in line":               {stream, 1, true, time.Second, false},
		"in the engine's queue": {stream, 1, false, time.Second, true},
		"in the middle":         {stream, 0, false, time.Second, true},
		"not streaming":         {document, 0, false, time.Second, true},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Routes[0].OnInfeasible[0].Queue = time.Minute
			if c.inLine {
				conf.Backends[0].MaxConcurrency = 1
			}
			gpu := engine(t, func(o *sim.Options) {
				if c.busy > 0 {
					o.MaxNumSeqs = 1
					o.Behaviours = []string{"headers-after-queue"}
				}
			})
			h := open(t, conf, map[string]http.Handler{"a": gpu})
			others, stopOthers := context.WithCancel(context.Background())
			defer stopOthers()
			for range c.busy {
				go h.do(h.request("POST", chat, stream).WithContext(others))
			}
			<-time.After(100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), c.after)
			defer cancel()
			r := h.do(h.request("POST", chat, c.body).WithContext(ctx))
			if r.err == nil {
				t.Fatalf("the request ended with %d before its client hung up", r.status)
			}
			synctest.Wait()
			truth := gpu.Truth()
			if got := truth.Running + truth.Waiting; got != c.busy {
				t.Errorf("the engine still has %d requests, want %d", got, c.busy)
			}
			if want := map[bool]int{true: 1}[c.reached]; truth.Cancelled != want {
				t.Errorf("the engine counts %d cancelled, want %d", truth.Cancelled, want)
			}
			if line := h.last(); line.Outcome != outcomeGone {
				t.Errorf("outcome %q, want client_gone", line.Outcome)
			}
			stopOthers()
			h.idle()
			for range 20 {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				h.do(h.request("POST", chat, stream).WithContext(ctx))
				cancel()
			}
			synctest.Wait()
			if !h.router.InService() {
				t.Error("clients that hung up took the backend out of service")
			}
		})
	}
}

func TestAClientThatLeavesAfterTheLastEventHadItAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			answering(w, "")
			pause(r, time.Hour)
		}}})
		resp := must.Get(h.client.Do(h.request("POST", chat, streamBody)))(t)
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), "[DONE]") {
		}
		_ = resp.Body.Close()
		h.idle()
		if line := h.last(); line.Outcome != outcomeOK {
			t.Errorf("outcome %q, want ok", line.Outcome)
		}
	})
}

// A client that takes nothing at all is given up after the write timeout.
func TestAClientThatTakesNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gpu := engine(t)
		h := open(t, settings("a"), map[string]http.Handler{"a": gpu})
		start := time.Now()
		resp := must.Get(h.client.Do(h.request("POST", chat, `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":100000,"stream":true}`)))(t)
		defer resp.Body.Close()
		for gpu.Truth().Cancelled == 0 && time.Since(start) < 10*time.Minute {
			<-time.After(100 * time.Millisecond)
		}
		if got := time.Since(start); got > 40*time.Second {
			t.Errorf("given up after %v, want about 30s", got)
		}
		_ = resp.Body.Close()
		h.idle()
		if line := h.last(); line.Outcome != outcomeGone {
			t.Errorf("outcome %q, want client_gone", line.Outcome)
		}
	})
}
