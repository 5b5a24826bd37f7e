// Package notify tells webhooks that a budget has passed its warning or its limit.
// A message that is not taken is sent again, later each time; those that wait are
// bounded, and nobody waits for them. The address of a webhook may be a secret: it
// is in no log line and no error.
package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/usage"
)

const (
	timeout   = 10 * time.Second // of one attempt
	attempts  = 10
	firstWait = time.Second
	mostWait  = 300 * time.Second
	mostQueue = 1000
)

// Hook is one webhook.
type Hook struct {
	URL    string
	Slack  bool   // a text in the form that Slack takes, else JSON
	Secret string // "" = not signed
}

// Message is what is posted as JSON.
type Message struct {
	// ID is of this event: the same when it is sent again, and whoever sends it.
	ID    string    `json:"id"`
	Event string    `json:"event"` // budget.warning or budget.exhausted
	Time  time.Time `json:"time"`
	Of    string    `json:"of"` // key or team
	Name  string    `json:"name"`
	Per   string    `json:"per"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Limit float64   `json:"limit_usd"`
	Spent float64   `json:"spent_usd"`
	Then  string    `json:"then"` // refuse, warn or spill
	Text  string    `json:"text"`
}

// MessageOf is n as it is told at now.
func MessageOf(now time.Time, n usage.Notice) Message {
	b := n.Budget
	m := Message{
		Event: "budget.warning", Time: now.UTC(), Of: "key", Name: n.Holder.Name, Per: b.Per.String(),
		Start: n.Start, End: n.End, Limit: b.Limit.USD(), Spent: n.Spent.USD(), Then: [...]string{"refuse", "spill", "warn"}[b.Then],
	}
	if n.Holder.Team {
		m.Of = "team"
	}
	what := fmt.Sprintf("has spent %.0f %% of", 100*m.Spent/m.Limit)
	if n.Exhausted {
		m.Event, what = "budget.exhausted", "has spent"
	}
	sum := sha256.Sum256(fmt.Append(nil, m.Event, "\x00", n.Holder, "\x00", m.Per, n.Start.Unix(), "\x00", int64(b.Limit)))
	m.ID = hex.EncodeToString(sum[:16])
	m.Text = fmt.Sprintf("Pacer: the %s %s %s its budget of %.2f USD a %s (spent: %.2f USD, until %s).", m.Of, m.Name, what, m.Limit, m.Per, m.Spent, m.End.Format(time.DateOnly))
	if n.Exhausted {
		m.Text += map[string]string{"refuse": " Its requests are refused.", "spill": " Its requests go to another route.", "warn": ""}[m.Then]
	}
	return m
}

// Options configures a Sender. All fields are required.
type Options struct {
	Hooks  func() []Hook // in force now
	Client *http.Client
	Log    *slog.Logger
}

// Sender tells webhooks. It is safe for concurrent use; Run runs once.
type Sender struct {
	o Options

	mu      sync.Mutex // guards waiting
	waiting []*delivery
	wake    chan struct{}
}

type delivery struct {
	hook  Hook
	m     Message
	due   time.Time
	tries int
}

// New returns a Sender that waits for messages. It follows no redirection: what a
// webhook points to was not configured, and would take a GET for the message.
func New(o Options) *Sender {
	client := *o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.Client = &client
	return &Sender{o: o, wake: make(chan struct{}, 1)}
}

// Tell has all webhooks told of n. It does not wait.
func (s *Sender) Tell(now time.Time, n usage.Notice) {
	m := MessageOf(now, n)
	s.o.Log.Warn(m.Text, "event", m.Event, m.Of, m.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.o.Hooks() {
		if len(s.waiting) >= mostQueue {
			continue
		}
		s.waiting = append(s.waiting, &delivery{hook: h, m: m, due: now})
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends what waits until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	for {
		d, wait := s.next(time.Now())
		if d == nil {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			case <-s.wake:
				timer.Stop()
			case <-timer.C:
			}
			continue
		}
		err := s.post(ctx, d)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.settle(time.Now(), d, err)
	}
}

// next takes a delivery that is due, or says how long there is none.
func (s *Sender) next(now time.Time) (*delivery, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := time.Hour
	for i, d := range s.waiting {
		if left := d.due.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
		return d, 0
	}
	return nil, wait
}

// settle has d sent again if it was not taken.
func (s *Sender) settle(now time.Time, d *delivery, err error) {
	if err == nil {
		return
	}
	if d.tries++; d.tries >= attempts {
		s.o.Log.Error("a webhook does not take a message: it is given up", "event", d.m.Event, "id", d.m.ID, "attempts", d.tries, "error", err)
		return
	}
	if d.tries == 1 {
		s.o.Log.Warn("a webhook does not take a message: it is sent again", "event", d.m.Event, "id", d.m.ID, "error", err)
	}
	d.due = now.Add(min(firstWait<<(d.tries-1), mostWait))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= mostQueue { // others came while it was out
		s.o.Log.Error("a webhook does not take a message: it is given up, since as many wait as may", "event", d.m.Event, "id", d.m.ID)
		return
	}
	s.waiting = append(s.waiting, d)
}

// post sends d once.
func (s *Sender) post(ctx context.Context, d *delivery) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body []byte
	var err error
	if d.hook.Slack {
		body, err = json.Marshal(map[string]string{"text": d.m.Text})
	} else {
		body, err = json.Marshal(d.m)
	}
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.hook.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("its URL is none")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "pacer")
	if d.hook.Secret != "" {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		r.Header.Set("X-Pacer-Timestamp", at)
		r.Header.Set("X-Pacer-Signature", "sha256="+Sign(d.hook.Secret, at, body))
	}
	resp, err := s.o.Client.Do(r)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %d", resp.StatusCode)
	}
	return nil
}

// Sign is the signature of a body that was sent at a time, in seconds since 1970:
// the HMAC-SHA256 of the time, a dot and the body, in hex.
func Sign(secret, at string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(at + "."))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
