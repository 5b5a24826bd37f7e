package router

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// prompted is a form whose streams bring rho prompt tokens for each token, as usual.
type prompted struct {
	form
	rho float64
}

func (p prompted) TPS(n int) float64 { return p.AtRho(n, p.rho).TPS }

func (p prompted) AtRho(n int, rho float64) profiles.Point {
	tps := 1 / (p.a + (p.b+p.d*rho)*float64(n))
	return profiles.Point{N: n, TPS: tps, Low: 0.9 * tps}
}

// prefilling is an engine that prefills one prompt after the other, while nobody gets a token.
type prefilling struct {
	curve   prompted
	slower  float64
	waiting []*Lease
	done    float64 // seconds of the first one
}

// step is so much of its time. It returns the seconds in which it decoded.
func (e *prefilling) step(now time.Time, seconds float64) float64 {
	for len(e.waiting) > 0 {
		left := e.slower*e.curve.d*float64(e.waiting[0].prompt) - e.done
		if left > seconds {
			e.done += seconds
			return 0
		}
		l := e.waiting[0]
		l.FirstToken(now)
		l.Done(now, 1)
		e.waiting, e.done, seconds = e.waiting[1:], 0, seconds-left
	}
	return seconds
}

// Streams stand still while prompts are prefilled, and run faster than usual while none is.
// Neither makes an engine slower than learned, and both hide none that is.
func TestPromptsMakeNoEngineSlower(t *testing.T) {
	for _, c := range []struct {
		what         string
		slower       float64
		rho          float64 // of the curve
		burst, every int     // prompts of 1,500 tokens, and seconds from one burst to the next
		sequences    int     // of each of the streams, of which six run together
		least, most  float64 // of the speed, over four seconds and more, as long as 120 tokens take
	}{
		{"a burst now and then", 1, 1.95, 8, 20, 1, 0.9, 1.1},
		{"a burst now and then, one request of six", 1, 1.95, 8, 20, 6, 0.9, 1.1},
		{"as many, evenly", 1, 1.95, 2, 5, 1, 0.9, 1.1},
		{"as many, evenly, one request of six", 1, 1.95, 2, 5, 6, 0.9, 1.1},
		{"no prompts any more", 1, 1.95, 0, 20, 1, 0.9, 1.25},
		{"four times as many as usual", 1, 0.5, 8, 20, 1, 0.9, 1.1},
		{"evenly, 1.4 times slower", 1.4, 1.95, 2, 5, 1, 0.4, 0.75},
		{"evenly, 1.4 times slower, one request of six", 1.4, 1.95, 2, 5, 6, 0.4, 0.75},
		{"a burst, 1.5 times slower", 1.5, 1.95, 8, 20, 1, 0.4, 0.75},
		{"evenly, 1.5 times slower", 1.5, 1.95, 2, 5, 1, 0.4, 0.75},
		{"three times slower", 3, 1.95, 2, 5, 1, 0.1, 0.4},
	} {
		b := newBench(t, []string{"x"}, Route{Name: "chat"})
		curve := prompted{form{a: 0.01, b: 0.001, d: 0.3e-3, visited: 30, answer: 300}, c.rho}
		b.learn("x", curve)
		leases := b.fill("chat", 6/c.sequences, prompt(1500), sequences(c.sequences))
		for _, l := range leases {
			l.FirstToken(b.now)
		}
		engine := &prefilling{curve: curve, slower: c.slower}
		tokens, quiet := 0.0, curve.AtRho(6, 0).TPS/c.slower
		const step = 50 * time.Millisecond
		var seen, expected []float64
		least, most := math.Inf(1), 0.0
		for i := range int(2 * time.Minute / step) {
			if second := i * int(step) / int(time.Second); c.burst > 0 && i%int(time.Second/step) == 0 && second%c.every == 0 {
				for range c.burst {
					engine.waiting = append(engine.waiting, b.place("chat", prompt(1500)).Lease)
				}
			}
			b.sleep(step)
			ran := engine.step(b.now, step.Seconds())
			if ran > 0 {
				tokens += ran * quiet
				for _, l := range leases {
					l.Progress(b.now, profiles.Count{Tokens: tokens * float64(c.sequences)})
				}
			}
			b.tick()
			if i%int(time.Second/step) != 0 {
				continue
			}
			now := b.Loads()[0]
			seen, expected = append(seen, now.Seen), append(expected, now.Expected)
			for s, last := 4, len(seen)-1; s <= min(12, last) && last > 20; s++ {
				if e := expected[last] - expected[last-s]; e >= 120 {
					speed := (seen[last] - seen[last-s]) / e
					least, most = min(least, speed), max(most, speed)
					break
				}
			}
		}
		t.Logf("%s: %.2f to %.2f", c.what, least, most)
		if !(least >= c.least && most <= c.most) {
			t.Errorf("%s: streams get %.2f to %.2f of what was learned, want %v to %v", c.what, least, most, c.least, c.most)
		}
	}
}
