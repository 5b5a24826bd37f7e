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
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := unix.Getpeername(s.fd); err == unix.ENOTCONN {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the reset did not arrive")
		}
	}
	if c, err := s.Conn(); err == nil {
		t.Errorf("got a connection to %v", c.RemoteAddr())
		_ = c.Close()
	}
}
