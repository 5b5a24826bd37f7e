package relayloop

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// crypted returns a socket that is the server's side of TLS, or the client's, and the
// other side.
func crypted(t *testing.T, server bool) (*Socket, *tls.Conn) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	certificates := s.TLS.Certificates
	s.Close()
	near, far := ends(t)
	switched := &switched{near}
	own, other := tls.Client(switched, &tls.Config{InsecureSkipVerify: true}), tls.Server(far, &tls.Config{Certificates: certificates})
	if server {
		own, other = tls.Server(switched, &tls.Config{Certificates: certificates}), tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	}
	var shaking sync.WaitGroup
	shaking.Go(func() {
		if err := own.Handshake(); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, other.Handshake())
	shaking.Wait()
	socket := must.Get(Take(near))(t)
	near.Close()
	switched.Conn = socket.Encrypt(own, near)
	return socket, other
}

// switched is a connection that becomes another one.
type switched struct{ net.Conn }

// encrypted is relay where both sides are.
func encrypted(t *testing.T, l *Loops, h *through) (backend, client *tls.Conn) {
	t.Helper()
	h.stream.From, backend = crypted(t, false)
	h.stream.To, client = crypted(t, true)
	h.start(l)
	return backend, client
}

// All bytes come through, whatever their number and the records that they come in, and
// the end of TLS is one.
func TestEncryptedBytesComeThrough(t *testing.T) {
	l := run(t)
	for _, size := range []int{1, 1000, readRoom, readRoom + 1, 4 << 20} {
		for _, record := range []int{7, 300, 5000, 1 << 20} {
			if record == 7 && size > readRoom+1 {
				continue
			}
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i * 7 >> 3)
			}
			h := &through{}
			backend, client := encrypted(t, l, h)
			var sending sync.WaitGroup
			sending.Go(func() {
				for rest := want; len(rest) > 0; {
					n, err := backend.Write(rest[:min(record, len(rest))])
					if err != nil {
						t.Error(err)
						return
					}
					rest = rest[n:]
				}
				backend.Close()
			})
			got := make([]byte, size)
			from := httputil.NewChunkedReader(client)
			if _, err := io.ReadFull(from, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes in records of %d do not come through (%v)", size, record, err)
			}
			sending.Wait()
			if w := h.wantLeft(t, SourceOver); w.err != io.EOF {
				t.Errorf("%d bytes in records of %d: it left with %v, want io.EOF", size, record, w.err)
			}
			if more, _ := io.ReadAll(from); len(more) > 0 {
				t.Errorf("%d bytes in records of %d: there are %d more", size, record, len(more))
			}
		}
	}
}

// A backend that does not speak TLS hears of it, as from a goroutine.
func TestABackendHearsWhatTLSSays(t *testing.T) {
	l, h := run(t), &through{}
	backend, _ := encrypted(t, l, h)
	must.Get(backend.NetConn().Write(append([]byte{0x17, 3, 3, 0, 32}, make([]byte, 32)...)))(t)
	if w := h.wantLeft(t, SourceOver); w.err == nil || w.err == io.EOF {
		t.Errorf("it left with %v, want an error of TLS", w.err)
	}
	if _, err := backend.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "bad record MAC") {
		t.Errorf("the backend heard %v, want an alert", err)
	}
}

// Behind a part of a record nothing is said, not even goodbye.
func TestNoGoodbyeBehindAPartOfARecord(t *testing.T) {
	l, h := run(t), &through{}
	h.stream.WriteLimit = 100 * time.Millisecond
	backend, client := encrypted(t, l, h)
	var sending sync.WaitGroup
	sending.Go(func() {
		for err := error(nil); err == nil; _, err = backend.Write(make([]byte, readRoom)) {
		}
	})
	h.wantLeft(t, ClientSlow)
	sending.Wait()
	if _, err := io.Copy(io.Discard, client); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client's stream ended with %v, want io.ErrUnexpectedEOF", err)
	}
}

// A client that closes TLS and its connection is gone, one that sends a request ahead is
// not.
func TestEncryptedClientsThatLeaveOrSendAhead(t *testing.T) {
	l := run(t)
	for _, ahead := range []bool{false, true} {
		h := &through{}
		backend, client := encrypted(t, l, h)
		if ahead {
			must.Get(client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")))(t)
			_ = client.NetConn().(*net.TCPConn).CloseWrite() // it waits for its answers
			_, _ = backend.Write([]byte("x"))
			must.Get(io.ReadFull(client, make([]byte, len("1\r\nx\r\n"))))(t)
			backend.Close()
			h.wantLeft(t, SourceOver)
			continue
		}
		client.Close()
		h.wantLeft(t, ClientGone)
		if _, err := backend.Read(make([]byte, 1)); err == nil {
			t.Error("the backend was told something")
		}
	}
}
