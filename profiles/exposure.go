package profiles

import "math"

// exposure is what streams lived through: time and tokens, and the sums of
// both against n that make the model of a step linear. With k tokens booked at
// concurrency n over dt seconds of one stream, each field adds what its comment
// says. Every sum is over a stream's own time and tokens, so that a replica or
// a target that sees only some of the streams of a backend holds a subset that
// obeys the same equation:
//
//	T = a·K + b·Q + c·Y + d·P
//
// The zero value is no exposure.
type exposure struct {
	S float64 // dt: stream-seconds
	T float64 // dt/n: seconds the backend was occupied, this stream's share
	Y float64 // k: tokens
	K float64 // k/n: decode steps, this stream's share
	Q float64 // k/√n
	R float64 // k·√n
	N float64 // k·n
}

// book adds k tokens that took seconds at concurrency n ≥ 1.
func (e *exposure) book(n int, seconds, k float64) {
	f := float64(max(n, 1))
	root := math.Sqrt(f)
	e.S += seconds
	e.T += seconds / f
	e.Y += k
	e.K += k / f
	e.Q += k / root
	e.R += k * root
	e.N += k * f
}

// add adds o with its tokens multiplied by perChunk: streams count chunks,
// profiles count tokens.
func (e *exposure) add(o *exposure, perChunk float64) {
	e.S += o.S
	e.T += o.T
	e.addTokens(o, perChunk)
}

// addTokens adds only the tokens of o, multiplied by scale, which may be
// negative: the correction once the true count is known.
func (e *exposure) addTokens(o *exposure, scale float64) {
	e.Y += o.Y * scale
	e.K += o.K * scale
	e.Q += o.Q * scale
	e.R += o.R * scale
	e.N += o.N * scale
}
