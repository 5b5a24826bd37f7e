package prefix

import "time"

// An engine that does not tell what was cached shows it: the first token of a prompt that
// was forgotten comes as late as one of a prompt that is computed. Without that all that was
// ever sent to a silent engine would count as there, however small its cache is.

// look learns by the first token, before which so many tokens of other prompts were computed,
// how much of the prompt was there, where the engine does not say so. The cache is locked.
func (v *Visit) look(ttft time.Duration, ahead int) {
	h, m := v.cache, &v.match
	if h.keeping.tells() || h.faith.seen == 0 {
		return
	}
	computed := ttft.Seconds()/h.faith.cold - float64(ahead)
	perByte := float64(v.tokens) / float64(v.bytes)
	for i := range m.count {
		s := &m.stretches[i]
		from, to := float64(s.from)*perByte, float64(s.to)*perByte
		half := float64(v.tokens) - (from+to)/2 // computed, where half of it is there
		if s.doubted || to-from < max(leastTold, half/2) {
			continue // what is computed anyway takes too long to tell
		}
		x := 0.0
		if computed < half {
			x = 1
		}
		h.keeping.see(s.age, x, min(float64(s.to-s.from)/wholeStretch, 1))
	}
}
