package profiles_test

import (
	"fmt"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// A backend is known from a benchmark file until streams have taught better.
func ExampleCurve_MaxConcurrency() {
	book := profiles.NewBook(profiles.Options{})
	target := profiles.Target{Backend: "h200-a", Model: "llama-3.1-70b"}
	book.Prior(target, []profiles.PriorPoint{{N: 4, TPS: 50}, {N: 64, TPS: 31}, {N: 128, TPS: 22}}, 0)

	curve := book.Curve(target)
	fmt.Printf("32 streams: %.1f tokens/s each, decide with %.1f\n", curve.TPS(32), curve.Low(32, 0))
	fmt.Println("30 tokens/s are kept by", curve.MaxConcurrency(30), "streams")
	// Output:
	// 32 streams: 34.9 tokens/s each, decide with 31.4
	// 30 tokens/s are kept by 68 streams
}

// One stream, as the relay measures it.
func ExampleStream() {
	book := profiles.NewBook(profiles.Options{})
	target := profiles.Target{Backend: "h200-a", Model: "llama-3.1-70b"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	occupancy := profiles.NewOccupancy(now)
	stream := book.Open(target, profiles.Open{Sent: now, Occupancy: occupancy})
	now = now.Add(200 * time.Millisecond)
	occupancy.Set(now, 1)
	for range 101 {
		stream.Read(now, 1)
		now = now.Add(25 * time.Millisecond)
	}
	stream.Usage(profiles.Usage{PromptTokens: 12, CompletionTokens: 101})
	summary := stream.Close(now, true)
	fmt.Printf("%.0f tokens by %v at %.1f tokens/s\n", summary.Tokens, summary.Source, summary.TPS)

	book.Fold(now.Add(10 * time.Second))
	fmt.Printf("one stream alone: %.1f tokens/s\n", book.Curve(target).TPS(1))
	// Output:
	// 101 tokens by usage at 40.0 tokens/s
	// one stream alone: 40.0 tokens/s
}
