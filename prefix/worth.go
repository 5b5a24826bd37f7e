package prefix

import "math"

// worth is whether what is called cached saves time, by first tokens that waited
// for nobody:
//
//	y = base + a·(computed tokens) + b·(cached tokens)
//
// In a cache that is one, b is next to nothing. Where b is a, nothing was cached,
// whatever was said. The sums fade; the zero value has seen none.
type worth struct {
	m [3][3]float64 // Σ w·x·xᵀ
	v [3]float64    // Σ w·x·y
	y float64       // Σ w·y²
	n float64

	said saying // by the sums as they are

	bound bound
}

// saying is what share returned. The zero value is to be asked for.
type saying struct {
	asked, ok    bool
	share, least float64
}

// bound is what a token takes at most that was sent there before: of first tokens
// that came of prompts with many such tokens and waited for no other prompt, in
// seconds for each of these. It needs no prompts that differ, as a fit does, and no
// word of the engine. The zero value has seen none.
type bound struct{ n, sum, squares float64 }

// see takes a first token after y seconds.
func (b *bound) see(cached, y float64) {
	if cached < leastTold {
		return
	}
	const keep = 1 - 1/firsts
	x := y / cached
	b.n, b.sum, b.squares = b.n*keep+1, b.sum*keep+x, b.squares*keep+x*x
}

// most is that of nearly all of them, by two standard deviations; 0 = not known.
func (b *bound) most() float64 {
	if b.n < leastFirsts {
		return 0
	}
	mean := b.sum / b.n
	return mean + 2*math.Sqrt(max(b.squares/b.n-mean*mean, 0))
}

const (
	// firsts is how many first tokens count, and leastFirsts how many there have to
	// be.
	firsts      = 64.0
	leastFirsts = 6.0

	// sure is how well the share has to be known, as its standard error: where a
	// worse one counted, chance alone said of good caches that they save nothing.
	sure = 0.08

	// saving is how much has to be saved to be called so: what surely saves less
	// saves nothing.
	saving = 0.5

	// aheadOff is by how many seconds each token of another prompt ahead may put off
	// what is fitted: more than engines take for one. Such a prompt may be computed
	// already, or cached, or sent by another replica, and count all the same.
	aheadOff = 1e-3
)

// see takes a first token after y seconds, with so many tokens of other prompts ahead.
func (t *worth) see(computed, cached, y float64, ahead int) {
	y = min(max(y, 1e-3), 3600)
	x := [3]float64{1, (computed + float64(ahead)) / 1000, cached / 1000}
	off := aheadOff * float64(ahead)
	w := 1 / (y*y + off*off) // what is off is off by a share
	const keep = 1 - 1/firsts
	for i := range x {
		for j := range x {
			t.m[i][j] = t.m[i][j]*keep + w*x[i]*x[j]
		}
		t.v[i] = t.v[i]*keep + w*x[i]*y
	}
	t.y = t.y*keep + w*y*y
	t.n = t.n*keep + 1
	t.said = saying{}
}

// share is how much of what is called cached costs nothing, from 0 to 1, and least
// how much surely does; ok is false while nobody can say. It is all of it where that is
// within two standard errors. What surely saves more than half, at three, is a cache, and
// then the best guess is right for all of its prompts: to take each for dearer charges a
// prompt of 16,000 tokens with a thousand that nobody computes. That it saves nothing is
// soon seen, how much it saves takes longer.
//
// Prompts that all have as much cached tell base and b apart by chance alone: a base far
// below nothing, and what that is too little is put down to b. No token comes before its
// prompt, so then there is none. That b may be nothing is still asked of the fit with one.
func (t *worth) share() (share, least float64, ok bool) {
	if s := &t.said; !s.asked {
		s.asked = true
		s.share, s.least, s.ok = t.fitted()
	}
	return t.said.share, t.said.least, t.said.ok
}

// fitted is share by the sums. It takes two fits, and each look at a target asks twice.
func (t *worth) fitted() (share, least float64, ok bool) {
	if t.n < leastFirsts {
		return 0, 0, false
	}
	free, ok := t.fit(0)
	f := free
	if ok && f.base < 0 {
		f, ok = t.fit(1)
	}
	if !ok || !(f.a > 0) {
		return 0, 0, false
	}
	off := f.off / f.a
	share = 1 - f.b/f.a
	switch {
	case share+2*off < saving:
		return 0, 0, true
	case !(off < sure):
		return 0, 0, false
	}
	if share+2*max(off, free.off/f.a) >= 1 {
		share = 1
	}
	if least = share; share-3*off < saving {
		least = max(share-3*off, 0)
	}
	return share, least, true
}

// fit is a fit to what was seen, and off the standard error of b.
type fit struct{ base, a, b, off float64 }

// fit fits base, a and b, those of them from the first on; the others are 0. ok is false
// where that means nothing.
func (t *worth) fit(first int) (f fit, ok bool) {
	m := t.m
	for i := range first {
		m[i] = [3]float64{}
		for j := range m {
			m[j][i] = 0
		}
		m[i][i] = 1
	}
	inverse, ok := invert(m)
	if !ok {
		return f, false
	}
	var theta [3]float64
	rest := t.y
	for i := first; i < len(theta); i++ {
		for j := first; j < len(theta); j++ {
			theta[i] += inverse[i][j] * t.v[j]
		}
	}
	for i := range theta {
		rest -= theta[i] * t.v[i]
	}
	off := math.Sqrt(max(rest, 0) / max(t.n-float64(len(theta)-first), 1) * inverse[2][2])
	return fit{base: theta[0], a: theta[1], b: theta[2], off: off}, true
}

// invert inverts m, which is symmetric; ok is false where that means nothing.
func invert(m [3][3]float64) (r [3][3]float64, ok bool) {
	minor := func(i, j int) float64 {
		a, b, c, d := (i+1)%3, (i+2)%3, (j+1)%3, (j+2)%3
		return m[a][c]*m[b][d] - m[a][d]*m[b][c]
	}
	determinant := m[0][0]*minor(0, 0) + m[0][1]*minor(0, 1) + m[0][2]*minor(0, 2)
	if !(determinant > 1e-9*m[0][0]*m[1][1]*m[2][2]) {
		return r, false
	}
	for i := range r {
		for j := range r {
			r[j][i] = minor(i, j) / determinant
		}
	}
	return r, true
}
