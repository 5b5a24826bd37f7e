package gateway

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
)

func TestAPromiseIsJudgedByItsLastToken(t *testing.T) {
	// 101 tokens, 1 in the first chunk, floor 20: 5 s, and 1 s of grace.
	stream := func(decode time.Duration, measured bool) profiles.Summary {
		return profiles.Summary{Tokens: 101, FirstTokens: 1, Decode: decode, Measured: measured}
	}
	p := promise{floor: 20, grace: time.Second, maxTTFT: 2 * time.Second}
	for _, c := range []struct {
		name    string
		promise promise
		ttft    time.Duration
		stream  profiles.Summary
		want    telemetry.Result
	}{
		{"in time", p, time.Second, stream(5*time.Second, true), telemetry.Met},
		{"on the last moment of grace", p, 2 * time.Second, stream(6*time.Second, true), telemetry.Met},
		{"later than grace", p, time.Second, stream(6*time.Second+time.Millisecond, true), telemetry.Missed},
		{"first token late", p, 2*time.Second + 1, stream(time.Second, true), telemetry.Missed},
		{"first token late, speed unknown", p, 3 * time.Second, stream(time.Second, false), telemetry.Missed},
		{"speed unknown", p, time.Second, stream(time.Second, false), telemetry.Unmeasured},
		{"no token", p, 0, profiles.Summary{}, telemetry.Unmeasured},
		{"nothing promised", promise{}, time.Hour, stream(time.Hour, false), telemetry.Met},
		{"only ttft promised", promise{maxTTFT: time.Second}, time.Second, stream(time.Hour, false), telemetry.Met},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.promise.judge(c.ttft, c.stream); got != c.want {
				t.Errorf("got result %d, want %d", got, c.want)
			}
		})
	}
}

// A client may wish for a floor of next to nothing.
func TestATinyFloorIsKept(t *testing.T) {
	p := promise{floor: 1e-300, grace: time.Second}
	s := profiles.Summary{Tokens: 101, FirstTokens: 1, Decode: time.Hour, Measured: true}
	if got := p.judge(time.Second, s); got != telemetry.Met {
		t.Errorf("got result %d, want %d (met)", got, telemetry.Met)
	}
}
