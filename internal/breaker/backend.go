package breaker

import "time"

// OfBackend says when a backend is left alone: after five failures in a row, after
// as many streams in a row that broke off, or when half of at least twenty
// verdicts of the last minute are failures. Every five seconds a probe goes out. One
// without a verdict is given up after three minutes: longer than any first byte
// is waited for by default.
func OfBackend() Options {
	return Options{
		InARow: 5,
		Share:  20, Window: time.Minute, Bucket: 5 * time.Second,
		Wait: func(int) time.Duration { return 5 * time.Second },
		Lost: 3 * time.Minute,
	}
}
