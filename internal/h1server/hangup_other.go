//go:build !linux

package h1server

// nobody is hangups on systems without epoll: each connection's own goroutine looks.
type nobody struct{}

func newHangups() hangups { return nobody{} }

func (nobody) watch(*conn) bool { return false }
func (nobody) forget(*conn)     {}
func (nobody) gone(*conn) bool  { return false }
func (nobody) close()           {}
