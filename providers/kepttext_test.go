package providers

import (
	"strings"
	"testing"
)

// The text is kept as far as there is room, however the stream is cut, and
// given up once there is a usage.
func TestTextIsKeptUntilThereIsAUsage(t *testing.T) {
	stream := []byte(strings.Repeat(`data: {"choices":[{"delta":{"content":"h\u00e9 "}}]}`+"\n\n", 5))
	for _, pieces := range [][][]byte{{stream}, bytewise(stream)} {
		m := (&Backend{}).NewMeter("/chat/completions", true, StripEvent)
		keeper := m.(TextKeeper)
		keeper.KeepText(14)
		for _, p := range pieces {
			m.Read(p)
		}
		if got := string(keeper.Text()); got != "hé hé hé " {
			t.Errorf("in %d pieces: kept %q, want as much as surely fits in 14 bytes", len(pieces), got)
		}
		m.Read(usageOf(9))
		m.Read(stream)
		if got := keeper.Text(); got != nil {
			t.Errorf("kept %q although there is a usage", got)
		}
	}
	m := (&Backend{}).NewMeter("/chat/completions", true, StripEvent)
	m.Read(stream)
	if got := m.(TextKeeper).Text(); got != nil {
		t.Errorf("kept %q unasked", got)
	}
}

func TestTextOfADocumentIsKept(t *testing.T) {
	m := (&Backend{}).NewMeter("/completions", false, 0)
	m.(TextKeeper).KeepText(8)
	m.Read([]byte(`{"choices":[{"text":"hello world"}]}`))
	m.End()
	if got := string(m.(TextKeeper).Text()); got != "hello wo" {
		t.Errorf("kept %q, want the first 8 bytes", got)
	}
}
