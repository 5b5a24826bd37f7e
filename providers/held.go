package providers

// The bytes that a meter holds beyond the read it was given, and how it lets go
// of them. The buffers' capacity counts: it is what the memory is.

// Held implements Meter.
func (m *streamMeter) Held() int { return m.scan.Held() + cap(m.held) + cap(m.spare) + cap(m.out) }

// Shed implements Meter. What is held back of an event is at most maxHeld, and
// stays: it may be one that must not go on.
func (m *streamMeter) Shed() { m.scan.Shed() }

// Held implements Meter.
func (m *eventMeter) Held() int { return m.scan.Held() }

// Shed implements Meter.
func (m *eventMeter) Shed() { m.scan.Shed() }

// Held implements Meter.
func (m *documentMeter) Held() int { return cap(m.text) }

// Shed implements Meter.
func (m *documentMeter) Shed() { m.over, m.text = true, nil }

// Held implements Meter. Such an answer is read as it goes by.
func (m *bulkMeter) Held() int { return 0 }

// Shed implements Meter.
func (m *bulkMeter) Shed() {}

// Held implements Meter.
func (soundMeter) Held() int { return 0 }

// Shed implements Meter.
func (soundMeter) Shed() {}
