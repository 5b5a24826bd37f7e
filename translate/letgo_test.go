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

// The end of a response takes four times its text: room for that is asked for before it
// is there, and what goes out is no more than that.
func TestTheEndOfAResponseIsCountedBeforeItIsThere(t *testing.T) {
	for _, size := range []int{300 << 10, 3 << 20} {
		s := NewStream(Chat, Responses, reply)
		text := func(n int) string {
			return sseOf([2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", n) + `"},"finish_reason":null}]}`})
		}
		for range size / (100 << 10) {
			s.Feed([]byte(text(100 << 10)))
		}
		s.Feed([]byte(text(1)))
		held := s.Held()
		out, look := s.Feed([]byte(sseOf([2]string{"", `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`}, [2]string{"", "[DONE]"})))
		if !look.Done || len(out) < 4*size-size/10 {
			t.Fatalf("%d bytes go out of %d, done %v", len(out), size, look.Done)
		}
		if held < len(out)+size-size/10 || s.Held() < cap(out)+size-size/10 {
			t.Errorf("%d bytes were held before the end, and %d behind it, of %d and %d that go out", held, s.Held(), size, cap(out))
		}
		if cap(out) > len(out)+size*3/2 {
			t.Errorf("%d bytes are taken for %d", cap(out), len(out))
		}
	}
}
