package gateway

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"sync"
)

const (
	// maxRatio is how many times its compressed size a body may unpack to once it
	// is above ratioStart, in bytes: a prompt rarely passes 20, what was made to
	// fill the memory of others comes near 1,000.
	maxRatio   = 50
	ratioStart = 1 << 20

	// unzipping is what unpacking takes beside the body, in bytes: a window and
	// tables.
	unzipping = 48 << 10
)

// gunzip reads a compressed body. Its beginning is waited for by the first Read,
// so that a slow client meets the same deadlines as any other.
type gunzip struct {
	memory *holding
	from   io.Reader
	most   int64        // bytes that are read as they were sent: what unpacks to nothing has no other end
	zip    *gzip.Reader // nil = not begun
	read   int64        // bytes as they were sent
	whole  bool         // from came to its end
}

// errPasses ends a body of which more was sent than is read.
var errPasses = errors.New("gateway: the compressed body is too large")

// unzippers are kept for the next body.
var unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.zip == nil {
		err = g.begin()
	} else {
		n, err = g.zip.Read(p)
	}
	if g.whole && errors.Is(err, io.ErrUnexpectedEOF) {
		err = gzip.ErrChecksum // all is there, and it is not whole: not a client that left
	}
	return n, err
}

// noGzip reports whether a body was read to err because it is not gzip, or not whole.
func noGzip(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt)
}

// begin takes what unpacking needs as soon as the beginning of the body is there.
func (g *gunzip) begin() error {
	start, err := io.ReadAll(io.LimitReader(rawBody{g}, bodyStart))
	if err != nil {
		return err
	}
	if err := g.memory.take(unzipping); err != nil {
		return err
	}
	g.zip = unzippers.Get().(*gzip.Reader)
	err = g.zip.Reset(io.MultiReader(bytes.NewReader(start), rawBody{g}))
	if err == io.EOF { // nothing at all is no gzip
		err = io.ErrUnexpectedEOF
	}
	return err
}

// passes reports whether more was sent than is read.
func (g *gunzip) passes() bool { return g != nil && g.read > g.most }

// bursts reports whether what was read is too little to unpack to size bytes.
func (g *gunzip) bursts(size int) bool {
	return g != nil && size > ratioStart && int64(size) > maxRatio*g.read
}

// close gives back what unpacking took.
func (g *gunzip) close() {
	if g == nil || g.zip == nil {
		return
	}
	_ = g.zip.Reset(strings.NewReader("")) // keeps nothing of this body alive
	unzippers.Put(g.zip)
	g.memory.adjust(-unzipping)
}

// rawBody is the body as it was sent.
type rawBody struct{ *gunzip }

func (r rawBody) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.read += int64(n)
	if r.passes() {
		return 0, errPasses
	}
	r.whole = r.whole || err == io.EOF
	return n, err
}
