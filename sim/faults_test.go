package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/internal/must"
)

const ten = `{` + hello + `,"stream":true,"max_tokens":10,"stream_options":{"include_usage":true}}`

func TestClosesAfterStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Behaviours: []string{"closes-after-stream"}})
		conn := r.raw(ten)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		must.Do(t, err)
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
			t.Errorf("the body ends with %q, %v; want it complete", body[max(0, len(body)-40):], err)
		}
		if resp.Close || resp.Header.Get("Keep-Alive") != "timeout=5, max=100" {
			t.Errorf("the headers announce the end: %v", resp.Header)
		}
		if b, err := in.ReadByte(); err != io.EOF {
			t.Errorf("after the stream there is %q, %v, want the end of the connection", b, err)
		}

		// An answer in one piece leaves the connection open.
		conn = r.raw(`{` + hello + `,"max_tokens":1}`)
		defer conn.Close()
		resp, err = http.ReadResponse(bufio.NewReader(conn), nil)
		must.Do(t, err)
		must.Get(io.ReadAll(resp.Body))(t)
		must.Do(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		var timeout interface{ Timeout() bool }
		if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("after an answer in one piece: %v, want an open connection", err)
		}
	})
}

func TestHeadersAfterQueue(t *testing.T) {
	for _, behaviours := range [][]string{nil, {"headers-after-queue"}} {
		synctest.Test(t, func(t *testing.T) {
			r := serve(t, Options{Model: Model{A: 0.1, D: 0.1}, MaxNumSeqs: 1, Behaviours: behaviours})
			start := time.Now()
			var wg sync.WaitGroup
			wg.Go(func() { r.stream(t.Context(), chat, ten) }) // 0.3 + 9·0.1 = 1.2 s
			synctest.Wait()
			s := r.stream(t.Context(), chat, ten)
			want := map[bool]time.Duration{false: 0, true: 1200 * time.Millisecond}[behaviours != nil]
			if got := s.headers.Sub(start); got != want {
				t.Errorf("behaving as %v the headers came after %v, want %v", behaviours, got, want)
			}
			if got := s.tokens(t)[0].at.Sub(start); got != 1500*time.Millisecond {
				t.Errorf("the first token came after %v, want 1.5s", got)
			}
			wg.Wait()
		})
	}
}

func TestCutWithoutDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Behaviours: []string{"cut-without-done"}})
		s := r.stream(t.Context(), chat, ten)
		if s.err != nil {
			t.Errorf("the stream ended with %v, want a clean end", s.err)
		}
		if got := len(s.events); got != 6 || len(s.tokens(t)) != 5 {
			t.Errorf("the stream has %d events, want the role and 5 tokens: %v", got, plain(s))
		}
		synctest.Wait()
		if got := r.server.Truth(); got.Running != 0 || got.Cancelled != 1 {
			t.Errorf("%d run, %d were cancelled, want 0 and 1", got.Running, got.Cancelled)
		}
		if status, body := r.call("POST", chat, `{`+hello+`,"max_tokens":2}`); status != http.StatusOK {
			t.Errorf("an answer in one piece: %d %s", status, body)
		}
	})
}

// reads are the pieces in which the body of a request for body arrives; on
// net.Pipe each write is one of them.
func reads(r *rig, body string) []string {
	conn := r.raw(body)
	defer conn.Close()
	var list []string
	for buf := make([]byte, 1<<16); ; {
		n, err := conn.Read(buf)
		list = append(list, string(buf[:n]))
		if err != nil || strings.Contains(string(buf[:n]), "[DONE]") {
			return list
		}
	}
}

func TestWhenTheRoleComes(t *testing.T) {
	const role, first = `"role":"assistant"`, `{"content":" the"}`
	for behave, want := range map[string][]string{
		"":                                  {"", role, first}, // the headers come alone
		"role-at-once":                      {role, first, ""},
		"role-and-first-token-in-one-write": {"", role + first, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := Options{Model: Model{A: 0.025}}
			if behave != "" {
				o.Behaviours = []string{behave}
			}
			r := serve(t, o)
			var got []string
			for _, piece := range reads(r, ten)[:3] {
				var what string
				if strings.Contains(piece, role) {
					what += role
				}
				if strings.Contains(piece, first) {
					what += first
				}
				got = append(got, what)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("behaving as %q the first three writes differ (-want +got):\n%s", behave, d)
			}
			s := r.stream(t.Context(), chat, ten)
			wait := s.events[0].at.Sub(s.headers)
			if want := map[bool]time.Duration{false: 25 * time.Millisecond}[behave == "role-at-once"]; wait != want {
				t.Errorf("behaving as %q the role came %v after the headers, want %v", behave, wait, want)
			}
			if !s.done() || len(s.tokens(t)) != 10 {
				t.Errorf("behaving as %q the stream has %d tokens, done %t", behave, len(s.tokens(t)), s.done())
			}
		})
	}
}

func TestDriftFromTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Faults: []string{"drift:1@2s", "drift:2@1s"}})
		s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":1000}`)
		perSecond := make([]int, 3)
		for _, e := range s.tokens(t) {
			if second := int(e.at.Sub(s.headers) / time.Second); second < len(perSecond) {
				perSecond[second]++
			}
		}
		// What happens in one instant, a step's end and a fault, has no order,
		// so each edge may move by a step.
		for i, want := range []int{40, 20, 40} {
			if d := perSecond[i] - want; d < -2 || d > 2 {
				t.Errorf("tokens in each second: %v, want about 40, 20, 40", perSecond)
			}
		}
	})
}

// A slow start begins with the first step behind it, and anew when it is asked
// for again; drift is on top of it.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Faults: []string{"slow-start:10"}})
		gaps := func(when string, drift float64) {
			t.Helper()
			tokens := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":1000}`).tokens(t)
			first := tokens[1].at.Sub(tokens[0].at)
			last := tokens[999].at.Sub(tokens[998].at)
			usual := time.Duration(drift * 25e6)
			if first < 39*usual/10 || first > 4*usual || last != usual {
				t.Errorf("%s: the first step took %v, the last %v; want near %v and %v", when, first, last, 4*usual, usual)
			}
		}
		gaps("from the start", 1)
		r.set(`{"slow-start":10,"drift":2}`)
		gaps("again", 2)
		r.set(`{"slow-start":0,"drift":1}`)
		if s := r.stream(t.Context(), chat, ten).tokens(t); s[9].at.Sub(s[0].at) != 225*time.Millisecond {
			t.Errorf("after the fault nine steps took %v, want 225ms", s[9].at.Sub(s[0].at))
		}
	})
}

func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		r.set(`{"garbage":true}`)
		s := r.stream(t.Context(), chat, ten)
		if len(s.events) != 10 || s.err != nil || s.done() || json.Valid([]byte(s.events[0].data)) {
			t.Errorf("%d events, %v, done %t; want 10, a clean end and no [DONE]: %v", len(s.events), s.err, s.done(), s.events)
		}
		if status, body := r.call("POST", chat, `{`+hello+`}`); status != http.StatusOK || json.Valid([]byte(body)) {
			t.Errorf("a document: %d %q, want 200 and no JSON", status, body)
		}
		r.set(`{"garbage":false}`)
		if s := r.stream(t.Context(), chat, ten); !s.done() {
			t.Error("after the fault a stream has no [DONE]")
		}
	})
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Faults: []string{"stall@101ms", "stall:off@5.1s"}})
		s := r.stream(t.Context(), chat, ten)
		tokens := s.tokens(t)
		if !s.done() || len(tokens) != 10 {
			t.Fatalf("the stream has %d tokens, done %t, want 10", len(tokens), s.done())
		}
		// Tokens at 25, 50, 75, 100 ms; the next step is held until 5.1 s.
		if got := tokens[4].at.Sub(tokens[3].at); got != 5*time.Second {
			t.Errorf("the stall took %v, want 5s", got)
		}
		if got := tokens[9].at.Sub(tokens[4].at); got != 125*time.Millisecond {
			t.Errorf("after it five tokens took %v, want 125ms: nothing is made good", got)
		}
		if got, want := r.server.Truth().Points[0].StreamSeconds, 5.2; !near(got, want, 1e-9) {
			t.Errorf("truth has %v stream-seconds, want %v as the client saw them", got, want)
		}
	})
}

func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		r.set(`{"cut":4}`)
		s := r.stream(t.Context(), chat, ten)
		if got := len(s.tokens(t)); got != 4 || !errors.Is(s.err, io.ErrUnexpectedEOF) {
			t.Errorf("the stream has %d tokens and ends with %v, want 4 and a cut", got, s.err)
		}
		if _, err := r.do(t.Context(), "POST", chat, `{`+hello+`,"max_tokens":10}`); !errors.Is(err, io.EOF) {
			t.Errorf("an answer in one piece: %v, want a cut", err)
		}
		synctest.Wait()
		if got := r.server.Truth(); got.Running != 0 || got.Cancelled != 2 {
			t.Errorf("%d run, %d were cancelled, want 0 and 2", got.Running, got.Cancelled)
		}
		r.set(`{"cut":0}`)
		if s := r.stream(t.Context(), chat, ten); !s.done() {
			t.Errorf("after the fault: %v", s.err)
		}
	})
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Faults: []string{"status:429"}})
		if s := r.stream(t.Context(), chat, ten); s.status != 429 {
			t.Errorf("status %d, want 429", s.status)
		}
		r.set(`{"status":500}`)
		status, body := r.call("POST", completions, `{"prompt":"x"}`)
		if want := `{"error":{"message":"The engine was told to fail.","type":"Internal Server Error","param":null,"code":500}}`; status != 500 || body != want {
			t.Errorf("%d %s, want 500 %s", status, body, want)
		}
		if status, _ := r.call("GET", "/health", ""); status != http.StatusOK {
			t.Errorf("health is %d, want 200: the fault is about generations", status)
		}
		r.set(`{"status":0}`)
		if s := r.stream(t.Context(), chat, ten); !s.done() {
			t.Errorf("after the fault: %d %v", s.status, s.err)
		}
	})
}

func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		var wg sync.WaitGroup
		wg.Go(func() {
			if s := r.stream(t.Context(), chat, ten); !s.done() {
				t.Errorf("a stream from before the fault: %v", s.err)
			}
		})
		synctest.Wait()
		r.set(`{"refuse":true}`)
		for _, path := range []string{chat, "/health"} {
			if _, err := r.do(t.Context(), "POST", path, ten); !errors.Is(err, io.EOF) {
				t.Errorf("POST %s: %v, want a closed connection", path, err)
			}
		}
		wg.Wait()
		r.set(`{"refuse":false}`) // still reached
		if s := r.stream(t.Context(), chat, ten); !s.done() {
			t.Errorf("after the fault: %v", s.err)
		}
	})
}

// TestRefuseIsAReset needs a real connection: a pipe has no resets.
func TestRefuseIsAReset(t *testing.T) {
	s, err := NewServer(Options{Names: []string{"m"}, Model: steady, Faults: []string{"refuse"}})
	must.Do(t, err)
	server := httptest.NewServer(s)
	defer server.Close()
	resp, err := server.Client().Post(server.URL+chat, "application/json", strings.NewReader(ten))
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("a refused request: %v, want a reset", err)
	}
}

func TestSetIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		status, body := r.call("POST", "/sim/set", `{"drift":1.5,"status":"429","stall":"off"}`)
		if want := `{"refuse":false,"status":429,"stall":false,"cut":0,"drift":1.5,"garbage":false,"slow-start":0,"hidden":0,"metrics":""}`; status != http.StatusOK || body != want {
			t.Errorf("set answers %d %s, want %s", status, body, want)
		}
		if status, _ := r.call("POST", "/sim/set", `{"drift":3,"status":200}`); status != http.StatusBadRequest {
			t.Errorf("a bad value is answered %d, want 400", status)
		}
		if got, want := *r.server.faults.Load(), (faultState{Status: 429, Drift: 1.5}); got != want {
			t.Errorf("in force is %+v, want %+v", got, want)
		}
	})
}
