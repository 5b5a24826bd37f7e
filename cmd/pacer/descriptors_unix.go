//go:build unix

package main

import "syscall"

// mayOpen is how many descriptors the process may have at once; 0 = not known.
func mayOpen() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur)
}
