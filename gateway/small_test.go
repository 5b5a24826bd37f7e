package gateway

import (
	"testing"
	"unsafe"
)

// Thousands of streams wait, each with an exchange and an attempt. The sizes are those
// that the allocator has, less the 8 bytes that it takes for itself of what is larger than
// 512 and holds pointers: with one byte more each would take the next, of 2,304 and 1,792.
func TestAnExchangeThatWaitsIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(exchange{}); size > 2048-8 {
		t.Errorf("an exchange has %d bytes, at most 2040 are allowed", size)
	}
	if size := unsafe.Sizeof(attempt{}); size > 1536-8 {
		t.Errorf("an attempt has %d bytes, at most 1528 are allowed", size)
	}
}
