package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Sweep is what several policies keep of what is promised, over the load.
type Sweep struct {
	Policies []string // each has a mark of its own
	Runs     []Kept   // by rising factor
	Goal     float64  // share that is wanted
}

// Kept is one run of a sweep.
type Kept struct {
	Policy string
	Factor float64 // on the load
	Share  float64 // NaN = unknown
}

// sweepPlot draws what is kept, upwards, over the factor on the load.
type sweepPlot struct {
	*Sweep
	width       int     // columns of the grid
	bottom      float64 // share at the lowest row
	least, most float64 // factors at the edges
	cells       [][]rune
}

// sweepRows are ten steps of what lies between the bottom and all.
const sweepRows = 10

// sweepMarks are the policies' in the order asked for.
var sweepMarks = []rune("●○▲△■□◆◇+")

// Plot draws the sweep in at most width columns, as far as 20 of them are left
// for the grid.
func (s *Sweep) Plot(w io.Writer, width int) { newSweepPlot(s).draw(w, width) }

func newSweepPlot(s *Sweep) *sweepPlot {
	p := &sweepPlot{Sweep: s, least: s.Runs[0].Factor, most: s.Runs[len(s.Runs)-1].Factor}
	lowest := 1.0
	for _, r := range s.Runs {
		if known(r.Share) {
			lowest = min(lowest, r.Share)
		}
	}
	// Half, nine tenths or 99 % of the height is empty where all is well.
	for _, bottom := range []float64{0.9, 0.5, 0} {
		if p.bottom = bottom; lowest >= bottom {
			break
		}
	}
	return p
}

func (p *sweepPlot) draw(w io.Writer, width int) {
	p.width = min(max(width-axisWidth-len(" load"), 20), 100)
	p.cells = make([][]rune, sweepRows+1)
	for i := range p.cells {
		p.cells[i] = []rune(strings.Repeat(" ", p.width))
	}
	if row := p.row(p.Goal); row >= 0 {
		for c := range p.width {
			p.cells[row][c] = floorLine
		}
	}
	// The first policy is drawn last, over the others.
	for i := len(p.Policies) - 1; i >= 0; i-- {
		p.fill(p.Policies[i], sweepMarks[i%len(sweepMarks)])
	}
	for row := sweepRows; row >= 0; row-- {
		label := ""
		if row%5 == 0 {
			label = strconv.FormatFloat(100*(p.bottom+(1-p.bottom)*float64(row)/sweepRows), 'f', -1, 64) + " %"
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%*s │%s", axisWidth-2, label, string(p.cells[row])), " "))
	}
	fmt.Fprintf(w, "%*s └%s load\n", axisWidth-2, "", strings.Repeat("─", p.width))
	left, right := fmt.Sprintf("×%.3g", p.least), fmt.Sprintf("×%.3g", p.most)
	gap := max(p.width-len([]rune(left))-len([]rune(right)), 1)
	fmt.Fprintf(w, "%s%s%s%s\n", strings.Repeat(" ", axisWidth), left, strings.Repeat(" ", gap), right)
	var legend []string
	for i, policy := range p.Policies {
		legend = append(legend, string(sweepMarks[i%len(sweepMarks)])+" "+policy)
	}
	legend = append(legend, string(floorLine)+" wanted")
	for _, line := range Wrap(strings.Join(legend, ", "), max(width-2, 30)) {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// fill puts a policy in: its marks, and dots between them.
func (p *sweepPlot) fill(policy string, mark rune) {
	last, lastRow := -1, 0.0
	for _, r := range p.Runs {
		if r.Policy != policy || !known(r.Share) {
			continue
		}
		column := int(math.Round((r.Factor - p.least) / (p.most - p.least) * float64(p.width-1)))
		height := p.height(r.Share)
		for c := last + 1; last >= 0 && c < column; c++ {
			at := lastRow + (height-lastRow)*float64(c-last)/float64(column-last)
			if row := int(math.Round(at)); p.cells[row][c] == ' ' || p.cells[row][c] == floorLine {
				p.cells[row][c] = extrapolated
			}
		}
		p.cells[int(math.Round(height))][column] = mark
		last, lastRow = column, height
	}
}

// height is a share in rows from the bottom.
func (p *sweepPlot) height(share float64) float64 {
	return min(max((share-p.bottom)/(1-p.bottom), 0), 1) * sweepRows
}

// row is that of a share, below 0 where it is not on the grid.
func (p *sweepPlot) row(share float64) int {
	if share < p.bottom {
		return -1
	}
	return int(math.Round(p.height(share)))
}
