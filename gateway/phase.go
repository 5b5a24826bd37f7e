package gateway

// phase is how far an attempt has come. It only goes on; a step that is not
// possible from where it is, is a mistake of this package, and panics.
//
//	leased ─▶ sent ─▶ answered ─▶ judged ─▶ finished ─▶ ended
//
// A stream is answered before it is judged, by its first content; any other
// answer is judged at once. An attempt is finished from wherever it fails.
type phase uint8

const (
	phaseLeased   phase = iota // it has a place, and nothing went up
	phaseSent                  // the request went up; nothing of the answer was judged
	phaseAnswered              // a stream has begun; no content came yet
	phaseJudged                // the breaker has its verdict
	phaseFinished              // no more counts: it is measured, and its place given back
	phaseEnded                 // nothing of it is held any more
)

// String returns leased, sent, answered, judged, finished or ended.
func (p phase) String() string {
	return [...]string{"leased", "sent", "answered", "judged", "finished", "ended"}[p]
}

// send notes that the request goes up.
func (p *phase) send() { p.from(phaseSent, *p == phaseLeased) }

// answer notes that a stream has begun that is not judged yet.
func (p *phase) answer() { p.from(phaseAnswered, *p == phaseSent) }

// judge notes that the breaker has its verdict.
func (p *phase) judge() { p.from(phaseJudged, *p == phaseSent || *p == phaseAnswered) }

// finish notes that what comes now counts for nothing.
func (p *phase) finish() { p.from(phaseFinished, *p < phaseFinished) }

// end notes that all was given back.
func (p *phase) end() { p.from(phaseEnded, *p == phaseFinished) }

func (p *phase) from(next phase, possible bool) {
	if !possible {
		panic("gateway: an attempt that is " + p.String() + " cannot become " + next.String())
	}
	*p = next
}
