package h1client

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// scriptConn gives what is to be read in pieces.
type scriptConn struct {
	net.Conn
	pieces [][]byte
}

func (c *scriptConn) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

func (c *scriptConn) Close() error { return nil }

// What somebody else reads of an answer is what reading it gives, whatever is sent
// and however it is cut.
func FuzzLent(f *testing.F) {
	f.Add("5\r\nhello\r\n0\r\n\r\n", uint8(modeChunked), uint64(1))
	f.Add("5;x=y\r\nhello\r\n3\r\nyou\r\n0\r\na: b\r\n\r\nHTTP/1.1", uint8(modeChunked), uint64(2))
	f.Add("5\r\nhelloX", uint8(modeChunked), uint64(3))
	f.Add("hello, you", uint8(modeLength), uint64(4))
	f.Add("hello", uint8(modeEnd), uint64(5))
	f.Fuzz(func(t *testing.T, said string, kind uint8, seed uint64) {
		how := mode(kind%3) + modeLength
		random := rand.New(rand.NewPCG(seed, 0))
		var pieces [][]byte
		for left := []byte(said); len(left) > 0; {
			n := 1 + random.IntN(len(left))
			pieces = append(pieces, left[:n])
			left = left[n:]
		}
		begin := func(pieces [][]byte) *answer {
			n := newConn(New(Options{MaxIdle: 1, IdleTimeout: 1}), &scriptConn{pieces: pieces})
			return &answer{from: n.Conn, conn: n, ctx: context.Background(), detach: func() bool { return true }, mode: how, left: 7, resp: http.Response{}}
		}
		copied := make([][]byte, len(pieces))
		for i, p := range pieces {
			copied[i] = bytes.Clone(p)
		}
		read := begin(copied)
		var want, got strings.Builder
		_, wantErr := io.Copy(&want, read)
		if wantErr == nil {
			wantErr = io.EOF
		}
		a := begin(nil)
		if Lendable(a) == nil {
			t.Fatal("it cannot be lent")
		}
		lent := Lend(a)
		var err error
		for len(pieces) > 0 && err == nil {
			var n int
			p := bytes.Clone(pieces[0])
			n, err = lent.Take(p)
			got.Write(p[:n])
			pieces = pieces[1:]
		}
		if err == nil {
			err = lent.Cut(io.EOF)
		}
		if got.String() != want.String() || err.Error() != wantErr.Error() {
			t.Errorf("%s of %q: got %q, %v; reading gives %q, %v", strconv.Itoa(int(how)), said, got.String(), err, want.String(), wantErr)
		}
		_ = a.Close()
	})
}
