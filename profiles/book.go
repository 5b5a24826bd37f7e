package profiles

import "time"

// Book holds the profiles of all targets of this replica. It is safe for
// concurrent use.
type Book struct{}

// Options configures a Book. The zero value means the defaults.
type Options struct {
	// HalfLife is the occupied time after which a bin's evidence counts half.
	// Default: 600s.
	HalfLife time.Duration

	// Margin is taken off the curve for the deciding bound. Default: 0.10.
	Margin float64
}

// NewBook returns an empty book.
func NewBook(o Options) *Book { panic("unwritten") }

// Open starts the measurement of one stream on t, and books the stream's
// prompt as prefilled when its first token arrives. Unknown targets are added.
func (b *Book) Open(t Target, o Open) *Stream { panic("unwritten") }

// Ensure makes t known, so that it has a (still unknown) curve.
func (b *Book) Ensure(targets ...Target) { panic("unwritten") }

// Prior gives t what is believed before any evidence: points of a published
// or configured curve. Evidence outweighs it after a few tens of steps.
func (b *Book) Prior(t Target, points []PriorPoint) { panic("unwritten") }

// PriorPoint is one point of a curve known from elsewhere.
type PriorPoint struct {
	N   int
	TPS float64
}

// Fold closes the windows that ended before now and returns what each target
// gathered since the last Fold, to be pushed to the store. The deltas also
// count locally until Apply brings sums that contain them.
func (b *Book) Fold(now time.Time) []Delta { panic("unwritten") }

// Apply replaces what is known of the targets by the store's sums, which
// contain every delta up to and including those acked; what Fold returned
// later is added on top. It refits the curves.
func (b *Book) Apply(now time.Time, sums map[Target]Sums, acked []Delta) { panic("unwritten") }

// Curve returns the curve of t: an immutable snapshot, never nil. An unknown
// target has an unknown curve.
func (b *Book) Curve(t Target) *Curve { panic("unwritten") }

// Targets returns all targets, sorted by backend, then model.
func (b *Book) Targets() []Target { panic("unwritten") }

// MeanOutput returns the decayed mean output length of t in tokens, 0 while
// unknown; TokensPerByte the tokens of prompt per byte of request body.
func (b *Book) MeanOutput(t Target) float64 { panic("unwritten") }
