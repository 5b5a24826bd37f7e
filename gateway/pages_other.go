//go:build !unix

package gateway

// newPages returns size bytes of the heap.
func newPages(size int) ([]byte, error) { return make([]byte, size), nil }

func emptyPages([]byte) {}
func freePages([]byte)  {}
