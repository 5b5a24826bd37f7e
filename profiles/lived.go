package profiles

import (
	"math/bits"
	"slices"
)

// lived is what a stream lived through in one bin.
type lived struct {
	bin     int
	pending exposure // since the last turn; its tokens are chunks unless counted
	life    exposure // before it
	said    float64  // bytes of text since the first arrival
}

// lives are the bins that a stream was in, in their order. It has room for no other:
// a stream is in a few, and thousands wait. The zero value was in none.
type lives struct {
	list    []lived
	present uint64 // the bins of list
}

// at returns what was lived through in a bin, and makes room for it.
func (l *lives) at(bin int) *lived {
	i := bits.OnesCount64(l.present & (1<<bin - 1))
	if l.present&(1<<bin) == 0 {
		l.present |= 1 << bin
		l.list = slices.Insert(l.list, i, lived{bin: bin})
	}
	return &l.list[i]
}

// whose is one of the two exposures of a bin.
type whose func(*lived) *exposure

func pending(l *lived) *exposure { return &l.pending }
func life(l *lived) *exposure    { return &l.life }

// age moves pending to life.
func (l *lives) age() {
	for i := range l.list {
		if b := &l.list[i]; b.pending != (exposure{}) {
			b.life.add(&b.pending, 1)
			b.pending = exposure{}
		}
	}
}

// seconds returns the stream-seconds of the whole exposure, and the same weighted
// with n. It is right after age.
func (l *lives) seconds() (seconds, weighted float64) {
	for i := range l.list {
		if e := &l.list[i].life; e.T > 0 {
			seconds += e.S
			weighted += e.S * (e.S / e.T) // S/T is the mean n of a bin
		}
	}
	return seconds, weighted
}
