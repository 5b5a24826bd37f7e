package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// race is a house whose route hedges, and is served by a as long as a has room.
// Of a it is known that first bytes take usualFirst.
type race struct {
	*house
	a, b *script
}

const usualFirst = 200 * time.Millisecond

// lateAt is when a first byte of a is late.
const lateAt = 3*usualFirst + lateLeast

func openRace(t *testing.T, change func(*config.Config)) *race {
	t.Helper()
	conf := settings("a", "b")
	conf.Routes[0].Hedge = true
	if change != nil {
		change(conf)
	}
	r := &race{a: &script{answer: after(usualFirst)}, b: &script{answer: after(usualFirst)}}
	// What is known does not change while a test runs, but by learned.
	r.house = openWith(t, conf, map[string]http.Handler{"a": r.a, "b": r.b}, houseOptions{learnEvery: 1000 * time.Hour})
	t.Cleanup(r.idle)
	for range 20 { // two of the sends that they pay for are saved
		r.post(chat, streamBody)
	}
	r.idle()
	r.learned("a")
	d := r.router.Place(time.Now(), router.Request{Route: "chat", Stream: true})
	if got := d.Lease.TTFT(); d.Lease.Target().Backend != "a" || got < usualFirst*9/10 || got > usualFirst*11/10 {
		t.Fatalf("%s is expected to take %v, want a and about %v", d.Lease.Target().Backend, got, usualFirst)
	}
	d.Lease.Done(time.Now(), 0)
	return r
}

// learned hands to the router what the book knows of a backend.
func (h *house) learned(backend string) {
	target := router.Target{Backend: backend, Model: "big"}
	h.book.Fold(time.Now())
	h.router.Update(time.Now(), router.Curves{ByTarget: map[profiles.Target]*profiles.Curve{target: h.book.Curve(target)}})
}

// after streams an answer whose first byte comes after d.
func after(d time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if !pause(r, d) {
			return
		}
		eventStream(w)
		say(w, delta)
		for range 9 {
			if !pause(r, 20*time.Millisecond) {
				return
			}
			say(w, delta)
		}
		say(w, lastDelta+usageEvent(7, 10)+doneEvent)
	}
}

var silent = after(time.Hour)

// failAfter answers with a status after d.
func failAfter(d time.Duration, status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if pause(r, d) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			say(w, `{"error":{"message":"no"}}`)
		}
	}
}

// hedges is what pacer_hedges_total says of the route chat.
func (r *race) hedges() map[string]int {
	return map[string]int{"won": r.counter("won"), "lost": r.counter("lost"), "refused": r.counter("refused")}
}

func (r *race) counter(result string) (n int) {
	r.t.Helper()
	name := fmt.Sprintf(`pacer_hedges_total{result=%q,route="chat"} `, result)
	_, value, found := strings.Cut(r.scrape(), name)
	if !found {
		r.t.Fatalf("no series %s", name)
	}
	must.Get(fmt.Sscan(value, &n))(r.t)
	return n
}

// Who is silent for too long gets company, and whoever begins first is kept.
func TestASecondAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		a, b    func(http.ResponseWriter, *http.Request)
		backend string        // whose answer is kept
		status  int           // 0 = 200
		took    time.Duration // to the last byte
		left    [2]int        // requests that a and b saw cancelled
		result  string
		third   bool // a third backend is there, and answers
	}{
		"the first is silent": {
			a: silent, b: after(usualFirst), backend: "b", took: lateAt + usualFirst + 180*time.Millisecond, left: [2]int{1, 0}, result: "won",
		},
		"the first is late and begins before the second": {
			a: after(2 * time.Second), b: silent, backend: "a", took: 2180 * time.Millisecond, left: [2]int{0, 1}, result: "lost",
		},
		"the second fails, the first comes": {
			a: after(2 * time.Second), b: failAfter(0, 502), backend: "a", took: 2180 * time.Millisecond, result: "lost",
		},
		"the second has a wrong key, the first comes": {
			a: after(2 * time.Second), b: failAfter(0, 401), backend: "a", took: 2180 * time.Millisecond, result: "lost",
		},
		"the first fails, the second comes": {
			a: failAfter(time.Second, 502), b: after(time.Second), backend: "b", took: lateAt + 1180*time.Millisecond, result: "won",
		},
		"the first is busy, the second comes": {
			a: failAfter(time.Second, 429), b: after(time.Second), backend: "b", took: lateAt + 1180*time.Millisecond, result: "won",
		},
		"both fail": {
			a: failAfter(2*time.Second, 502), b: failAfter(0, 502), backend: "b", status: 502, took: 2 * time.Second, result: "lost",
		},
		"the second is busy, the first fails": {
			a: failAfter(2*time.Second, 502), b: failAfter(0, 429), backend: "b", status: 429, took: 2 * time.Second, result: "lost",
		},
		"the second has a wrong key, the first fails": {
			a: failAfter(2*time.Second, 502), b: failAfter(0, 401), backend: "a", status: 502, took: 2 * time.Second, result: "lost",
		},
		"both fail, a third comes": {
			a: failAfter(2*time.Second, 502), b: failAfter(0, 502), backend: "c", took: 2*time.Second + usualFirst + 180*time.Millisecond, result: "lost", third: true,
		},
		"the second refuses the request, the first comes": {
			a: after(2 * time.Second), b: failAfter(0, 400), backend: "a", took: 2180 * time.Millisecond, result: "lost",
		},
		"the second refuses without words, the first comes": {
			a: after(2 * time.Second), b: states(400, ""), backend: "a", took: 2180 * time.Millisecond, result: "lost",
		},
		"both refuse the request": {
			a: failAfter(2*time.Second, 422), b: failAfter(0, 400), backend: "a", status: 422, took: 2 * time.Second, result: "lost",
		},
		"the second refuses the request, the first fails": {
			a: failAfter(2*time.Second, 502), b: failAfter(0, 400), backend: "b", status: 400, took: 2 * time.Second, result: "lost",
		},
		"the second refuses the request, the first is silent": {
			a: silent, b: failAfter(0, 400), backend: "b", status: 400, took: 2 * time.Minute, left: [2]int{1, 0}, result: "lost",
		},
		"the first refuses the request": {
			a: failAfter(lateAt+time.Second, 400), b: silent, backend: "a", status: 400, took: lateAt + time.Second, left: [2]int{0, 1}, result: "lost",
		},
	} {
		bubble(t, name, func(t *testing.T) {
			h := openRace(t, func(conf *config.Config) {
				if c.third {
					conf.Backends = append(conf.Backends, config.Backend{Name: "c", URL: "http://c/v1", Kind: "openai", Usage: "inject"})
					conf.Routes[0].Targets = append(conf.Routes[0].Targets, config.Target{Backend: "c", Model: "big"})
				}
			})
			if c.third {
				var running sync.WaitGroup
				s := h.serve("c:80", &script{answer: after(usualFirst)}, &running)
				defer running.Wait()
				defer s.Close()
			}
			h.a.answer, h.b.answer = c.a, c.b
			start := time.Now()
			resp := must.Get(h.client.Do(h.request("POST", chat, streamBody)))(t)
			synctest.Wait()
			if got := [2]int{h.a.left(), h.b.left()}; got != c.left {
				t.Errorf("a and b saw %v requests cancelled when the answer began, want %v", got, c.left)
			}
			m := 0
			for _, l := range h.router.Loads() {
				m += l.M
			}
			if m > 1 {
				t.Errorf("%d leases when the answer began, want at most its own", m)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			r := reply{status: resp.StatusCode, header: resp.Header, body: string(text), err: err}
			if want := cmp.Or(c.status, 200); r.status != want {
				t.Errorf("got %d %q, want %d", r.status, r.body, want)
			}
			if got := r.header.Get("X-Pacer-Backend"); got != c.backend {
				t.Errorf("answered by %q, want %q", got, c.backend)
			}
			if c.status == 0 && (strings.Count(r.body, delta) != 10 || !strings.HasSuffix(r.body, doneEvent)) {
				t.Errorf("got %q, want one whole stream", r.body)
			}
			if took := time.Since(start); (took - c.took).Abs() > 50*time.Millisecond {
				t.Errorf("it took %v, want %v", took, c.took)
			}
			if got := h.hedges(); got[c.result] != 1 || got["won"]+got["lost"]+got["refused"] != 1 {
				t.Errorf("hedges: %v, want one %s", got, c.result)
			}
			line := h.last()
			if line.Hedged != "b" || c.backend != "" && line.Backend != c.backend || line.Attempts != 2 && !c.third {
				t.Errorf("log line %+v, want hedged b, backend %s, 2 attempts", line, c.backend)
			}
		})
	}
}

// Where both attempts wait at engines that hang, one goes elsewhere for the two.
func TestWhoseHedgeHangsAsWellGoesElsewhere(t *testing.T) {
	for name, hung := range map[string][]string{"both hang": {"a", "b"}, "the second hangs": {"b"}} {
		bubble(t, name, func(t *testing.T) {
			h := openRace(t, func(conf *config.Config) {
				conf.Backends = append(conf.Backends, config.Backend{Name: "c", URL: "http://c/v1", Kind: "openai", Usage: "inject"})
				conf.Routes[0].Targets = append(conf.Routes[0].Targets, config.Target{Backend: "c", Model: "big"})
			})
			var running sync.WaitGroup
			c := h.serve("c:80", &script{answer: after(usualFirst)}, &running)
			defer running.Wait()
			defer c.Close()
			h.a.answer, h.b.answer = after(30*time.Second), silent
			time.AfterFunc(12*time.Second, func() {
				for _, name := range hung {
					h.backends[name].Pulse().Stand(time.Now(), true, true)
				}
			})
			want, within := "c", 14*time.Second
			if len(hung) < 2 {
				want, within = "a", 31*time.Second
			}
			start := time.Now()
			r := h.post(chat, streamBody)
			if took := time.Since(start); r.status != 200 || r.header.Get("X-Pacer-Backend") != want || took > within {
				t.Errorf("%d of %q after %v, want 200 of %s within %v: %v", r.status, r.header.Get("X-Pacer-Backend"), took, want, within, r.err)
			}
			h.idle()
		})
	}
}

func TestAClientThatHangsUpCancelsBothAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openRace(t, nil)
		h.a.answer, h.b.answer = silent, silent
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if r := h.do(h.request("POST", chat, streamBody).WithContext(ctx)); r.err == nil {
			t.Fatalf("got %d before the client hung up", r.status)
		}
		synctest.Wait()
		if h.a.left() != 1 || h.b.left() != 1 {
			t.Errorf("a and b saw %d and %d requests cancelled, want 1 each", h.a.left(), h.b.left())
		}
		if line := h.last(); line.Outcome != outcomeGone || line.Hedged != "b" {
			t.Errorf("log line %+v, want client_gone, hedged b", line)
		}
	})
}

// The one that was cancelled is no evidence: not for its breaker, its curve or
// its first tokens. But who loses again and again is the last choice for a while.
func TestALostRaceIsNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openRace(t, nil)
		h.a.answer = silent
		target := router.Target{Backend: "a", Model: "big"}
		before := h.book.Curve(target)
		for i := range 30 {
			h.gateway.retries.saved = 10
			if r := h.post(chat, streamBody); r.header.Get("X-Pacer-Backend") != "b" {
				t.Fatalf("request %d was answered by %q", i, r.header.Get("X-Pacer-Backend"))
			}
		}
		h.idle()
		if got := h.a.left(); got < 3 || got > 20 {
			t.Errorf("the silent one was asked %d times of 30, want a few: it becomes the last choice", got)
		}
		if !h.router.InService() || h.router.Loads()[0].Health != router.Up {
			t.Error("lost races took the backend out of service")
		}
		h.learned("a")
		if now := h.book.Curve(target); now.TTFT() != before.TTFT() || now.Tokens() != before.Tokens() {
			t.Errorf("lost races taught %+v, %v tokens; it was %+v, %v", now.TTFT(), now.Tokens(), before.TTFT(), before.Tokens())
		}
	})
}

// However slow a backend has become, at most a tenth of the requests is sent a
// second time.
func TestSecondAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openRace(t, nil)
		h.a.answer = after(time.Minute) // later than any estimate of what is late
		requests := racetest.Some(1000)
		before := h.b.calls()
		for range requests {
			if r := h.post(chat, streamBody); r.status != 200 {
				t.Fatalf("got %d, want 200", r.status)
			}
			<-time.After(10 * time.Second) // a is no longer the last choice
		}
		sent := h.b.calls() - before
		if most := (requests + 20) / 10; sent > most || sent < most*8/10 {
			t.Errorf("%d of %d requests were sent twice, want nearly %d", sent, requests, most)
		}
		if got := h.hedges(); got["won"] != sent || got["refused"] != requests-sent {
			t.Errorf("hedges %v, want %d won and %d refused", got, sent, requests-sent)
		}
		h.book.Fold(time.Now())
		if got := h.book.Curve(router.Target{Backend: "b", Model: "big"}).TTFT(); got.Known() {
			t.Errorf("of b the first tokens are known, %+v: the winners of races are no sample", got)
		}
	})
}

// A second attempt takes nothing from those who need the place more.
func TestNoSecondAttemptWhereNobodyIsFeasible(t *testing.T) {
	for name, prepare := range map[string]func(*race){
		"draining": func(h *race) {
			h.router.Update(time.Now(), router.BackendHealth{Backend: "b", Health: router.Draining})
		},
		"being tried out": func(h *race) {
			h.router.Update(time.Now(), router.BackendHealth{Backend: "b", Health: router.Probing})
		},
		"too slow": func(h *race) {
			h.believe("b", profiles.PriorPoint{N: 1, TPS: 10}, profiles.PriorPoint{N: 2, TPS: 9})
		},
		"no send left": func(h *race) { h.gateway.retries.saved = 0.5 },
	} {
		bubble(t, name, func(t *testing.T) {
			h := openRace(t, func(c *config.Config) {
				c.Routes[0].SLO.MinTPS = 20
				c.Routes[0].OnInfeasible = []config.Step{{BestEffort: true}, {Shed: true}}
			})
			prepare(h)
			saved := h.gateway.retries.saved
			h.a.answer = after(5 * time.Second)
			if r := h.post(chat, streamBody); r.status != 200 || r.header.Get("X-Pacer-Backend") != "a" {
				t.Errorf("got %d from %q, want 200 from a", r.status, r.header.Get("X-Pacer-Backend"))
			}
			if h.b.calls() != 0 || h.hedges()["refused"] != 1 {
				t.Errorf("b was asked %d times; hedges %v, want one refused", h.b.calls(), h.hedges())
			}
			if got := h.gateway.retries.saved; math.Abs(got-saved-retryShare) > 1e-9 {
				t.Errorf("%.2f sends saved, want %.2f: nothing was sent", got, saved+retryShare)
			}
			if line := h.last(); line.Hedged != "" || line.Attempts != 1 {
				t.Errorf("log line %+v, want one attempt", line)
			}
		})
	}
}

// What may not, or need not, be there twice is not sent twice.
func TestWhatIsNotHedged(t *testing.T) {
	const stream = `"messages":[{"role":"user","content":"hello"}],"stream":true}`
	for name, c := range map[string]struct {
		path, body string
		header     []string
		change     func(*config.Config)
	}{
		"not configured":     {chat, streamBody, nil, func(c *config.Config) { c.Routes[0].Hedge = false }},
		"a stored response":  {"/v1/responses", `{"model":"chat","input":"hello","stream":true}`, nil, nil},
		"store":              {chat, `{"model":"chat","store":true,` + stream, nil, nil},
		"a document":         {chat, `{"model":"chat","messages":[]}`, nil, nil},
		"batch":              {chat, streamBody, []string{"x-pacer-class", "batch"}, nil},
		"what does not stop": {"/v1/embeddings", `{"model":"chat","input":"hello","stream":true}`, nil, nil},
	} {
		bubble(t, name, func(t *testing.T) {
			h := openRace(t, c.change)
			h.a.answer = func(w http.ResponseWriter, r *http.Request) {
				if pause(r, 30*time.Second) {
					w.Header().Set("Content-Type", "application/json")
					say(w, `{"id":"x","object":"chat.completion","choices":[]}`)
				}
			}
			h.post(c.path, c.body, c.header...)
			if h.b.calls() != 0 {
				t.Error("it was sent twice")
			}
			if got := h.hedges(); got["won"]+got["lost"]+got["refused"] != 0 {
				t.Errorf("hedges: %v, want none", got)
			}
		})
	}
}

// With a limit on the first token the second attempt goes while it can still
// keep it.
func TestASecondAttemptInTimeForTheFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openRace(t, func(c *config.Config) { c.Routes[0].SLO.MaxTTFT = 750 * time.Millisecond })
		met := h.metrics.Route("chat").Met
		h.a.answer = silent
		start := time.Now()
		h.post(chat, streamBody)
		if took, want := time.Since(start), 400*time.Millisecond+usualFirst+180*time.Millisecond; (took - want).Abs() > 30*time.Millisecond {
			t.Errorf("it took %v, want %v: sent again after 400 ms", took, want)
		}
		h.idle()
		if s := h.metrics.Route("chat"); s.Met != met+1 {
			t.Errorf("route counts %+v, want the last one met", s)
		}
	})
}

// However races end, and whoever hangs up meanwhile, nothing is left of them.
func TestNothingIsLeftOfManyRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openRace(t, func(c *config.Config) { c.Timeouts.FirstByte = 4 * time.Second })
		var mu sync.Mutex
		rnd := rand.New(rand.NewPCG(5, 6))
		roll := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return rnd.IntN(n)
		}
		mixed := func(w http.ResponseWriter, r *http.Request) {
			late := time.Duration(roll(3000)) * time.Millisecond
			switch roll(12) {
			case 0:
				silent(w, r)
			case 1:
				failAfter(late, 502)(w, r)
			case 2:
				failAfter(late, 429)(w, r)
			case 3:
				failAfter(late, 401)(w, r)
			case 4:
				if pause(r, late) {
					cutOff(w)
				}
			default:
				after(late)(w, r)
			}
		}
		h.a.answer, h.b.answer = mixed, mixed
		var users sync.WaitGroup
		for range 1200 {
			users.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(500+roll(8000))*time.Millisecond)
				defer cancel()
				h.do(h.request("POST", chat, streamBody).WithContext(ctx))
			})
			for range 10 { // enough for all
				h.gateway.retries.earn()
			}
			<-time.After(time.Duration(roll(100)) * time.Millisecond)
		}
		users.Wait()
		if got := h.hedges(); got["won"] < 5 || got["lost"] < 5 {
			t.Errorf("hedges %v: no test", got)
		}
	})
}

// Whatever breaks while two attempts run, nothing is left of them.
func TestAPanicBesideAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, breakIt := range map[string]func(*race){
			"placing": func(h *race) { h.beside = func() { panic("boom") } },
			"sending": func(h *race) {
				h.beside = func() { h.gateway.setup.Load().backends["b"].Backend = &providers.Backend{} }
			},
		} {
			h := openRace(t, nil)
			h.a.answer = silent
			breakIt(h)
			if r := h.post(chat, streamBody); r.status != 500 {
				t.Errorf("%s: got %d, want 500", name, r.status)
			}
			synctest.Wait()
			if h.a.left() != 1 {
				t.Errorf("%s: a saw %d requests cancelled, want 1", name, h.a.left())
			}
			h.idle()
		}
	})
}

func TestAPanicWhileSendingIsTheExchanges(t *testing.T) {
	x := &exchange{}
	a := &attempt{place: place{target: router.Target{Backend: "a"}}}
	a.up.launch(&buffers{}, time.Minute) // without a backend
	<-a.up.done
	defer func() {
		if recover() == nil {
			t.Error("the panic went unnoticed")
		}
		a.up.close(&buffers{})
	}()
	_ = x.firstByte(a)
}

// What is late follows what first bytes do: one in twenty.
func TestTheFirstByteQuantileIsThe95thPercentile(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, mean := range []float64{0.2, 3, 10} {
		var l firstByteQuantile
		late := 0
		const n = 20_000
		for i := range n {
			ratio := mean * rnd.ExpFloat64()
			if ratio > l.factor() {
				ratio = math.Inf(1) // given up there
				if i >= n/2 {
					late++
				}
			}
			l.note(ratio)
		}
		want := 0.05
		if p95 := mean * math.Log(20); p95 < lateFactor {
			want = math.Exp(-lateFactor / mean)
		}
		if got := float64(late) / (n / 2); math.Abs(got-want) > 0.01 {
			t.Errorf("mean %v: %.3f of the first bytes are late, want %.3f", mean, got, want)
		}
	}
	var l firstByteQuantile
	for range 1000 {
		l.note(math.Inf(1))
	}
	if got := l.factor(); math.Abs(got-mostLate) > 1e-9 {
		t.Errorf("factor %v while nothing comes, want %v", got, mostLate)
	}
}

// Hedging costs a request that is not hedged no allocation.
func TestNoAllocationToAskWhetherToHedge(t *testing.T) {
	for _, hedge := range []bool{false, true} {
		c := settings("a")
		c.Routes[0].Hedge = hedge
		h := openWith(t, c, nil, houseOptions{})
		x := relayed(t, h, &repeat{chunk: delta})
		if got := testing.AllocsPerRun(100, func() { x.hedgeAfter(x.attempt) }); got != 0 {
			t.Errorf("hedge %v: %v allocations, want 0", hedge, got)
		}
		x.settle(x.relay())
		h.stop()
	}
}
