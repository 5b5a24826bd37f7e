package relayloop

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A socket that its client has reset is no connection any more: the runtime would make
// one of it that has no address.
func TestASocketThatIsResetIsNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Take(server)
	if err != nil {
		t.Fatal(err)
	}
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
