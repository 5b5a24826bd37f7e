package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
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
	})
}

// Time in line is time that the user waits for the first token.
func TestTimeInLineCountsForTheFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, crowded(10*time.Second), map[string]http.Handler{"a": &script{answer: talk(20, 100*time.Millisecond)}})
		go h.post(chat, streamBody)
		<-time.After(time.Second)
		// 1 s in line and 100 ms to the first token, once it is sent.
		r := h.post(chat, streamBody, "x-pacer-max-ttft-ms", "1050")
		h.idle()
		if s := h.metrics.Route("chat"); r.status == 200 && s.Missed != 1 {
			t.Errorf("route counts %+v after a first token 50 ms too late, want one missed", s)
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
		if got := time.Since(start); r.status != 429 || got > 2*time.Second {
			t.Errorf("got %d %s after %v, want 429 after at most 2s", r.status, code, got)
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
		h.idle()
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
		h.idle()
	})
}
