package gateway

import (
	"time"

	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
)

// promise is what a request was to get.
type promise struct {
	floor   float64       // tokens/s; 0 = none
	grace   time.Duration // by which the last token may be late
	maxTTFT time.Duration // 0 = none
}

// judge says whether a stream kept p. ttft is from arrival to the first token,
// so time in line counts; 0 = there was none. A client that leaves is judged
// on what it got.
//
// The floor is kept when the last token came no later than
// first token + (tokens − first chunk's)/floor + grace.
func (p promise) judge(ttft time.Duration, s profiles.Summary) telemetry.Result {
	if ttft <= 0 {
		return telemetry.Unmeasured
	}
	if p.maxTTFT > 0 && ttft > p.maxTTFT {
		return telemetry.Missed
	}
	if p.floor <= 0 {
		return telemetry.Met
	}
	if !s.Measured {
		return telemetry.Unmeasured
	}
	// In seconds: for a floor of next to nothing no Duration is long enough.
	allowed := (s.Tokens-s.FirstTokens)/p.floor + p.grace.Seconds()
	if s.Decode.Seconds() > allowed {
		return telemetry.Missed
	}
	return telemetry.Met
}
