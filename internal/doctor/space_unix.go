//go:build linux || darwin

package doctor

import "syscall"

// freeAt is how many bytes whoever runs this may still write where dir is; known is
// false where that cannot be told.
func freeAt(dir string) (bytes uint64, known bool) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil || disk.Blocks == 0 { // some network disks count no blocks
		return 0, false
	}
	return disk.Bavail * uint64(disk.Bsize), true
}
