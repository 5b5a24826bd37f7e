package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
)

// HTML writes a page that needs nothing else: tables, and plots over the level.
func (a *Answer) HTML(out io.Writer) error {
	p := page{}
	p.put(pageHead, a.Model, a.Model)
	p.put("<p>%s, %s: prompts of %s tokens, answers of %s at most, %s, %s times each.</p>\n",
		a.URL, a.Started.Format("2006-01-02 15:04 UTC"), a.Prompt, a.Output, a.Length(), strconv.Itoa(a.Repeats))
	if a.Knee > 0 {
		p.put("<p>Beyond n = %s more users bring little more in all.</p>\n", short(a.Knee))
	}
	if a.AtFloor > 0 {
		least := ""
		if a.AtFloorLeast {
			least = " at least"
		}
		p.put("<p>At %s tokens/s each: %s users%s.</p>\n", short(a.Floor), short(a.AtFloor), least)
	}
	p.plots(a)
	p.table("Speed", []string{"n", "tokens/s each", "±", "tokens/s all", "requests/s", "goodput/s", "streams", "shed", "failed"}, a.Points, func(x *Point) []string {
		ci := ""
		if x.TPSCI != 0 {
			ci = short(x.TPSCI)
		}
		return []string{
			short(x.TPS), ci, short(x.AggregateTPS), short(x.Requests), short(x.Goodput),
			strconv.Itoa(x.Streams), strconv.Itoa(x.Shed), strconv.Itoa(x.Failed),
		}
	})
	p.table("Latency (TTFT and E2E in s, TPOT in ms)", []string{"n", "TTFT p50", "p90", "p99", "TPOT p50", "p90", "p99", "E2E p50", "p90", "p99"}, a.Points, func(x *Point) []string {
		return []string{
			short(x.TTFTs.P50), short(x.TTFTs.P90), short(x.TTFTs.P99), short(1e3 * x.TPOT.P50), short(1e3 * x.TPOT.P90), short(1e3 * x.TPOT.P99),
			short(x.E2E.P50), short(x.E2E.P90), short(x.E2E.P99),
		}
	})
	for _, l := range a.Failed {
		p.put("<p>%s was not measured: %s</p>\n", l.String(), l.Error)
	}
	p.put("</body></html>\n")
	_, err := io.WriteString(out, p.String())
	return err
}

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><title>%s: pacer bench</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}
figure{margin:1.5rem 0}svg{max-width:100%%;height:auto}
</style></head><body>
<h1>%s</h1>
`

// page is one that is written. A library for templates would look methods up by their
// names, and the program would keep every exported method of all that it has: 12 MB.
type page struct{ strings.Builder }

// put writes markup, with each %s in it one of texts, escaped.
func (p *page) put(markup string, texts ...string) {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = html.EscapeString(text)
	}
	fmt.Fprintf(p, markup, all...)
}

// table writes a row for each point, which begins with its label.
func (p *page) table(caption string, heads []string, points []Point, cells func(*Point) []string) {
	p.put("<table><caption>%s</caption><tr>", caption)
	for _, head := range heads {
		p.put(`<th scope="col">%s</th>`, head)
	}
	p.put("</tr>\n")
	for i := range points {
		p.put(`<tr><th scope="row">%s</th>`, label(&points[i]))
		for _, cell := range cells(&points[i]) {
			p.put("<td>%s</td>", cell)
		}
		p.put("</tr>\n")
	}
	p.put("</table>\n")
}

// short is x in four digits.
func short(x float64) string { return fmt.Sprintf("%.4g", x) }

// plots writes those of a.
func (p *page) plots(a *Answer) {
	x := make([]float64, len(a.Points))
	each, all := make([]float64, len(x)), make([]float64, len(x))
	var p50, p90, p99 []float64
	for i, at := range a.Points {
		if x[i] = float64(at.N); at.Rate > 0 {
			x[i] = at.Rate
		}
		each[i], all[i] = at.TPS, at.AggregateTPS
		p50, p90, p99 = append(p50, at.TTFTs.P50), append(p90, at.TTFTs.P90), append(p99, at.TTFTs.P99)
	}
	p.plot("Tokens/s of one user", x, []line{{"tokens/s", each}}, a.Floor)
	p.plot("Tokens/s of all users", x, []line{{"tokens/s", all}}, 0)
	p.plot("Time to the first token, s", x, []line{{"p50", p50}, {"p90", p90}, {"p99", p99}}, a.SLO.TTFT.Seconds())
}

type line struct {
	name string
	y    []float64
}

// plot draws lines over x, in log x, upwards from 0; bar is a level across, 0 = none.
func (p *page) plot(title string, x []float64, lines []line, bar float64) {
	const width, height, left, bottom, top = 760.0, 260.0, 60.0, 30.0, 30.0
	most := bar
	for _, l := range lines {
		for _, y := range l.y {
			most = max(most, y)
		}
	}
	if most <= 0 {
		most = 1
	}
	first, last := math.Log(x[0]), math.Log(x[len(x)-1])
	atX := func(v float64) float64 {
		if last == first {
			return left + (width-left)/2
		}
		return left + (width-left-20)*(math.Log(v)-first)/(last-first)
	}
	atY := func(v float64) float64 { return height - bottom - (height-bottom-top)*v/most }
	p.put("<figure>")
	fmt.Fprintf(p, `<svg viewBox="0 0 %g %g" width="%g" role="img" aria-label="%s"><text x="0" y="16" font-weight="600">%s</text>`, width, height, width, html.EscapeString(title), html.EscapeString(title))
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(p, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%g" y="%.1f" font-size="11" text-anchor="end">%.3g</text>`, left, width, atY(v), atY(v), left-6, atY(v)+4, v)
	}
	for _, v := range x {
		fmt.Fprintf(p, `<text x="%.1f" y="%g" font-size="11" text-anchor="middle">%.3g</text>`, atX(v), height-10, v)
	}
	if bar > 0 {
		fmt.Fprintf(p, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#b00" stroke-dasharray="4 4"/>`, left, width, atY(bar), atY(bar))
	}
	for i, l := range lines {
		color := []string{"#0b5cad", "#b35900", "#6a3d9a"}[i%3]
		var points []string
		for j, y := range l.y {
			points = append(points, fmt.Sprintf("%.1f,%.1f", atX(x[j]), atY(y)))
			fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, atX(x[j]), atY(y), color)
		}
		fmt.Fprintf(p, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), color)
		if len(lines) > 1 {
			fmt.Fprintf(p, `<text x="%g" y="16" fill="%s" text-anchor="end">%s</text>`, width-40*float64(len(lines)-1-i), color, html.EscapeString(l.name))
		}
	}
	p.put("</svg></figure>\n")
}
