package signin

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Sessions are bounded in all and for each person, the oldest goes first, and what
// is over makes room before anything else.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	begin := func(subject string, at time.Duration) string {
		return s.begin(Visit{Subject: subject, Began: now.Add(at), Ends: now.Add(at + time.Hour)})
	}
	var mine []string
	for i := range mostOfOne + 3 {
		mine = append(mine, begin("me", time.Duration(i)*time.Second))
	}
	for i, secret := range mine {
		if _, ok := s.find(now.Add(time.Minute), secret); ok != (i >= 3) {
			t.Errorf("of %d sessions of one person number %d is open: %v", len(mine), i, ok)
		}
	}
	if _, ok := s.find(now.Add(2*time.Hour), mine[5]); ok {
		t.Error("a session goes on after its end")
	}
	s.end(mine[5])
	if _, ok := s.find(now, mine[5]); ok {
		t.Error("a session that was ended is open")
	}
	for i := range mostSessions {
		begin(fmt.Sprint(i), time.Minute)
	}
	if n := len(s.open); n != mostSessions {
		t.Errorf("%d sessions, want %d", n, mostSessions)
	}
	if _, ok := s.find(now.Add(time.Minute), mine[len(mine)-1]); ok {
		t.Error("the oldest of all stays while newer ones go")
	}
	begin("late", 3*time.Hour)
	if n := len(s.open); n != 1 {
		t.Errorf("%d sessions are kept after their end", n-1)
	}
}

// What another process has sealed, or what was changed, is not read.
func TestTheSeal(t *testing.T) {
	a, b := newSeal(), newSeal()
	p := pending{State: "s", Nonce: "n", Verifier: "v", Until: time.Now().UTC().Round(0)}
	text := a.close(p)
	if got, err := a.open(text); err != nil || !got.Until.Equal(p.Until) || got.State != "s" || got.Nonce != "n" || got.Verifier != "v" {
		t.Errorf("%+v, %v", got, err)
	}
	for name, cookie := range map[string]string{"another process": b.close(p), "nothing": "", "no base64": "%", "short": "AAAA", "changed": text[:len(text)-6] + "AAAAAA"} {
		if _, err := a.open(cookie); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
	if text == a.close(p) {
		t.Error("two seals are alike")
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{"a\nb\x00c\u202ed": "abcd", "\xff\xfeé": "é", strings.Repeat("ä", 200): strings.Repeat("ä", 128)} {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
	if got := groupsIn([]byte(`["a","",3]`)); got != nil {
		t.Errorf("a list that is none: %x", got)
	}
	if got := fmt.Sprint(groupsIn([]byte(`["a",""]`)), groupsIn([]byte(`"b"`)), groupsIn(nil)); got != fmt.Sprint([]Group{GroupOf("a")}, []Group{GroupOf("b")}, []Group{}) {
		t.Errorf("groups %s", got)
	}
}
