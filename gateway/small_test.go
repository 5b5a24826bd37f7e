package gateway

import (
	"testing"
	"unsafe"
)

// Thousands of streams wait, each with an exchange and an attempt. The sizes are those
// that the allocator has: with one byte more each would take the next.
func TestAnExchangeThatWaitsIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(exchange{}); size > 2048 {
		t.Errorf("an exchange has %d bytes, at most 2048 are allowed", size)
	}
	if size := unsafe.Sizeof(attempt{}); size > 1536 {
		t.Errorf("an attempt has %d bytes, at most 1536 are allowed", size)
	}
}
