package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Curve is a curve to be drawn: n to the right in log n, since levels are met in
// octaves, tokens/s upwards from 0.
type Curve struct {
	Line    []Level // rising; speeds are NaN where they are unknown
	Bins    []Bin
	Floors  []Floor
	Support *[2]int // nil = none
	Now     int     // n that runs there; 0 = nobody, or not known
}

// Level is the curve at n.
type Level struct {
	N        int
	TPS, Low float64
}

// Bin is what was measured at n, not smoothed.
type Bin struct {
	N   int
	TPS float64
}

// Floor is what a route promises.
type Floor struct {
	Route  string
	MinTPS float64
}

// curvePlot is a Curve on a grid of characters.
type curvePlot struct {
	*Curve
	width int // columns of the grid
	top   int // n at the right edge

	step  float64 // tokens/s between two labelled rows
	ticks int     // labelled rows above 0
	cells [][]rune
}

const (
	rowsPerTick = 3
	axisWidth   = 8 // label and line of the y axis

	bound, extrapolated, curve, bin, floorLine = '░', '·', '•', 'o', '┄'
)

// Plot draws the curve in at most width columns, as far as 20 of them are left
// for the grid.
func (c *Curve) Plot(w io.Writer, width int) { plotOf(c).draw(w, width) }

func plotOf(c *Curve) *curvePlot {
	p := &curvePlot{Curve: c, top: 2}
	highest := 1e-9
	for _, l := range c.Line {
		p.top = max(p.top, l.N)
		if known(l.TPS) {
			highest = max(highest, l.TPS)
		}
	}
	for _, b := range c.Bins {
		if b.N <= p.top {
			highest = max(highest, b.TPS)
		}
	}
	for _, f := range c.Floors {
		if f.MinTPS <= 2*highest {
			highest = max(highest, f.MinTPS)
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

func (p *curvePlot) draw(w io.Writer, width int) {
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
	for _, line := range Wrap(p.legend(), max(width-2, 30)) {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// row returns the row of a speed; ok is false outside the grid.
func (p *curvePlot) row(tps float64) (row int, ok bool) {
	if !(tps > 0) {
		return 0, false
	}
	row = int(math.Round(tps / p.step * rowsPerTick))
	return max(row, 1), row < len(p.cells)
}

// column returns the column of a level.
func (p *curvePlot) column(n float64) int {
	return int(math.Round(math.Log(n) / math.Log(float64(p.top)) * float64(p.width-1)))
}

// fill puts in the floors, the bound, the curve and the bins; later ones cover
// earlier ones.
func (p *curvePlot) fill() {
	for row := range p.floorLabels() {
		for c := range p.width {
			p.cells[row][c] = floorLine
		}
	}
	at := func(value func(Level) float64, c int) (float64, float64) {
		n := math.Pow(float64(p.top), float64(c)/float64(p.width-1))
		return n, p.at(value, n)
	}
	for c := range p.width {
		if _, low := at(func(l Level) float64 { return l.Low }, c); low > 0 {
			if row, ok := p.row(low); ok {
				p.cells[row][c] = bound
			}
		}
	}
	for c := range p.width {
		n, tps := at(func(l Level) float64 { return l.TPS }, c)
		row, ok := p.row(tps)
		if !ok {
			continue
		}
		glyph := curve
		if s := p.Support; s == nil || n < float64(s[0])-0.5 || n > float64(s[1])+0.5 {
			glyph = extrapolated
		}
		p.cells[row][c] = glyph
	}
	for _, b := range p.Bins {
		if row, ok := p.row(b.TPS); ok && b.N <= p.top {
			p.cells[row][p.column(float64(b.N))] = bin
		}
	}
}

// at interpolates the line between its levels; NaN where it is unknown.
func (p *curvePlot) at(value func(Level) float64, n float64) float64 {
	line := p.Line
	i := sort.Search(len(line), func(i int) bool { return float64(line[i].N) >= n-1e-9 })
	if i == len(line) {
		return math.NaN()
	}
	right := value(line[i])
	if i == 0 || float64(line[i].N) <= n+1e-9 {
		return right
	}
	left := value(line[i-1])
	share := (n - float64(line[i-1].N)) / float64(line[i].N-line[i-1].N)
	if left == 0 || right == 0 {
		return 0 // the bound has ended
	}
	return left + share*(right-left)
}

// floorLabels names the routes whose floor lies in a row.
func (p *curvePlot) floorLabels() map[int]string {
	labels := map[int]string{}
	for _, f := range p.Floors {
		row := max(int(math.Round(f.MinTPS/p.step*rowsPerTick)), 1)
		if row > p.ticks*rowsPerTick {
			continue
		}
		text := fmt.Sprintf("%s %.4g", Shortened(Harmless(f.Route), 14), f.MinTPS)
		switch {
		case labels[row] == "":
			labels[row] = text
		case !strings.HasSuffix(labels[row], " …"):
			labels[row] += " …" // the sentences below name them all
		}
	}
	return labels
}

// axis draws the x axis, thick over the support, its levels in powers of two,
// and the live n.
func (p *curvePlot) axis(w io.Writer) {
	line := []rune(strings.Repeat("─", p.width))
	if s := p.Support; s != nil {
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
	if p.Now > 0 {
		c := p.column(float64(min(p.Now, p.top)))
		text := fmt.Sprintf("▲ now %d", p.Now)
		if c+len([]rune(text)) > p.width {
			text = fmt.Sprintf("now %d ▲", p.Now)
			c = max(c-len([]rune(text))+1, 0)
		}
		fmt.Fprintln(w, pad+strings.Repeat(" ", c)+text)
	}
}

// legend explains the characters that are there.
func (p *curvePlot) legend() string {
	words := []string{}
	there := func(r rune) bool {
		return slices.ContainsFunc(p.cells, func(row []rune) bool { return slices.Contains(row, r) })
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
	if p.Support != nil {
		words = append(words, "━ support")
	}
	return strings.Join(words, ", ")
}
