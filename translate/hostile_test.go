package translate

import (
	"strings"
	"testing"
)

// What a target may make of a stream is bounded, whatever it sends: 32 KiB of events
// are no hundreds of megabytes for the client, and what is kept is counted.
func TestWhatATargetSendsIsNotMultiplied(t *testing.T) {
	long := strings.Repeat("i", 100_000)
	piece := `{"choices":[{"delta":{"content":"a"}}]}`
	claude := func(id string) string { return `{"type":"message_start","message":{"id":"` + id + `"}}` }
	bit := `{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`
	call := `{"choices":[{"delta":{"tool_calls":[` + strings.Repeat(`{"function":{"name":"a"},"id":"x"},{"function":{"name":"a"},"id":"y"},`, 5_000) + `0]}}]}`
	asked := reply
	asked.Asked = []Param{{"instructions", `"` + long + `"`}}
	for name, c := range map[string]struct {
		from, to     Name
		o            Reply
		first, again string
	}{
		"a long id for chats":            {Messages, Chat, reply, claude(long), bit},
		"a long id for generateContent":  {Chat, Gemini, reply, `{"id":"` + long + `","choices":[{"delta":{"content":"a"}}]}`, piece},
		"a message that begins anew":     {Messages, Responses, asked, claude("a"), claude("a")},
		"calls without end for chats":    {Chat, Messages, reply, call, call},
		"calls without end, and kept":    {Chat, Responses, reply, call, call},
		"calls without end for Google's": {Chat, Gemini, reply, call, call},
	} {
		s := NewStream(c.from, c.to, c.o)
		feed := func(text string) (n int) {
			out, _ := s.Feed([]byte(sseOf([2]string{"", text})))
			return len(out)
		}
		first, n := feed(c.first), 0
		for range 100 {
			n += feed(c.again)
		}
		if most := 8 << 20; first > most || n > most {
			t.Errorf("%s: %d bytes go out first and %d then, of %d and %d", name, first, n, len(c.first), 100*len(c.again))
		}
	}
}

// All that is kept of an answer for its end counts, not its texts alone.
func TestWhatIsKeptOfCallsCounts(t *testing.T) {
	s := NewStream(Chat, Responses, reply)
	name := strings.Repeat("n", 100_000)
	for i := range 10 {
		s.Feed([]byte(sseOf([2]string{"", `{"choices":[{"delta":{"tool_calls":[{"id":"` + string(rune('a'+i)) + `","function":{"name":"` + name + `"}}]}}]}`})))
	}
	if s.Held() < 10*len(name) {
		t.Errorf("%d bytes held of %d", s.Held(), 10*len(name))
	}
}

// What is kept to be told as a whole is bounded: it is written four times at its end.
func TestAnAnswerThatIsKeptIsBounded(t *testing.T) {
	call := func(more string) string {
		return sseOf([2]string{"", `{"choices":[{"delta":{"tool_calls":[{"index":0,` + more + `}]}}]}`})
	}
	whole := reply
	whole.WholeCalls = true
	for name, s := range map[string]*Stream{
		"responses": NewStream(Chat, Responses, reply), "Google's": NewStream(Chat, Gemini, reply), "Mistral's": NewStream(Chat, Chat, whole),
	} {
		s.Feed([]byte(call(`"id":"x","function":{"name":"a","arguments":"x"}`)))
		piece := []byte(call(`"function":{"arguments":"` + strings.Repeat("x", 1<<19) + `"}`))
		most, said := 0, ""
		for range 3 * mostKept >> 19 {
			out, _ := s.Feed(piece)
			most = max(most, s.Held())
			if len(out) < len(piece) {
				said += string(out)
			}
		}
		if most > 7*mostKept || s.Held() > 1<<20 || !strings.Contains(said, "too long to be told") {
			t.Errorf("%s: %d bytes were kept, and %d at the end; the client reads %.200s", name, most, s.Held(), said)
		}
	}
}

// A document with more parts than anybody means is none of its API.
func TestADocumentOfTooManyParts(t *testing.T) {
	parts := strings.Repeat(`{"type":"text"},`, 20_000)
	for name, c := range map[string]struct {
		from Name
		text string
	}{
		"blocks": {Messages, `{"content":[` + parts + `{}]}`},
		"calls":  {Chat, `{"choices":[{"message":{"tool_calls":[` + strings.Repeat(`{"function":{"name":"a"},"id":"x"},{"function":{"name":"a"},"id":"y"},`, 10_000) + `{}]}}]}`},
	} {
		if out, look, err := Document(c.from, Responses, reply, []byte(c.text)); err == nil || !look.Bad {
			t.Errorf("%s: %d bytes go out of %d: %v", name, len(out), len(c.text), err)
		}
	}
	chances := `{"candidates":[{"finishReason":"STOP","logprobsResult":{"chosenCandidates":[` + strings.Repeat("0,", 100_000) + `0]}}]}`
	if out, _, err := Document(Gemini, Chat, reply, []byte(chances)); err != nil || len(out) > 2*len(chances) {
		t.Errorf("log probabilities of nothing: %d bytes go out of %d: %v", len(out), len(chances), err)
	}
}

// LiteLLM has Google's signature of a call in its id, and needs it back: an id of some
// kilobytes is one.
func TestALongIDOfACallIsKept(t *testing.T) {
	id := "call_1__thought__" + strings.Repeat("c2ln", 2000)
	call := `"tool_calls":[{"index":0,"id":"` + id + `","type":"function","function":{"name":"look","arguments":"{}"}}]`
	for _, to := range []Name{Messages, Responses, Gemini, Cohere} {
		s := NewStream(Chat, to, reply)
		out, _ := s.Feed([]byte(sseOf([2]string{"", `{"choices":[{"delta":{` + call + `}}]}`}, [2]string{"", `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`})))
		if !strings.Contains(string(out), `"`+id+`"`) {
			t.Errorf("to %v: the id of the call is lost in a stream: %.300s", to, out)
		}
		whole, _, err := Document(Chat, to, reply, []byte(`{"choices":[{"message":{`+call+`},"finish_reason":"tool_calls"}]}`))
		if err != nil || !strings.Contains(string(whole), `"`+id+`"`) {
			t.Errorf("to %v: the id of the call is lost in a document: %.300s (%v)", to, whole, err)
		}
	}
}
