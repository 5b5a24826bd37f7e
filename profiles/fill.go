package profiles

import "math"

// fill is how many tokens a chunk holds at the levels of a bin, over the mean of
// all. Drafts that are dropped under load make chunks smaller there, and usage,
// which is one sum for a stream, does not tell; the bytes of text in each chunk do.
// A nil one is 1 everywhere.
type fill [NumBins]float64

func (f *fill) in(bin int) float64 {
	if f == nil {
		return 1
	}
	return f[bin]
}

func (f *fill) at(n int) float64 {
	if f == nil {
		return 1
	}
	return f[BinOf(n)]
}

const (
	// oneToken is how far off one the tokens of a chunk may be, over all n, for a
	// chunk to be a token.
	oneToken = 0.02

	// textError is the relative standard error of tokens that are told from text, of
	// one of them. Tokens differ in length, and answers and their parts in kind.
	textError = 3.0

	// leastTold is how many tokens a bin needs to be asked.
	leastTold = 30
)

// seeFill takes the chunks and tokens of a finished stream by the levels that it
// lived at: its tokens are divided as its text is. g.mu is held.
func (p *profile) seeFill(s *Stream, t tally) {
	all := 0.0
	for i := range s.held.lives.list {
		all += s.held.lives.list[i].said
	}
	if s.unit.counted || !(all > 0) || !(t.decoded > 0) {
		return
	}
	for i := range s.held.lives.list {
		l := &s.held.lives.list[i]
		if chunks := s.unit.measure.chunks((l.life.Y+l.pending.Y)/s.unit.fill.in(l.bin), l.said); chunks > 0 {
			p.fold.bins[l.bin].Chunks += chunks
			p.fold.bins[l.bin].Told += t.decoded * l.said / all
		}
	}
}

// fill returns how many tokens chunks hold by n, nil where they hold as many
// everywhere, as far as the text tells, or where a chunk is a token. With C chunks
// and Y tokens of a bin it is, relative to the mean,
//
//	f = e^r, r = ln((Y/C)/(ΣY/ΣC))·τ²/(τ² + e²), e = textError/√Y
//
// linear in ln n between the bins; τ² is their variance beyond e², as in bendOf. What
// measure counts holds f/(1 − w + w·f): the text, which has the weight w, has told the
// rest.
func (s *Sums) fill() *fill {
	var chunks, told float64
	for i := range s.bins {
		chunks, told = chunks+s.bins[i].Chunks, told+s.bins[i].Told
	}
	mean := told / chunks
	if !(mean > 0) || math.Abs(s.totals.perChunk()-1) <= oneToken {
		return nil
	}
	var list []residual
	for i := range s.bins {
		b := &s.bins[i]
		if n, ok := b.meanN(); ok && b.Told >= leastTold && b.Chunks > 0 {
			list = append(list, residual{math.Log(n), math.Log(b.Told / b.Chunks / mean), textError / math.Sqrt(b.Told)})
		}
	}
	differ := variance(list)
	if !(differ > 0) {
		return nil
	}
	var k knots
	for _, q := range list {
		k.add(q.x, q.r*differ/(differ+q.e*q.e))
	}
	f, weighed := new(fill), 0.0
	for i := range f {
		lo, hi := BinBounds(i)
		f[i] = math.Exp(k.at(math.Log(math.Sqrt(float64(lo) * float64(max(hi, lo))))))
		weighed += f[i] * s.bins[i].Chunks
	}
	w := s.totals.measure().text
	for i := range f {
		f[i] *= chunks / weighed
		if f[i] /= 1 - w + w*f[i]; !(f[i] > 1.0/mostPerChunk && f[i] < mostPerChunk) {
			return nil
		}
	}
	return f
}
