package relayloop

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pacer-dev/pacer/internal/must"
)

// A socket that its client has reset is no connection any more: the runtime would make
// one of it that has no address.
func TestASocketThatIsResetIsNoConnection(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	server := must.Get(l.Accept())(t)
	s := must.Get(Take(server))(t)
	defer s.Close()
	_ = server.Close()
	_ = client.(*net.TCPConn).SetLinger(0)
	_ = client.Close()
	fds := []unix.PollFd{{Fd: int32(s.fd)}} // of which a reset is always told
	if n, err := unix.Poll(fds, int(time.Minute/time.Millisecond)); n != 1 {
		t.Fatalf("the reset did not arrive: %v", err)
	}
	if c, err := s.Conn(); err == nil {
		t.Errorf("got a connection to %v", c.RemoteAddr())
		_ = c.Close()
	}
}
