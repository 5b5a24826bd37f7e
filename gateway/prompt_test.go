package gateway

import "testing"

func TestPromptScaleLearns(t *testing.T) {
	var p promptScale
	if got := p.apply(1000); got != 1000 {
		t.Errorf("before any evidence an estimate of 1000 is worth %d, want 1000", got)
	}
	for range 3000 {
		p.learn(1000, 400)
	}
	got := p.apply(10_000)
	if got < 3990 || got > 4020 {
		t.Errorf("after many requests with 0.4 of the estimate, 10000 are worth %d, want 4000", got)
	}
	p.learn(100, 1601)
	p.learn(1601, 100)
	p.learn(0, 5)
	p.learn(5, -1)
	if again := p.apply(10_000); again != got {
		t.Errorf("nonsense moved 10000 from %d to %d", got, again)
	}
	for range 6000 {
		p.learn(1000, 2000)
	}
	if got := p.apply(1000); got < 1950 {
		t.Errorf("after the prompts changed, 1000 are worth %d, want 2000", got)
	}
	if got := p.apply(1 << 40); got != maxPromptTokens {
		t.Errorf("a huge body is worth %d tokens, want it bounded to %d", got, maxPromptTokens)
	}
}
