package continuation

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/sse"
	"github.com/pacer-dev/pacer/providers"
)

// maxHeld is how large an event may be that is held until it is whole, in bytes.
const maxHeld = 64 << 10

// meter looks on at the stream of one engine, as inner does, and passes on whole
// events alone. The first engine's pass as they are, those of the others as its
// would have gone on.
type meter struct {
	inner  providers.Meter
	thread *Thread
	again  bool   // it is not the first engine's
	label  string // of the comment at the end

	scan sse.Scanner
	from int64  // offset of held
	held []byte // the beginning of an event
	out  []byte
	seam string // white space that the engine may begin with once more
	raw  bool   // nothing is held any more
}

// Meter returns the meter of the stream of the next engine, which inner looks on at.
// label stands in the comment at the end of a stream that was continued.
func (t *Thread) Meter(inner providers.Meter, label string) providers.Meter {
	m := &meter{inner: inner, thread: t, again: t.times > 0, label: label, seam: t.seam}
	if keeper, ok := inner.(providers.TextKeeper); ok {
		return &keepingMeter{meter: m, TextKeeper: keeper}
	}
	return m
}

// keepingMeter is a meter whose inner one is a TextKeeper.
type keepingMeter struct {
	*meter
	providers.TextKeeper
}

// Read implements providers.Meter.
func (m *meter) Read(p []byte) (pass []byte, seen providers.Seen) {
	pass, seen = m.inner.Read(p)
	return m.take(pass), seen
}

// End implements providers.Meter. What is left of a stream that broke off goes
// nowhere: the next engine's follows.
func (m *meter) End() (pass []byte, seen providers.Seen) {
	pass, seen = m.inner.End()
	if seen.Done { // only its blank line is missing
		pass = append(bytes.Clone(pass), "\n\n"...)
	}
	return m.take(pass), seen
}

// ErrorEvent implements providers.Meter.
func (m *meter) ErrorEvent(message string) []byte { return m.inner.ErrorEvent(message) }

// Held implements providers.Meter.
func (m *meter) Held() int {
	return m.inner.Held() + m.scan.Held() + cap(m.held) + cap(m.thread.text)
}

// LetGo implements providers.Meter: the text is let go, so that the stream is not
// continued.
func (m *meter) LetGo() {
	m.inner.LetGo()
	m.thread.drop("there is no memory for its text")
}

// drop has the stream not continued any more.
func (t *Thread) drop(why string) {
	t.unfit, t.text = why, nil
}

// take returns what of p goes on, with what was held before.
func (m *meter) take(p []byte) []byte {
	if m.raw || len(p) == 0 {
		return p
	}
	m.scan.Feed(p)
	m.held = append(m.held, p...)
	m.out = m.out[:0]
	done := 0 // of held
	for ev, ok := m.scan.Next(); ok; ev, ok = m.scan.Next() {
		end := int(ev.To - m.from)
		m.out = m.event(m.out, &ev, m.held[done:end])
		done = end
	}
	if _, open := m.scan.Pending(); !open && bytes.HasSuffix(m.held[done:], []byte("\n")) { // comments
		m.out = append(m.out, m.held[done:]...)
		done = len(m.held)
	}
	m.from += int64(done)
	m.held = m.held[:copy(m.held, m.held[done:])]
	long := len(m.held) > maxHeld
	if long && m.thread.unfit == "" {
		m.thread.drop("one of its events is too large")
	}
	if long || !m.again && m.thread.unfit != "" {
		m.out, m.raw, m.held = append(m.out, m.held...), true, nil
	}
	return m.out
}

// event appends to out what goes on of ev, which stands in raw behind comments.
func (m *meter) event(out []byte, ev *sse.Event, raw []byte) []byte {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case ev.Oversize:
		m.thread.drop("one of its events is too large")
	case len(data) == 0:
	case string(data) == "[DONE]":
		if m.again {
			out = append(out, ": x-pacer-continued: "+m.label+"\n\n"...)
		}
	case !openai.Valid(data): // which gjson does with a stack as deep as the event nests
		m.thread.drop("one of its events is no JSON, or nests too deep")
	default:
		c := readChunk(data)
		if m.again {
			return m.rewrite(out, &c, data)
		}
		m.thread.follow(&c)
	}
	return append(out, raw...)
}

// follow takes note of a chunk of the first engine.
func (t *Thread) follow(c *chunk) {
	if !t.begun && c.choices {
		t.begun, t.head = true, c.head
	}
	t.role = t.role || c.role.to > 0
	t.add(c.text)
	t.ended = t.ended || c.finished
	if c.unfit != "" {
		t.drop(c.unfit)
	}
}

// add keeps more of the text.
func (t *Thread) add(text string) {
	if t.unfit != "" {
		return
	}
	if len(t.text)+len(text) > MaxText {
		t.drop("its text is too long")
		return
	}
	t.text = append(t.text, text...)
}

// rewrite appends c, whose text is data, as the first engine's stream would have had
// it, if it would have had it at all.
func (m *meter) rewrite(out []byte, c *chunk, data []byte) []byte {
	t := m.thread
	if c.unfit != "" { // an error, say
		t.drop(c.unfit)
		return appendEvent(out, data)
	}
	text := m.trim(c.text)
	ends := c.finished && !t.ended
	if c.choices && text == "" && !ends && (t.role || c.role.to == 0) {
		return out // who speaks is known, and nothing is said
	}
	var e edits
	if text != c.text {
		e.replace(c.content, string(openai.AppendString(nil, text)))
	}
	if t.role && c.role.to > 0 {
		e.replace(c.role, "")
	}
	if !t.begun && c.choices {
		t.begun, t.head = true, c.head
	}
	for i, at := range c.at {
		if was := t.head[i]; was != "" && at.to > 0 {
			e.replace(at, was)
		}
	}
	m.count(&e, c.usage)
	t.add(text)
	t.role = t.role || c.role.to > 0
	t.ended = t.ended || c.finished
	return appendEvent(out, e.apply(data))
}

// trim is what of text the client does not have yet.
func (m *meter) trim(text string) string {
	if m.thread.whole {
		return ""
	}
	n := 0
	for n < min(len(m.seam), len(text)) && m.seam[n] == text[n] {
		n++
	}
	if m.seam = m.seam[n:]; n < len(text) {
		m.seam = ""
	}
	return text[n:]
}

// count has u, which counts the answer of one engine, and its prompt with the text so
// far, count what the client asked and got.
func (m *meter) count(e *edits, u gjson.Result) {
	if !u.IsObject() {
		return
	}
	prompt, answer := m.thread.Prompt(int(u.Get("prompt_tokens").Int())), m.thread.tokens
	if !m.thread.whole {
		answer += int(u.Get("completion_tokens").Int())
	}
	for name, n := range map[string]int{"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer} {
		if v := u.Get(name); v.Exists() {
			e.replace(partOf(v), strconv.Itoa(n))
		}
	}
	if v := u.Get("prompt_tokens_details.cached_tokens"); v.Int() > int64(prompt) {
		e.replace(partOf(v), strconv.Itoa(prompt))
	}
}

func appendEvent(out, data []byte) []byte {
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}
