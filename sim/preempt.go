package sim

// preempt makes room in the KV cache for the tokens of the next step: while
// those that decode might not fit, the newest sequence is put back to the head
// of the line. The oldest is never put back, so something always goes on.
func (e *Engine) preempt() {
	if !e.o.Preempt {
		return
	}
	for len(e.batch) > 1 {
		growth := 0
		for _, s := range e.batch {
			if s.prompt == 0 {
				growth += 1 + e.o.Draft
			}
		}
		if e.kvInUse+growth <= e.o.KVTokens {
			return
		}
		last := len(e.batch) - 1
		s := e.batch[last]
		e.batch[last] = nil
		e.batch = e.batch[:last]
		e.kvInUse -= s.cache
		// What it wrote is read again with its prompt; context is both.
		s.resumed = s.resumed || s.prompt == 0
		s.prompt, s.cache = s.context, s.context
		s.state = waiting
		e.line.unshift(s)
	}
}
