package gateway

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// crowded is a gateway whose one backend takes one request at a time.
func crowded(wait time.Duration) *config.Config {
	c := settings("a")
	c.Backends[0].MaxConcurrency = 1
	c.Routes[0].OnInfeasible[0].Queue = wait
	return c
}

func TestARequestWaitsInLineForItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, crowded(10*time.Second), map[string]http.Handler{"a": &script{answer: talk(50, 100*time.Millisecond)}})
		first := make(chan reply, 1)
		go func() { first <- h.post(chat, streamBody) }()
		<-time.After(time.Second)
		start := time.Now()
		r := h.post(chat, streamBody, "x-pacer-max-ttft-ms", "60000")
		if r.status != 200 || r.err != nil {
			t.Fatalf("got %d (%v) %s", r.status, r.err, r.body)
		}
		if got := time.Since(start); got != 9*time.Second {
			t.Errorf("answered after %v, want 4 s in line and 5 s of answer", got)
		}
		if line := h.last(); line.WaitedMS != 4000 || line.TTFTms != 100 {
			t.Errorf("log line: %v ms in line, ttft %v ms; want 4000 and 100", line.WaitedMS, line.TTFTms)
		}
		if r := <-first; r.err != nil {
			t.Errorf("the first request: %v", r.err)
		}
		h.idle()
		if s := h.metrics.Route("chat"); math.Abs(s.TTFTP99/4.1-1) > 0.02 || math.Abs(s.TTFTP50/0.1-1) > 0.02 {
			t.Errorf("first tokens of the route: p50 %.2f s, p99 %.2f s; want 0.1, and 4.1 with the time in line", s.TTFTP50, s.TTFTP99)
		}
	})
}

// Time in line is time that the user waits for the first token.
func TestTimeInLineCountsForTheFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, crowded(10*time.Second), map[string]http.Handler{"a": &script{answer: talk(4, 600*time.Millisecond)}})
		go h.post(chat, streamBody)
		<-time.After(1400 * time.Millisecond)
		// 1 s in line, and 600 ms to the first token once it is sent.
		r := h.post(chat, streamBody, "x-pacer-max-ttft-ms", "1550")
		h.idle()
		if s := h.metrics.Route("chat"); r.status != 200 || s.Missed != 1 {
			t.Errorf("got %d, and the route counts %+v after a first token 50 ms too late, want one missed", r.status, s)
		}
	})
}

// What no backend takes at once, however idle, is refused at once and for good.
func TestTooManySequencesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, crowded(2*time.Second), map[string]http.Handler{"a": &script{answer: talk(10, time.Millisecond)}})
		start := time.Now()
		r := h.post(chat, strings.Replace(streamBody, "{", `{"n":2,`, 1))
		if code := r.code(t); r.status != 429 || code != "floor" || r.header.Get("X-Should-Retry") != "false" || r.header.Get("Retry-After") != "" {
			t.Errorf("got %d %s, x-should-retry %q, Retry-After %q", r.status, code, r.header.Get("X-Should-Retry"), r.header.Get("Retry-After"))
		}
		if got := time.Since(start); got != 0 || !strings.Contains(r.body, "ask for fewer") {
			t.Errorf("refused after %v with %s", got, r.body)
		}
	})
}

func TestWaitingEndsInARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, crowded(2*time.Second), map[string]http.Handler{"a": &script{answer: talk(100, 100*time.Millisecond)}})
		go h.post(chat, streamBody)
		<-time.After(time.Second)
		start := time.Now()
		r := h.post(chat, streamBody)
		code := r.code(t)
		if got := time.Since(start); r.status != 429 || code != "timeout" || got != 2*time.Second {
			t.Errorf("got %d %s after %v, want 429 timeout after 2s", r.status, code, got)
		}
		retry, err := strconv.Atoi(r.header.Get("Retry-After"))
		ms, err2 := strconv.Atoi(r.header.Get("Retry-After-Ms"))
		if err != nil || err2 != nil || retry < 1 || retry > 60 || ms > 1000*retry || ms <= 1000*(retry-1) {
			t.Errorf("Retry-After %q, retry-after-ms %q; want 1 to 60 s, and the same", r.header.Get("Retry-After"), r.header.Get("Retry-After-Ms"))
		}
		if line := h.last(); line.Outcome != outcomeShed || line.Status != 429 {
			t.Errorf("log line %+v, want shed", line)
		}
		if s := h.metrics.Route("chat"); s.Shed != 1 {
			t.Errorf("route counts %+v, want one shed", s)
		}
		h.stop()
	})
}

func TestALineThatIsFullRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowded(20 * time.Second)
		c.Limits.Queue = 1
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(50, 100*time.Millisecond)}})
		replies := make(chan reply, 3)
		for range 3 {
			go func() { replies <- h.post(chat, streamBody) }()
			<-time.After(10 * time.Millisecond)
		}
		shed := 0
		for range 3 {
			if r := <-replies; r.status == 429 {
				shed++
				if code := r.code(t); code != "queue_full" {
					t.Errorf("code %s, want queue_full", code)
				}
			}
		}
		if shed != 1 {
			t.Errorf("%d refused, want 1: one runs, one waits", shed)
		}
	})
}

// A floor that not even an idle backend reaches is a mistake, not load: the
// client is told not to come back, and the log says so once a minute.
func TestAFloorOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": engine(t)})
		for range 5 { // until the curve is known: 47.6 tokens/s at n = 1
			h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":200,"stream":true}`)
		}
		<-time.After(10 * time.Second)
		wide := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":5,"n":128}`, "x-pacer-min-tps", "20")
		if body := string(wide.body); wide.status != 429 || !strings.Contains(body, "to each of 128 sequences at once") || strings.Contains(h.log.String(), "no backend reaches this floor") {
			t.Errorf("128 sequences: %d %s; the log says %s", wide.status, body, h.log.String())
		}
		refused := 0
		for range 10 {
			r := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":5,"stream":true}`, "x-pacer-min-tps", "500")
			if r.status == 200 {
				continue // the one probe a minute
			}
			refused++
			if code := r.code(t); r.status != 429 || code != "floor_unattainable" || r.header.Get("X-Should-Retry") != "false" || r.header.Get("Retry-After") != "" {
				t.Errorf("got %d %s, x-should-retry %q, Retry-After %q", r.status, code, r.header.Get("X-Should-Retry"), r.header.Get("Retry-After"))
			}
		}
		if refused < 9 {
			t.Errorf("%d of 10 refused, want all but a probe", refused)
		}
		if got := strings.Count(h.log.String(), "no backend reaches this floor"); got != 1 {
			t.Errorf("the log says it %d times within a minute, want once", got)
		}
	})
}

// A stream that has used up its lead lets nobody in beside it, and one that has
// caught up does, though nothing else has happened than that time passed.
func TestAStreamBelowItsFloorShutsTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Routes[0].OnInfeasible[0].Queue = time.Minute
		// 2.4 s at 15 tokens/s, then fast: it has a lead over 20 again at 2.5 s.
		backend := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			for i := range 300 {
				gap := 66 * time.Millisecond
				if i >= 37 {
					gap = 10 * time.Millisecond
				}
				if !pause(r, gap) {
					return
				}
				say(w, delta)
			}
			say(w, lastDelta+doneEvent)
		}}
		h := openWith(t, c, map[string]http.Handler{"a": backend}, houseOptions{learnEvery: time.Hour})
		t.Cleanup(h.idle)
		for range 3 { // answers that told what a chunk is: one token
			s := h.book.Open(profiles.Target{Backend: "a", Model: "big"}, profiles.Open{Sent: time.Now()})
			for range 5 {
				<-time.After(10 * time.Millisecond)
				s.Read(time.Now(), 1)
			}
			s.Usage(profiles.Usage{CompletionTokens: 5})
			s.Close(time.Now(), true)
		}
		start := time.Now()
		first := make(chan reply, 1)
		go func() { first <- h.post(chat, streamBody, "x-pacer-min-tps", "20") }()
		<-time.After(2 * time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		second := make(chan reply, 1)
		go func() { second <- h.do(h.request("POST", chat, streamBody).WithContext(ctx)) }()
		for backend.calls() < 2 && time.Since(start) < 5*time.Second {
			<-time.After(10 * time.Millisecond)
		}
		if got := time.Since(start); got < 2300*time.Millisecond || got > 3*time.Second {
			t.Errorf("the second request was let in after %v, want about 2.5s", got)
		}
		cancel()
		<-second
		<-first
	})
}

func TestASpillSaysWhereTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Backends[0].MaxConcurrency = 1
		small := c.Routes[0]
		small.Models, small.Targets = []string{"small"}, c.Routes[0].Targets[1:]
		c.Routes[0].Targets = c.Routes[0].Targets[:1]
		c.Routes[0].OnInfeasible = []config.Step{{Spill: "small"}, {Shed: true}}
		c.Routes = append(c.Routes, small)
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(50, 100*time.Millisecond)}, "b": asker()})
		first := make(chan reply, 1)
		go func() { first <- h.post(chat, streamBody) }()
		<-time.After(time.Second)
		r := h.post(chat, streamBody)
		if r.status != 200 || r.header.Get("X-Pacer-Backend") != "b" || !strings.HasSuffix(r.header.Get("X-Pacer-Decision"), "; spill=small") {
			t.Errorf("got %d from %q: %q", r.status, r.header.Get("X-Pacer-Backend"), r.header.Get("X-Pacer-Decision"))
		}
		<-first
	})
}

// Many clients at once, half of whom give up at a random moment: at the end
// nothing is left of any of them.
func TestACrowdLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		for i := range c.Backends {
			c.Backends[i].MaxConcurrency = 5
		}
		c.Routes[0].OnInfeasible[0].Queue = 3 * time.Second
		gpu := engine(t)
		h := open(t, c, map[string]http.Handler{"a": gpu, "b": engine(t, func(o *sim.Options) { o.Faults = []string{"cut:20"} })})
		rnd := rand.New(rand.NewPCG(5, 6))
		var users sync.WaitGroup
		counts := map[int]int{}
		var mu sync.Mutex
		for range 300 {
			patience := time.Hour
			if rnd.IntN(2) == 0 {
				patience = time.Duration(rnd.ExpFloat64() * float64(2*time.Second))
			}
			body := fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":"hi"}],"max_tokens":%d,"stream":%v}`, 1+rnd.IntN(150), rnd.IntN(4) > 0)
			users.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				r := h.do(h.request("POST", chat, body).WithContext(ctx))
				mu.Lock()
				defer mu.Unlock()
				counts[r.status]++
			})
			<-time.After(time.Duration(rnd.ExpFloat64() * float64(100*time.Millisecond)))
		}
		users.Wait()
		h.idle()
		if truth := gpu.Truth(); truth.Running != 0 || truth.Waiting != 0 {
			t.Errorf("the engine still has %d running and %d waiting", truth.Running, truth.Waiting)
		}
		if counts[200] < 50 || counts[429] == 0 || counts[0] == 0 {
			t.Errorf("answers by status %v: the load is no test", counts)
		}
		if got := len(h.log.requests()); got != 300 {
			t.Errorf("%d access-log lines for 300 requests", got)
		}
		s := h.metrics.Route("chat")
		if s.Offered != s.Met+s.Missed+s.Unmeasured+s.Shed+s.Failed || s.Met == 0 || s.Shed == 0 || s.Failed == 0 {
			t.Errorf("route counts %+v", s)
		}
	})
}

// Every refusal for load says when to come back. Where all places until then are
// promised, libraries are told not to try again by themselves.
func TestLibrariesDoNotRetryWhereNoPlaceIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, crowded(time.Second), map[string]http.Handler{"a": &script{answer: talk(20, time.Second)}})
		h.believe("a", profiles.PriorPoint{N: 1, TPS: 1}, profiles.PriorPoint{N: 8, TPS: 1})
		for range 20 { // the length of the answers becomes known
			if r := h.post(chat, streamBody); r.status != 200 {
				t.Fatalf("got %d %s", r.status, r.body)
			}
		}
		last := make(chan reply, 1)
		go func() { last <- h.post(chat, streamBody) }()
		<-time.After(time.Second)
		told := 0
		for range 6 { // places come free every 20 s
			r := h.post(chat, streamBody)
			if r.status != 429 {
				t.Fatalf("got %d %s", r.status, r.body)
			}
			after, never := r.header.Get("Retry-After"), r.header.Get("X-Should-Retry")
			seconds, err := strconv.Atoi(after)
			switch {
			case err != nil || seconds < 1 || seconds > 60:
				t.Errorf("Retry-After %q, want 1 to 60 s", after)
			case never == "":
				told++
			case seconds < 50 || never != "false" || !strings.Contains(r.body, "until the time given is promised"):
				t.Errorf("x-should-retry %q, Retry-After %q: %s", never, after, r.body)
			}
		}
		if told < 1 || told > 3 {
			t.Errorf("%d of six were told a time within a minute, want those who find a place", told)
		}
		<-last
	})
}

// A refusal names the best speed on offer where that is too little for the floor.
func TestARefusalNamesASpeedThatIsMissing(t *testing.T) {
	for best, want := range map[float64]bool{14.2: true, 35.6: false, math.Inf(1): false} {
		a := shedAnswer(&shedError{refusal: router.Refusal{Reason: router.ShedTimeout, Floor: 20, Best: best}})
		if has := strings.Contains(a.message, "best on offer"); has != want {
			t.Errorf("with %v tokens/s on offer: %s", best, a.message)
		}
	}
}
