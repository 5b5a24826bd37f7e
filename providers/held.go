package providers

// The bytes that a meter holds beyond the read it was given, and how it lets go
// of them. The buffers' capacity counts: it is what the memory is.

// Held implements Meter.
func (m *streamMeter) Held() int { return int(m.holds) }

// measure notes how much is held. It is a few MiB at most, by the bounds of each part.
func (m *streamMeter) measure() {
	m.holds = int32(m.scan.Held() + m.tail.Size() + cap(m.out))
}

// LetGo implements Meter. What is held back of an event is at most sse.MaxTail, and
// stays: it may be one that must not go on.
func (m *streamMeter) LetGo() {
	m.scan.LetGo()
	m.measure()
}

// Held implements Meter.
func (m *eventMeter) Held() int { return m.scan.Held() + m.tail.Size() }

// LetGo implements Meter. What is held back stays, as that of a streamMeter.
func (m *eventMeter) LetGo() { m.scan.LetGo() }

// Held implements Meter.
func (m *documentMeter) Held() int { return cap(m.text) }

// LetGo implements Meter.
func (m *documentMeter) LetGo() { m.over, m.text = true, nil }

// Held implements Meter. Such an answer is read as it goes by.
func (m *bulkMeter) Held() int { return 0 }

// LetGo implements Meter.
func (m *bulkMeter) LetGo() {}

// Held implements Meter.
func (soundMeter) Held() int { return 0 }

// LetGo implements Meter.
func (soundMeter) LetGo() {}
