package translate

import (
	"strings"
	"testing"
)

// A client of responses reads the whole answer again at its end. Where there is no
// room for that any more, no more is kept, and the answer never looks whole.
func TestShedEndsWhatKeepsTheAnswer(t *testing.T) {
	text := `{"id":"c","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 1000) + `"},"finish_reason":null}]}`
	s := NewStream(Chat, Responses, Reply{ID: "a", Model: "m"})
	for range 50 {
		s.Feed([]byte(sseOf([2]string{"", text})))
	}
	if s.Held() < 50_000 {
		t.Fatalf("%d bytes held of 50,000", s.Held())
	}
	s.LetGo()
	for range 50 {
		s.Feed([]byte(sseOf([2]string{"", text})))
	}
	if s.Held() > 10_000 {
		t.Errorf("%d bytes held after LetGo", s.Held())
	}
	out, look := s.Feed([]byte(sseOf([2]string{"", "[DONE]"})))
	if look.Done || strings.Contains(string(out), "response.completed") {
		t.Errorf("it looks whole: %v, %.80s", look.Done, out)
	}
	if out := s.Break("no room"); !strings.Contains(string(out), "no room") {
		t.Errorf("the client reads %s", out)
	}
}
