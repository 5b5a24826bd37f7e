package sse

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// seen is an Event whose bytes were copied.
type seen struct {
	Name, Data      string
	Oversize        bool
	From, Blank, To int64
}

func copied(ev Event) seen {
	return seen{string(ev.Name), string(ev.Data), ev.Oversize, ev.From, ev.Blank, ev.To}
}

// scan feeds the pieces and returns the events; a late LF is added to the
// event that it belongs to. last is what End reports.
func scan(limit int, pieces ...[]byte) (events []seen, last *seen) {
	s := Scanner{limit: limit}
	for _, p := range pieces {
		p = bytes.Clone(p)
		if lead := s.Feed(p); lead > 0 {
			events[len(events)-1].To += int64(lead)
		}
		for {
			ev, ok := s.Next()
			if !ok {
				break
			}
			events = append(events, copied(ev))
		}
		clear(p) // what the scanner needs later it must have copied
	}
	if ev, ok := s.End(); ok {
		c := copied(ev)
		last = &c
	}
	return events, last
}

// naive is a second reading of the standard, byte by byte over the whole
// stream, that shares nothing with Scanner.
func naive(limit int, stream string) (events []seen, last *seen) {
	i := 0
	if strings.HasPrefix(stream, "\xEF\xBB\xBF") {
		i = 3
	}
	var lines []string
	var cur *seen
	var hasData bool
	end := func(blank, to int) *seen {
		ev := cur
		cur = nil
		if ev == nil {
			return nil
		}
		ev.Blank, ev.To = int64(blank), int64(to)
		var data []string
		for _, l := range lines {
			name, value, _ := strings.Cut(l, ":")
			value = strings.TrimPrefix(value, " ")
			if name == "data" {
				data = append(data, value)
				hasData = true
			} else if name == "event" && len(l) <= limit {
				ev.Name = value
			}
			ev.Oversize = ev.Oversize || len(l) > limit
		}
		ev.Data = strings.Join(data, "\n")
		// The first data line alone may be as long as its line.
		if len(data) > 1 && len(ev.Data) > limit {
			ev.Oversize = true
		}
		ok := hasData || ev.Oversize
		lines, hasData = nil, false
		if ev.Oversize {
			ev.Data = ""
		}
		if !ok {
			return nil
		}
		return ev
	}
	from := i
	for i < len(stream) {
		c := stream[i]
		if c != '\n' && c != '\r' {
			i++
			continue
		}
		line, at := stream[from:i], from
		i++
		if c == '\r' && i < len(stream) && stream[i] == '\n' {
			i++
		}
		from = i
		switch {
		case line == "":
			if ev := end(at, i); ev != nil {
				events = append(events, *ev)
			}
		case line[0] != ':':
			if cur == nil {
				cur = &seen{From: int64(at)}
			}
			lines = append(lines, line)
		}
	}
	if rest := stream[from:]; rest != "" && rest[0] != ':' {
		if cur == nil {
			cur = &seen{From: int64(from)}
		}
		lines = append(lines, rest)
	}
	return events, end(len(stream), len(stream))
}

func diff(got, want []seen) string {
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("got  %+v\nwant %+v", got, want)
}

func diffLast(got, want *seen) string {
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		return fmt.Sprintf("at the end: got %+v, want %+v", got, want)
	}
	return ""
}

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		limit        int // 0 = MaxEvent
		want         []seen
	}{
		{"LF", "data: a\n\ndata: b\n\n", 0, []seen{{Data: "a", From: 0, Blank: 8, To: 9}, {Data: "b", From: 9, Blank: 17, To: 18}}},
		{"CRLF", "data: a\r\n\r\n", 0, []seen{{Data: "a", Blank: 9, To: 11}}},
		{"CR", "data: a\r\rdata: b\r\r", 0, []seen{{Data: "a", Blank: 8, To: 9}, {Data: "b", From: 9, Blank: 17, To: 18}}},
		{"mixed ends", "data: a\r\n\ndata: b\n\r\n", 0, []seen{{Data: "a", Blank: 9, To: 10}, {Data: "b", From: 10, Blank: 18, To: 20}}},
		{"several data lines", "data: a\ndata:\ndata:  b\n\n", 0, []seen{{Data: "a\n\n b", Blank: 23, To: 24}}},
		{"no space", "data:{}\n\n", 0, []seen{{Data: "{}", Blank: 8, To: 9}}},
		{"no colon", "data\n\n", 0, []seen{{Data: "", Blank: 5, To: 6}}},
		{"name", "event: error\ndata: x\n\n", 0, []seen{{Name: "error", Data: "x", Blank: 21, To: 22}}},
		{"empty name", "event:\ndata: x\n\n", 0, []seen{{Data: "x", Blank: 15, To: 16}}},
		{"name does not stay", "event: a\ndata: x\n\ndata: y\n\n", 0, []seen{{Name: "a", Data: "x", Blank: 17, To: 18}, {Data: "y", From: 18, Blank: 26, To: 27}}},
		{"no data, no event", "event: a\n\nid: 1\n\ndata: x\n\n", 0, []seen{{Data: "x", From: 17, Blank: 25, To: 26}}},
		{"comment glued to an event", ": ping\ndata: x\n\n", 0, []seen{{Data: "x", From: 7, Blank: 15, To: 16}}},
		{"comment alone", ":\n\n: ping\n\ndata: x\n\n", 0, []seen{{Data: "x", From: 11, Blank: 19, To: 20}}},
		{"blank lines before", "\n\n\ndata: x\n\n", 0, []seen{{Data: "x", From: 3, Blank: 11, To: 12}}},
		{"byte order mark", "\xEF\xBB\xBFdata: x\n\n", 0, []seen{{Data: "x", From: 3, Blank: 11, To: 12}}},
		{"half a mark", "\xEF\xBBdata: x\n\n", 0, nil},
		{"unknown field first", "id: 7\nretry: 1\ndata: x\n\n", 0, []seen{{Data: "x", Blank: 23, To: 24}}},
		{"separators of JSON text", "data: \u2028\u2029\u0085\n\n", 0, []seen{{Data: "\u2028\u2029\u0085", Blank: 15, To: 16}}},
		{"too long a line", "data: 0123456789\n\ndata: x\n\n", 15, []seen{{Oversize: true, Blank: 17, To: 18}, {Data: "x", From: 18, Blank: 26, To: 27}}},
		{"too much data", "data: 01234\ndata: 01234\ndata\n\ndata: x\n\n", 11, []seen{{Oversize: true, Blank: 29, To: 30}, {Data: "x", From: 30, Blank: 38, To: 39}}},
		{"too large, but named", "event: done\ndata: 0123456789\n\ndata: 0123456789\nevent: end\n\n", 15, []seen{{Name: "done", Oversize: true, Blank: 29, To: 30}, {Name: "end", Oversize: true, From: 30, Blank: 58, To: 59}}},
		{"too long a name", "event: a\nevent: 012345678\ndata: x\n\n", 15, []seen{{Name: "a", Oversize: true, Blank: 34, To: 35}}},
		{"a long comment", ": 012345678901234567\ndata: x\n\n", 15, []seen{{Data: "x", From: 21, Blank: 29, To: 30}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if want, _ := naive(cmp.Or(tt.limit, MaxEvent), tt.stream); diff(want, tt.want) != "" {
				t.Fatalf("the oracle is wrong: %s", diff(want, tt.want))
			}
			for cut := range len(tt.stream) {
				got, _ := scan(tt.limit, []byte(tt.stream[:cut]), []byte(tt.stream[cut:]))
				if d := diff(got, tt.want); d != "" {
					t.Fatalf("cut at byte %d:\n%s", cut, d)
				}
			}
			got, _ := scan(tt.limit, bytewise(tt.stream)...)
			if d := diff(got, tt.want); d != "" {
				t.Errorf("byte by byte:\n%s", d)
			}
		})
	}
}

func bytewise(stream string) (pieces [][]byte) {
	for i := range len(stream) {
		pieces = append(pieces, []byte(stream[i:i+1]))
	}
	return pieces
}

func TestPending(t *testing.T) {
	for _, tt := range []struct {
		stream string
		from   int64
		ok     bool
	}{
		{"", 0, false},
		{"d", 0, true},
		{"data: x\n", 0, true},
		{"data: x\n\n", 0, false},
		{"data: x\r\n\r", 0, false},
		{"data: x\n\n: pi", 0, false},
		{"data: x\n\n: ping\nda", 16, true},
		{"data: x\n\nid: 1\n", 9, true},
		{"id: 1\n\n", 0, false},
		{"\xEF\xBB", 0, true},
		{"\xEF\xBB\xBF", 0, false},
		{"\xEF\xBB\xBFd", 3, true},
	} {
		var s Scanner
		for _, p := range bytewise(tt.stream) {
			s.Feed(p)
			for _, ok := s.Next(); ok; _, ok = s.Next() {
			}
		}
		if from, ok := s.Pending(); from != tt.from || ok != tt.ok {
			t.Errorf("%q: pending %v from byte %d, want %v from %d", tt.stream, ok, from, tt.ok, tt.from)
		}
	}
}

func TestEndReportsTheUnfinishedEvent(t *testing.T) {
	for _, tt := range []struct {
		stream string
		want   *seen
	}{
		{"data: [DONE]", &seen{Data: "[DONE]", Blank: 12, To: 12}},
		{"data: [DONE]\n", &seen{Data: "[DONE]", Blank: 13, To: 13}},
		{"data: [DONE]\n\n", nil},
		{"event: x\n", nil},
		{": ping", nil},
		{"", nil},
	} {
		for _, pieces := range [][][]byte{{[]byte(tt.stream)}, bytewise(tt.stream)} {
			_, got := scan(0, pieces...)
			if d := diffLast(got, tt.want); d != "" {
				t.Errorf("%q in %d pieces: %s", tt.stream, len(pieces), d)
			}
		}
	}
}

// A large event must not hold its memory for the rest of the stream.
func TestLargeBuffersAreGivenBack(t *testing.T) {
	var s Scanner
	large := "event: " + strings.Repeat("n", 100_000) + "\ndata: " + strings.Repeat("x", 200_000) + "\ndata: y\n\n"
	for _, p := range []string{large[:150_000], large[150_000:], "data: z\n\n"} {
		s.Feed([]byte(p))
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
	}
	if got := cap(s.buf) + cap(s.part) + cap(s.name); got > 3*keptBuffer {
		t.Errorf("%d bytes of buffers stay, want at most %d", got, 3*keptBuffer)
	}
}

// However long a line gets, no more than the limit of it is kept.
func TestAnEndlessLineIsBounded(t *testing.T) {
	var s Scanner
	piece := bytes.Repeat([]byte("x"), 32<<10)
	s.Feed([]byte("data: "))
	s.Next()
	for range 100 {
		s.Feed(piece)
		if _, ok := s.Next(); ok {
			t.Fatal("an event without an end")
		}
		if cap(s.part) > 2*MaxEvent {
			t.Fatalf("%d bytes of an unfinished line are kept, want at most %d", cap(s.part), 2*MaxEvent)
		}
	}
	s.Feed([]byte("\n\ndata: x\n\n"))
	if ev, ok := s.Next(); !ok || !ev.Oversize {
		t.Errorf("the endless line gave %+v, %v, want an oversize event", ev, ok)
	}
	if ev, ok := s.Next(); !ok || string(ev.Data) != "x" {
		t.Errorf("the event behind it is %q, %v, want x", ev.Data, ok)
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n",
		": ping\r\n\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\n",
		"data: a\rdata: b\r\rdata\r\r",
		"\xEF\xBB\xBFdata: x\n\n",
		"\xEF\xBBdata: x\n\nid:1\n\n",
		"data: 0123456789012345678901234567890123456789\n\ndata: x\n\n",
		"data: 01234567890123456789\ndata: 0123456789\ndata: 0\n\ndata: x",
	} {
		f.Add([]byte(s), uint64(0x0301))
	}
	f.Fuzz(func(t *testing.T, stream []byte, sizes uint64) {
		const limit = 24
		want, wantLast := naive(limit, string(stream))
		check := func(how string, pieces ...[]byte) {
			t.Helper()
			got, last := scan(limit, pieces...)
			if d := diff(got, want); d != "" {
				t.Fatalf("%q %s:\n%s", stream, how, d)
			}
			if d := diffLast(last, wantLast); d != "" {
				t.Fatalf("%q %s: %s", stream, how, d)
			}
		}
		check("whole", stream)
		check("byte by byte", bytewise(string(stream))...)
		for cut := range min(len(stream), 200) {
			check(fmt.Sprintf("cut at %d", cut), stream[:cut], stream[cut:])
		}
		var pieces [][]byte // of 0 to 15 bytes, as sizes says
		for rest, s := stream, sizes; len(rest) > 0; s = s>>4 | s<<60 {
			n := min(int(s&15), len(rest))
			if n == 0 && s>>4 == 0 {
				n = len(rest)
			}
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
			if len(pieces) > 4*len(stream)+16 {
				pieces = append(pieces, rest)
				break
			}
		}
		check(fmt.Sprintf("in %d pieces", len(pieces)), pieces...)
	})
}

// Budget: 200 ns and no allocation for a chunk with one event of 300 bytes.
func BenchmarkOneEvent(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	var s Scanner
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		s.Feed(chunk)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
	}
}

// Budget: 400 ns and no allocation for an event in two pieces.
func BenchmarkCutEvent(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\r\n\r\n")
	var s Scanner
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range [][]byte{chunk[:100], chunk[100:]} {
			s.Feed(p)
			for _, ok := s.Next(); ok; _, ok = s.Next() {
			}
		}
	}
}

// Budget: 200 MB/s and no allocation for nothing but short CR lines, the worst case of two
// searches.
func BenchmarkShortLines(b *testing.B) {
	chunk, end := bytes.Repeat([]byte("data\r"), 6400), []byte("\r\r")
	var s Scanner
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		s.Feed(chunk)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
		s.Feed(end)
		s.Next()
	}
}

// LetGo drops the event under way and nothing else, wherever it is cut.
func TestShedDropsTheEventUnderWay(t *testing.T) {
	stream := "event: a\ndata: one\n\nevent: b\n: note\ndata: two\ndata: 2\n\ndata: three\n\n"
	ends := []int{strings.Index(stream, "event: b"), strings.Index(stream, "data: three")}
	for cut := 1; cut < len(stream); cut++ {
		var s Scanner
		var got []string
		take := func(p string) {
			s.Feed([]byte(p))
			for ev, ok := s.Next(); ok; ev, ok = s.Next() {
				text := string(ev.Data)
				if ev.Oversize {
					text = "too large"
				}
				got = append(got, text)
			}
		}
		take(stream[:cut])
		s.LetGo()
		if held := s.Held(); held > 64 {
			t.Errorf("cut at %d: %d bytes held after LetGo", cut, held)
		}
		take(stream[cut:])
		want := []string{"one", "two\n2", "three"}
		under := 0
		for under < len(ends) && cut >= ends[under] {
			under++
		}
		for i, text := range got {
			// What was not there yet, or is only a name or a comment, need not go.
			if text != want[i] && !(i == under && text == "too large") {
				t.Errorf("cut at %d: got %q, want %q", cut, got, want)
			}
		}
		if len(got) != 3 {
			t.Errorf("cut at %d: got %q, want three events", cut, got)
		}
		if data := stream[:cut]; strings.HasSuffix(data, "tw") && got[1] != "too large" {
			t.Errorf("cut at %d: got %q, want the second to be dropped", cut, got)
		}
	}
}
