package bench

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// HTML writes a page that needs nothing else: tables, and plots over the level.
func (a *Answer) HTML(out io.Writer) error {
	x := make([]float64, len(a.Points))
	each, all := make([]float64, len(x)), make([]float64, len(x))
	var p50, p90, p99 []float64
	for i, p := range a.Points {
		if x[i] = float64(p.N); p.Rate > 0 {
			x[i] = p.Rate
		}
		each[i], all[i] = p.TPS, p.AggregateTPS
		p50, p90, p99 = append(p50, p.TTFTs.P50), append(p90, p.TTFTs.P90), append(p99, p.TTFTs.P99)
	}
	return page.Execute(out, struct {
		*Answer
		Plots []template.HTML
	}{a, []template.HTML{
		plot("Tokens/s of one user", x, []line{{"tokens/s", each}}, a.Floor),
		plot("Tokens/s of all users", x, []line{{"tokens/s", all}}, 0),
		plot("Time to the first token, s", x, []line{{"p50", p50}, {"p90", p90}, {"p99", p99}}, a.SLO.TTFT.Seconds()),
	}})
}

var page = template.Must(template.New("bench").Funcs(template.FuncMap{
	"g":     func(x float64) string { return fmt.Sprintf("%.4g", x) },
	"ms":    func(x float64) string { return fmt.Sprintf("%.4g", 1e3*x) },
	"label": func(p Point) string { return label(&p) },
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><title>{{.Model}}: pacer bench</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}
figure{margin:1.5rem 0}svg{max-width:100%;height:auto}
</style></head><body>
<h1>{{.Model}}</h1>
<p>{{.URL}}, {{.Started.Format "2006-01-02 15:04 UTC"}}: prompts of {{.Prompt}} tokens, answers of {{.Output}} at most, {{.Length}}, {{.Repeats}} times each.</p>
{{if .Knee}}<p>Beyond n = {{g .Knee}} more users bring little more in all.</p>{{end}}
{{if .AtFloor}}<p>At {{g .Floor}} tokens/s each: {{g .AtFloor}} users{{if .AtFloorLeast}} at least{{end}}.</p>{{end}}
{{range .Plots}}<figure>{{.}}</figure>{{end}}
<table><caption>Speed</caption><tr><th scope="col">n</th><th scope="col">tokens/s each</th><th scope="col">±</th><th scope="col">tokens/s all</th><th scope="col">requests/s</th><th scope="col">goodput/s</th><th scope="col">streams</th><th scope="col">shed</th><th scope="col">failed</th></tr>
{{range .Points}}<tr><th scope="row">{{label .}}</th><td>{{g .TPS}}</td><td>{{if .TPSCI}}{{g .TPSCI}}{{end}}</td><td>{{g .AggregateTPS}}</td><td>{{g .Requests}}</td><td>{{g .Goodput}}</td><td>{{.Streams}}</td><td>{{.Shed}}</td><td>{{.Failed}}</td></tr>
{{end}}</table>
<table><caption>Latency (TTFT and E2E in s, TPOT in ms)</caption><tr><th scope="col">n</th><th scope="col">TTFT p50</th><th scope="col">p90</th><th scope="col">p99</th><th scope="col">TPOT p50</th><th scope="col">p90</th><th scope="col">p99</th><th scope="col">E2E p50</th><th scope="col">p90</th><th scope="col">p99</th></tr>
{{range .Points}}<tr><th scope="row">{{label .}}</th><td>{{g .TTFTs.P50}}</td><td>{{g .TTFTs.P90}}</td><td>{{g .TTFTs.P99}}</td><td>{{ms .TPOT.P50}}</td><td>{{ms .TPOT.P90}}</td><td>{{ms .TPOT.P99}}</td><td>{{g .E2E.P50}}</td><td>{{g .E2E.P90}}</td><td>{{g .E2E.P99}}</td></tr>
{{end}}</table>
{{range .Failed}}<p>{{.}} was not measured: {{.Error}}</p>
{{end}}</body></html>
`))

type line struct {
	name string
	y    []float64
}

// plot draws lines over x, in log x, upwards from 0; bar is a level across, 0 = none.
func plot(title string, x []float64, lines []line, bar float64) template.HTML {
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
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" width="%g" role="img" aria-label="%s"><text x="0" y="16" font-weight="600">%s</text>`, width, height, width, template.HTMLEscapeString(title), template.HTMLEscapeString(title))
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(&b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%g" y="%.1f" font-size="11" text-anchor="end">%.3g</text>`, left, width, atY(v), atY(v), left-6, atY(v)+4, v)
	}
	for _, v := range x {
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" font-size="11" text-anchor="middle">%.3g</text>`, atX(v), height-10, v)
	}
	if bar > 0 {
		fmt.Fprintf(&b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#b00" stroke-dasharray="4 4"/>`, left, width, atY(bar), atY(bar))
	}
	for i, l := range lines {
		color := []string{"#0b5cad", "#b35900", "#6a3d9a"}[i%3]
		var points []string
		for j, y := range l.y {
			points = append(points, fmt.Sprintf("%.1f,%.1f", atX(x[j]), atY(y)))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, atX(x[j]), atY(y), color)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), color)
		if len(lines) > 1 {
			fmt.Fprintf(&b, `<text x="%g" y="16" fill="%s" text-anchor="end">%s</text>`, width-40*float64(len(lines)-1-i), color, template.HTMLEscapeString(l.name))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
