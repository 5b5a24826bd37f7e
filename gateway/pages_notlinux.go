//go:build unix && !linux

package gateway

// keepSmall and fillPages are for Linux alone.
func keepSmall([]byte) {}
func fillPages([]byte) {}
