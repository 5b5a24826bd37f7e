package storetest

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// PerAnswer is what a stream of Teach is worth: its tokens without the first.
const PerAnswer = 100

// Teach relays one stream of two seconds, alone on its backend, that ends now.
func Teach(book *profiles.Book, target profiles.Target) {
	const gap = 20 * time.Millisecond
	at := time.Now().Add(-PerAnswer * gap)
	occupancy := profiles.NewOccupancy(at)
	occupancy.Set(at, 1)
	s := book.Open(target, profiles.Open{Sent: at, Occupancy: occupancy, PromptTokens: 10})
	for range PerAnswer + 1 {
		s.Read(at, 1)
		at = at.Add(gap)
	}
	s.Usage(profiles.Usage{PromptTokens: 10, CompletionTokens: PerAnswer + 1})
	s.Close(at, true)
}
