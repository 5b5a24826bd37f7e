package translate

import (
	"strings"
	"testing"
)

// A client of responses reads the whole answer again at its end. Where there is no
// room for that any more, no more is kept, and the answer never looks whole.
func TestLetGoEndsWhatKeepsTheAnswer(t *testing.T) {
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

// Mistral's clients read each call of a tool as a whole. Where there is no room for
// one, nothing of it is passed on; an answer without one goes on.
func TestLetGoEndsACallThatIsToldAsAWhole(t *testing.T) {
	const call = `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":\"`
	for _, calls := range []bool{false, true} {
		s := NewStream(Chat, Chat, Reply{ID: "a", Model: "m", WholeCalls: true})
		if calls {
			s.Feed([]byte(sseOf([2]string{"", call + strings.Repeat("x", 50_000) + `"}}]},"finish_reason":null}]}`})))
			if s.Held() < 50_000 {
				t.Fatalf("%d bytes held of 50,000", s.Held())
			}
		}
		s.LetGo()
		if s.Held() > 10_000 {
			t.Errorf("%d bytes held after LetGo", s.Held())
		}
		out, _ := s.Feed([]byte(sseOf([2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}`})))
		if strings.Contains(string(out), "hello") == calls {
			t.Errorf("with a call under way (%v) the client reads %q", calls, out)
		}
	}
}
