package main

import (
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
)

// plot is one curve on a grid of characters: n to the right in log n, since
// levels are met in octaves, tokens/s upwards from 0.
type plot struct {
	target *curvesTarget
	width  int // columns of the grid
	top    int // n at the right edge

	step  float64 // tokens/s between two labelled rows
	ticks int     // labelled rows above 0
	cells [][]rune
}

const (
	rowsPerTick = 3
	axisWidth   = 8 // label and line of the y axis

	bound, extrapolated, curve, bin, floorLine = '░', '·', '•', 'o', '┄'
)

func plotOf(t *curvesTarget) *plot {
	p := &plot{target: t, top: 2}
	highest := 1e-9
	for _, l := range t.line {
		p.top = max(p.top, l.N)
		if l.TPS.known() {
			highest = max(highest, float64(l.TPS))
		}
	}
	for _, b := range t.Points {
		if v := measured(b); v.known() && b.N <= p.top {
			highest = max(highest, float64(v))
		}
	}
	for _, f := range t.Floors {
		if float64(f.MinTPS) <= 2*highest {
			highest = max(highest, float64(f.MinTPS))
		}
	}
	p.step = nice(highest / 5)
	p.ticks = max(int(math.Ceil(highest/p.step-1e-9)), 1)
	return p
}

// nice rounds up to 1, 2, 2.5 or 5 times a power of ten.
func nice(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 2.5, 5} {
		if f*power >= x*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// measured is what a bin saw itself, not smoothed; NaN when it saw nothing.
func measured(p curvesPoint) figure {
	if !(p.StreamSeconds > 0) || !(p.Tokens > 0) {
		return figure(math.NaN())
	}
	return p.Tokens / p.StreamSeconds
}

// draw writes the plot in at most width columns, as far as 20 of them are left
// for the grid.
func (p *plot) draw(w io.Writer, width int) {
	labels := p.floorLabels()
	right := 2 // " n" behind the axis
	for _, l := range labels {
		right = max(right, len([]rune(l))+1)
	}
	p.width = min(max(width-axisWidth-right, 20), 120)
	p.cells = make([][]rune, p.ticks*rowsPerTick+1)
	for i := range p.cells {
		p.cells[i] = []rune(strings.Repeat(" ", p.width))
	}
	p.fill()
	for row := len(p.cells) - 1; row >= 1; row-- { // row 0 is the axis
		label := ""
		if row%rowsPerTick == 0 {
			label = strconv.FormatFloat(float64(row/rowsPerTick)*p.step, 'g', 6, 64)
		}
		line := fmt.Sprintf("%*s │%s", axisWidth-2, label, string(p.cells[row]))
		if l := labels[row]; l != "" {
			line += " " + l
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	p.axis(w)
	for _, line := range wrap(p.legend(), max(width-2, 30)) {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// row returns the row of a speed; ok is false outside the grid.
func (p *plot) row(tps float64) (row int, ok bool) {
	if !(tps > 0) {
		return 0, false
	}
	row = int(math.Round(tps / p.step * rowsPerTick))
	return max(row, 1), row < len(p.cells)
}

// column returns the column of a level.
func (p *plot) column(n float64) int {
	return int(math.Round(math.Log(n) / math.Log(float64(p.top)) * float64(p.width-1)))
}

// fill puts in the floors, the bound, the curve and the bins; later ones cover
// earlier ones.
func (p *plot) fill() {
	for row := range p.floorLabels() {
		for c := range p.width {
			p.cells[row][c] = floorLine
		}
	}
	at := func(value func(curvesPoint) figure, c int) (float64, float64) {
		n := math.Pow(float64(p.top), float64(c)/float64(p.width-1))
		return n, p.at(value, n)
	}
	for c := range p.width {
		if _, low := at(func(l curvesPoint) figure { return l.Low }, c); low > 0 {
			if row, ok := p.row(low); ok {
				p.cells[row][c] = bound
			}
		}
	}
	for c := range p.width {
		n, tps := at(func(l curvesPoint) figure { return l.TPS }, c)
		row, ok := p.row(tps)
		if !ok {
			continue
		}
		glyph := curve
		if s := p.target.Support; s == nil || n < float64(s[0])-0.5 || n > float64(s[1])+0.5 {
			glyph = extrapolated
		}
		p.cells[row][c] = glyph
	}
	for _, b := range p.target.Points {
		if row, ok := p.row(float64(measured(b))); ok && b.N <= p.top {
			p.cells[row][p.column(float64(b.N))] = bin
		}
	}
}

// at interpolates the line between its levels; NaN where it is unknown.
func (p *plot) at(value func(curvesPoint) figure, n float64) float64 {
	line := p.target.line
	i := sort.Search(len(line), func(i int) bool { return float64(line[i].N) >= n-1e-9 })
	if i == len(line) {
		return math.NaN()
	}
	right := float64(value(line[i]))
	if i == 0 || float64(line[i].N) <= n+1e-9 {
		return right
	}
	left := float64(value(line[i-1]))
	share := (n - float64(line[i-1].N)) / float64(line[i].N-line[i-1].N)
	if left == 0 || right == 0 {
		return 0 // the bound has ended
	}
	return left + share*(right-left)
}

// floorLabels names the routes whose floor lies in a row.
func (p *plot) floorLabels() map[int]string {
	labels := map[int]string{}
	for _, f := range p.target.Floors {
		row := max(int(math.Round(float64(f.MinTPS)/p.step*rowsPerTick)), 1)
		if row > p.ticks*rowsPerTick {
			continue
		}
		text := fmt.Sprintf("%s %.4g", shortened(harmless(f.Route), 14), float64(f.MinTPS))
		switch {
		case labels[row] == "":
			labels[row] = text
		case !strings.HasSuffix(labels[row], " …"):
			labels[row] += " …" // the sentences below name them all
		}
	}
	return labels
}

func shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// axis draws the x axis, thick over the support, its levels in powers of two,
// and the live n.
func (p *plot) axis(w io.Writer) {
	line := []rune(strings.Repeat("─", p.width))
	if s := p.target.Support; s != nil {
		for c := p.column(float64(s[0])); c <= min(p.column(float64(s[1])), p.width-1); c++ {
			line[c] = '━'
		}
	}
	numbers := []rune(strings.Repeat(" ", p.width+6))
	free := 0
	for n := 1; n <= p.top; n *= 2 {
		text := []rune(strconv.Itoa(n))
		c := max(p.column(float64(n))-(len(text)-1)/2, 0)
		if c < free {
			continue
		}
		copy(numbers[c:], text)
		free = c + len(text) + 1
	}
	fmt.Fprintf(w, "%*s └%s n\n", axisWidth-2, "0", string(line))
	pad := strings.Repeat(" ", axisWidth)
	fmt.Fprintln(w, strings.TrimRight(pad+string(numbers), " "))
	if f := p.target.InFlight; f != nil && f.N > 0 {
		c := p.column(float64(min(f.N, p.top)))
		text := fmt.Sprintf("▲ now %d", f.N)
		if c+len([]rune(text)) > p.width {
			text = fmt.Sprintf("now %d ▲", f.N)
			c = max(c-len([]rune(text))+1, 0)
		}
		fmt.Fprintln(w, pad+strings.Repeat(" ", c)+text)
	}
}

// legend explains the characters that are there.
func (p *plot) legend() string {
	words := []string{}
	there := func(r rune) bool {
		for _, row := range p.cells {
			for _, c := range row {
				if c == r {
					return true
				}
			}
		}
		return false
	}
	for _, l := range []struct {
		glyph rune
		word  string
	}{
		{curve, "curve"}, {extrapolated, "extrapolated"}, {bin, "measured in one bin at its own prompt load"}, {bound, "bound"}, {floorLine, "floor"},
	} {
		if there(l.glyph) {
			words = append(words, string(l.glyph)+" "+l.word)
		}
	}
	if p.target.Support != nil {
		words = append(words, "━ support")
	}
	return strings.Join(words, ", ")
}
