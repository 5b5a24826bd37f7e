package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/usage"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

var notice = usage.Notice{
	State: usage.State{
		Holder: usage.Holder{Name: "mobile"}, Budget: usage.Budget{Limit: 500 * usage.Dollar}, Start: noon, End: noon.AddDate(0, 1, 0), Spent: 400 * usage.Dollar,
	},
}

// taker is a webhook that refuses the first so many messages.
type taker struct {
	mu     sync.Mutex
	refuse int
	at     []time.Time
	got    []*http.Request
	bodies []string
}

// RoundTrip implements http.RoundTripper.
func (k *taker) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = append(k.at, time.Now())
	k.got, k.bodies = append(k.got, r), append(k.bodies, string(body))
	if len(k.got) <= k.refuse {
		if len(k.got)%2 == 0 {
			return nil, fmt.Errorf("no route to %s", r.URL.Host)
		}
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
}

func send(t *testing.T, k *taker, log io.Writer, hooks []Hook, during func(s *Sender)) {
	s := New(Options{Hooks: func() []Hook { return hooks }, Client: &http.Client{Transport: k}, Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { defer close(done); _ = s.Run(ctx) }()
	during(s)
	cancel()
	<-done
}

// A message that is not taken is sent again, later each time and under the same id;
// it is signed, and the address of the webhook is in no line.
func TestAMessageIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, log := &taker{refuse: 4}, &strings.Builder{}
		send(t, k, log, []Hook{{URL: "https://hooks.example.com/T0/secret-path", Secret: "s3cret"}}, func(s *Sender) {
			s.Tell(time.Now(), notice)
			<-time.After(time.Minute)
		})
		if len(k.got) != 5 {
			t.Fatalf("sent %d times, want until it was taken: 5", len(k.got))
		}
		for i, want := range []time.Duration{1, 2, 4, 8} {
			if got := k.at[i+1].Sub(k.at[i]); got != want*time.Second {
				t.Errorf("wait %d was %v, want %d s", i+1, got, want)
			}
		}
		var m Message
		if err := json.Unmarshal([]byte(k.bodies[0]), &m); err != nil || m.Event != "budget.warning" || m.Name != "mobile" || m.Spent != 400 || m.Limit != 500 || m.ID == "" {
			t.Errorf("the message is %+v, %v", m, err)
		}
		for i, r := range k.got {
			if want := "sha256=" + Sign("s3cret", r.Header.Get("X-Pacer-Timestamp"), []byte(k.bodies[i])); r.Header.Get("X-Pacer-Signature") != want {
				t.Errorf("message %d has another signature", i)
			}
			if k.bodies[i] != k.bodies[0] {
				t.Errorf("message %d is another one", i)
			}
		}
		if strings.Contains(log.String(), "secret-path") || strings.Contains(log.String(), "s3cret") {
			t.Errorf("a secret is in the log:\n%s", log)
		}
	})
}

// What nobody takes is given up, and what waits is bounded.
func TestAWebhookThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, log := &taker{refuse: 1 << 30}, &strings.Builder{}
		send(t, k, log, []Hook{{URL: "https://hooks.example.com/"}}, func(s *Sender) {
			s.Tell(time.Now(), notice)
			<-time.After(time.Hour)
			synctest.Wait()
			if len(k.got) != attempts || strings.Count(log.String(), "given up") != 1 {
				t.Errorf("sent %d times, want %d:\n%s", len(k.got), attempts, log)
			}
			for range 2 * mostQueue {
				s.Tell(time.Now(), notice)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.waiting) > mostQueue {
				t.Errorf("%d messages wait, want at most %d", len(s.waiting), mostQueue)
			}
		})
	})
}

func TestSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{}
		spent := notice
		spent.Exhausted, spent.Spent = true, 501*usage.Dollar
		send(t, k, io.Discard, []Hook{{URL: "https://hooks.example.com/", Slack: true}}, func(s *Sender) {
			s.Tell(time.Now(), spent)
			<-time.After(time.Second)
		})
		const want = `{"text":"Pacer: the key mobile has spent its budget of 500.00 USD a month (spent: 501.00 USD, until 2026-12-23). Its requests are refused."}`
		if len(k.bodies) != 1 || k.bodies[0] != want {
			t.Errorf("sent %q, want %s", k.bodies, want)
		}
	})
	if a, b := MessageOf(noon, notice), MessageOf(noon.Add(time.Hour), notice); a.ID != b.ID {
		t.Error("two gateways that tell of one event give it two ids")
	}
}

// moved is a webhook that points elsewhere; what it points to takes everything.
type moved struct{ asked []string }

func (m *moved) RoundTrip(r *http.Request) (*http.Response, error) {
	m.asked = append(m.asked, r.Method+" "+r.URL.Host)
	if r.URL.Host == "hooks.example" {
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://10.0.0.1/login"}}, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A webhook that points elsewhere has not taken the message, and nobody else is asked
// in its place.
func TestAWebhookThatPointsElsewhere(t *testing.T) {
	m := &moved{}
	s := New(Options{Hooks: func() []Hook { return nil }, Client: &http.Client{Transport: m}, Log: slog.New(slog.DiscardHandler)})
	err := s.post(t.Context(), &delivery{hook: Hook{URL: "https://hooks.example/a"}, m: MessageOf(noon, notice)})
	if err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("the message counts as taken: %v", err)
	}
	if len(m.asked) != 1 {
		t.Errorf("asked %q, want the webhook alone", m.asked)
	}
}
