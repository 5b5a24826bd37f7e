package gateway

import (
	"strings"
	"testing"
)

func TestTheIDOfAnAnswerIsFoundHoweverItIsCut(t *testing.T) {
	const document, event = `{"object":"response","id":"resp_1","output":[]}`, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\n"
	roomy := func() *holding { return &holding{budgets: budgets{all: unbounded(), tenant: unbounded()}} }
	for name, c := range map[string]struct {
		text   string
		events bool
	}{"document": {document, false}, "events": {event, true}} {
		for size := 2; size <= len(c.text); size++ { // in more reads it is not looked for
			var s idScan
			found, reads := "", 0
			memory := roomy()
			for rest := c.text; len(rest) > 0; reads++ {
				n := min(size, len(rest))
				if id := s.find([]byte(rest[:n]), c.events, memory); id != "" {
					if found != "" {
						t.Fatalf("%s by %d bytes: found twice", name, size)
					}
					found = id
				}
				rest = rest[n:]
			}
			if want := "resp_1"; reads <= maxIDReads && found != want {
				t.Errorf("%s by %d bytes: found %q, want %q", name, size, found, want)
			}
		}
	}
	var long, many idScan
	memory := roomy()
	if id := long.find([]byte(`{"x":"`+strings.Repeat("x", maxIDScan)), false, memory); id != "" || !long.over || long.text != nil || memory.bytes != 0 {
		t.Errorf("a long beginning: found %q, over %v, %d bytes held; want the search given up", id, long.over, memory.bytes)
	}
	for range maxIDReads + 1 {
		many.find([]byte(" "), false, roomy())
	}
	if !many.over {
		t.Error("the search goes on in however many reads")
	}
	full := &budget{}
	var none idScan
	if none.find([]byte(document), false, &holding{budgets: budgets{all: full, tenant: unbounded()}}) != "" || !none.over {
		t.Error("it was looked for without room")
	}
}
