package providers

import "github.com/pacer-dev/pacer/internal/openai"

// maxDocument is how much of a JSON answer is kept to be read at its end.
const maxDocument = 4 << 20

// documentMeter looks on at an answer that is one JSON document. It passes
// everything on at once and reports at the end; of a document above
// maxDocument it reports nothing. Until then it keeps all of it.
type documentMeter struct {
	usageMeter
	keptText
	typed bool // it is of Responses or Messages
	text  []byte
	over  bool
	chunk openai.Chunk
	read  bool // seen is what the document says
	seen  Seen
}

func (m *documentMeter) Read(p []byte) (pass []byte, seen Seen) {
	m.read = false
	if m.over = m.over || len(m.text)+len(p) > maxDocument; m.over {
		m.text = nil
	} else {
		m.text = append(m.text, p...)
	}
	return p, Seen{}
}

// Kept is all of the document that has come; nil = it is not kept any more.
func (m *documentMeter) Kept() []byte { return m.text }

func (m *documentMeter) End() (pass []byte, seen Seen) {
	if m.over {
		return nil, Seen{}
	}
	if !m.read {
		m.read = true
		if m.typed {
			m.seen = m.readTyped()
		} else {
			m.seen = m.readPlain()
		}
	}
	return nil, m.seen
}

func (m *documentMeter) readPlain() (seen Seen) {
	c, ok := &m.chunk, false
	if m.kept, ok = openai.ParseChunkText(m.text, c, m.kept, m.most); !ok {
		return Seen{Bad: true}
	}
	seen = Seen{Bytes: c.Bytes, Reasoning: c.Reasoning, Usage: m.take(c), Error: c.Error, Done: true}
	if c.Content {
		seen.Chunks = 1
	}
	return seen
}

func (m *documentMeter) readTyped() (seen Seen) {
	var answer openai.Event
	if !(&openai.Events{}).Parse(nil, m.text, &answer) {
		return Seen{Bad: true}
	}
	seen = Seen{Bytes: answer.Bytes, Reasoning: answer.Reasoning, Error: answer.Error, Done: true}
	if answer.Content {
		seen.Chunks = 1
	}
	if answer.HasUsage {
		m.usage = Usage(answer.Usage)
		seen.Usage = &m.usage
	}
	return seen
}

func (m *documentMeter) ErrorEvent(string) []byte { return nil }
