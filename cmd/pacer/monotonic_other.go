//go:build !linux

package main

import "time"

// monotonic is for systemd alone, which is Linux.
func monotonic() time.Duration { return 0 }
