package gateway

import (
	"time"

	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// objective is what a request is to get: its route's SLO, with what its headers
// override.
type objective struct {
	class   router.Class
	floor   float64       // tokens/s; 0 = none
	grace   time.Duration // by which the last token may be late
	maxTTFT time.Duration // 0 = none
}

// newObjective is that of a request to rt; decodes is whether its answer is
// generated token by token.
func newObjective(rt *route, asked overrides, decodes bool) objective {
	o := objective{class: rt.class, floor: rt.conf.SLO.MinTPS, grace: rt.conf.SLO.Grace, maxTTFT: rt.conf.SLO.MaxTTFT}
	if asked.class != nil {
		o.class = *asked.class
	}
	if asked.minTPS != nil {
		o.floor = *asked.minTPS
	}
	if asked.maxTTFT != nil {
		o.maxTTFT = *asked.maxTTFT
	}
	if o.class == router.Batch || !decodes {
		o.floor = 0
	}
	return o
}

// judge says whether a stream kept o. ttft is from arrival to the first token,
// so time in line counts; 0 = there was none. A client that leaves is judged
// on what it got.
//
// The floor is kept when the last token came no later than
// first token + (tokens − first chunk's)/floor + grace.
func (o objective) judge(ttft time.Duration, s profiles.Summary) telemetry.Result {
	if ttft <= 0 {
		return telemetry.Unmeasured
	}
	if o.maxTTFT > 0 && ttft > o.maxTTFT {
		return telemetry.Missed
	}
	if o.floor <= 0 {
		return telemetry.Met
	}
	if !s.Measured {
		return telemetry.Unmeasured
	}
	// In seconds: for a floor of next to nothing no Duration is long enough.
	allowed := (s.Tokens-s.FirstTokens)/o.floor + o.grace.Seconds()
	if s.Decode.Seconds() > allowed {
		return telemetry.Missed
	}
	return telemetry.Met
}
