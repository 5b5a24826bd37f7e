package h1client

import (
	"errors"

	"golang.org/x/net/http/httpguts"
)

// chunkState is what the next byte of a chunked body belongs to.
type chunkState uint8

const (
	chunkSize      chunkState = iota // the first digit of a size
	chunkDigits                      // the others
	chunkBlank                       // blanks behind them
	chunkExtension                   // what is behind a semicolon, and means nothing
	chunkSizeLF                      // the end of that line
	chunkData                        // left bytes of it
	chunkCR                          // the two behind it
	chunkLF
	trailer        // the beginning of a line behind the last chunk
	trailerName    // within the name that such a line begins with
	trailerValue   // behind its colon
	trailerValueLF // its end
	trailerLF      // the end of the empty line
	chunkDone
)

const (
	// maxChunkLine bounds a line with a size, in bytes, and maxTrailer all that
	// comes behind the last chunk.
	maxChunkLine = 4096
	maxTrailer   = 4096

	// A chunk may have chunkFrame bytes around it, and twice as many as it holds.
	// What is beyond adds up to maxExcess at most.
	chunkFrame = 16
	maxExcess  = 16 << 10
)

var (
	errChunkSize = errors.New("h1client: malformed chunk: its size")
	errChunkEnd  = errors.New("h1client: malformed chunk: its end")
	errChunkLine = errors.New("h1client: malformed chunk: a line that is too long")
	errFrames    = errors.New("h1client: more frames than chunks")
	errTrailer   = errors.New("h1client: a trailer that is too long, or malformed")
)

// chunked takes chunks out of their frames, whatever the cuts between reads. The
// zero value is at the beginning.
type chunked struct {
	state  chunkState
	digits uint8
	left   uint64 // of the chunk; while its size is read, that
	line   int    // bytes of the line with the size, or of the trailer
	excess int64  // see maxExcess
}

// take moves the data of p to its beginning. n is how much that is, and used how
// much of p belongs to the body: less than all only when that is done.
func (c *chunked) take(p []byte) (n, used int, err error) {
	i := 0
	for i < len(p) && c.state != chunkDone {
		if c.state == chunkData {
			m := int(min(c.left, uint64(len(p)-i)))
			if n != i {
				copy(p[n:], p[i:i+m])
			}
			n, i = n+m, i+m
			if c.left -= uint64(m); c.left == 0 {
				c.state = chunkCR
			}
			continue
		}
		if err := c.frame(p[i]); err != nil {
			return n, i, err
		}
		i++
	}
	return n, i, nil
}

// frame takes one byte that is no data.
func (c *chunked) frame(b byte) error {
	switch c.state {
	case chunkCR:
		if b != '\r' {
			return errChunkEnd
		}
		c.state = chunkLF
	case chunkLF:
		if b != '\n' {
			return errChunkEnd
		}
		c.state = chunkSize
	case trailer, trailerName, trailerValue, trailerValueLF, trailerLF:
		return c.trailer(b)
	default:
		return c.size(b)
	}
	return nil
}

// size takes one byte of the line before a chunk.
func (c *chunked) size(b byte) error {
	if c.line++; c.line > maxChunkLine {
		return errChunkLine
	}
	if c.state == chunkSizeLF {
		if b != '\n' {
			return errChunkSize
		}
		return c.begin()
	}
	if d := digit(b); d < 16 && c.state <= chunkDigits {
		if c.digits == 16 {
			return errChunkSize
		}
		c.left, c.digits, c.state = c.left<<4|uint64(d), c.digits+1, chunkDigits
		return nil
	}
	switch {
	case c.state == chunkSize, b == '\n':
		return errChunkSize
	case b == '\r':
		c.state = chunkSizeLF
	case c.state == chunkExtension:
	case b == ';' && c.state == chunkDigits:
		c.state = chunkExtension
	case b == ' ' || b == '\t':
		c.state = chunkBlank
	default:
		return errChunkSize
	}
	return nil
}

// begin begins the chunk whose size was read.
func (c *chunked) begin() error {
	if c.left > 1<<62 {
		return errChunkSize
	}
	c.excess = max(c.excess+int64(c.line)-chunkFrame-2*int64(min(c.left, 1<<32)), 0)
	if c.excess > maxExcess {
		return errFrames
	}
	if c.state = chunkData; c.left == 0 {
		c.state = trailer
	}
	c.digits, c.line = 0, 0
	return nil
}

func digit(b byte) byte {
	switch {
	case '0' <= b && b <= '9':
		return b - '0'
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10
	}
	return 16
}

// trailer takes one byte of what is behind the last chunk, which means nothing,
// and yet has to be well-formed.
func (c *chunked) trailer(b byte) error {
	if c.line++; c.line > maxTrailer {
		return errTrailer
	}
	switch {
	case c.state == trailer && b == '\r':
		c.state = trailerLF
	case (c.state == trailer || c.state == trailerName) && httpguts.IsTokenRune(rune(b)):
		c.state = trailerName
	case c.state == trailerName && b == ':':
		c.state = trailerValue
	case c.state == trailerValue && b == '\r':
		c.state = trailerValueLF
	case c.state == trailerValue && (b >= ' ' && b != 0x7f || b == '\t'):
	case c.state == trailerValueLF && b == '\n':
		c.state = trailer
	case c.state == trailerLF && b == '\n':
		c.state = chunkDone
	default:
		return errTrailer
	}
	return nil
}
