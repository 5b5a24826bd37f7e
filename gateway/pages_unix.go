//go:build unix

package gateway

import "golang.org/x/sys/unix"

// newPages returns size bytes outside of the heap. They take no memory until
// they are written, page by page.
func newPages(size int) ([]byte, error) {
	pages, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	keepSmall(pages)
	return pages, nil
}

// emptyPages gives the memory of whole pages back. They read as zeros.
func emptyPages(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) }

// freePages gives back all that newPages returned. Whoever reads it then ends
// the program.
func freePages(pages []byte) { _ = unix.Munmap(pages) }
