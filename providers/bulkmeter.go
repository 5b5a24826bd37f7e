package providers

import "github.com/pacer-dev/pacer/internal/openai"

// bulkMeter looks on at an answer of any size: vectors, images, text of a
// transcription. It reads usage as the answer goes by and keeps nothing else.
type bulkMeter struct {
	document openai.Document
	anything bool // the answer need not be JSON
	usage    Usage
}

func (m *bulkMeter) Read(p []byte) (pass []byte, seen Seen) {
	m.document.Feed(p)
	return p, Seen{}
}

func (m *bulkMeter) End() (pass []byte, seen Seen) {
	usage, hasUsage, failed, whole := m.document.End()
	if !whole {
		return nil, Seen{Done: m.anything, Bad: !m.anything}
	}
	seen = Seen{Done: true, Error: failed}
	if hasUsage {
		m.usage = Usage(usage)
		seen.Usage = &m.usage
	}
	return nil, seen
}

func (m *bulkMeter) ErrorEvent(string) []byte { return nil }

// soundMeter looks on at sound, and sees nothing.
type soundMeter struct{}

func (soundMeter) Read(p []byte) (pass []byte, seen Seen) { return p, Seen{} }
func (soundMeter) End() (pass []byte, seen Seen)          { return nil, Seen{Done: true} }
func (soundMeter) ErrorEvent(string) []byte               { return nil }
