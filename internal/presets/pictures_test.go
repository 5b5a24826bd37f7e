package presets

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// pictured is the curve that docs/UNDERSTAND.md draws, and floored the promise in it.
const (
	pictured = "llama-3.1-70b/h200/vllm"
	floored  = 80.0 // tokens/s
)

// panel is one plot within a picture, in pixels.
type panel struct {
	left, top, width, height float64
	first, last              float64 // users at its edges
	most                     float64 // tokens/s at its upper edge
}

func (p *panel) x(n float64) float64 {
	return p.left + p.width*math.Log(n/p.first)/math.Log(p.last/p.first)
}
func (p *panel) y(v float64) float64 { return p.top + p.height*(1-v/p.most) }

// drawing is an SVG that is read on a light page and on a dark one: it has a ground of
// its own, whose colours follow those of the reader.
type drawing struct{ strings.Builder }

const style = `<style>
.ground{fill:#fff}.text{fill:#1f2328;font:14px system-ui,sans-serif}.small{fill:#59636e;font:12px system-ui,sans-serif}.bold{font-weight:600}
.grid{stroke:#d1d9e0}.each{stroke:#0b5cad;fill:none;stroke-width:2.5}.dot{fill:#0b5cad}.all{stroke:#8a4b00;fill:none;stroke-width:2.5}.alldot{fill:#8a4b00}
.floor{stroke:#b3261e;stroke-width:1.5;stroke-dasharray:6 4}.floortext{fill:#b3261e}.below{fill:#b3261e;fill-opacity:.08}.room{fill:#1a7f37;fill-opacity:.08}
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}.text{fill:#f0f6fc}.small{fill:#9198a1}.grid{stroke:#3d444d}
.each{stroke:#6cb6ff}.dot{fill:#6cb6ff}.all{stroke:#f0a868}.alldot{fill:#f0a868}.floor{stroke:#ff8a80}.floortext{fill:#ff8a80}.below{fill:#ff8a80;fill-opacity:.12}.room{fill:#57d27a;fill-opacity:.12}}
</style>`

func (d *drawing) begin(width, height float64, title, what string) {
	fmt.Fprintf(d, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-labelledby=\"t d\">\n<title id=\"t\">%s</title><desc id=\"d\">%s</desc>\n%s\n<rect class=\"ground\" width=\"%g\" height=\"%g\"/>\n",
		width, height, width, height, html.EscapeString(title), html.EscapeString(what), style, width, height)
}

// text writes text at x, y, which is its start, middle or end.
func (d *drawing) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(d, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, anchor, x, y, html.EscapeString(text))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2)
}

// axes draws what is behind the curve of p: a line each step tokens/s, and the users at
// each point.
func (d *drawing) axes(p *panel, title string, step float64, points []Point) {
	d.text("text bold", "start", p.left, p.top-14, title)
	for v := 0.0; v <= p.most; v += step {
		d.line("grid", p.left, p.y(v), p.left+p.width, p.y(v))
		d.text("small", "end", p.left-8, p.y(v)+4, fmt.Sprintf("%g", v))
	}
	for _, q := range points {
		d.text("small", "middle", p.x(float64(q.N)), p.top+p.height+18, fmt.Sprint(q.N))
	}
	d.text("small", "middle", p.left+p.width/2, p.top+p.height+38, "users at once (n)")
}

func (d *drawing) curve(p *panel, class, dot string, points []Point) {
	var line []string
	for _, q := range points {
		line = append(line, fmt.Sprintf("%.1f,%.1f", p.x(float64(q.N)), p.y(q.TPS)))
	}
	fmt.Fprintf(d, "<polyline class=\"%s\" points=\"%s\"/>\n", class, strings.Join(line, " "))
	for _, q := range points {
		fmt.Fprintf(d, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", dot, p.x(float64(q.N)), p.y(q.TPS))
	}
}

// most is how many users still get floored, between two points in log n.
func mostUsers(points []Point) float64 {
	for i, q := range points[1:] {
		if b := points[i]; q.TPS < floored {
			share := (b.TPS - floored) / (b.TPS - q.TPS)
			return math.Floor(math.Exp(math.Log(float64(b.N))*(1-share) + math.Log(float64(q.N))*share))
		}
	}
	return float64(points[len(points)-1].N)
}

// pictures are drawn from the published points of pictured.
func pictures(points []Point) map[string]string {
	users := mostUsers(points)
	all := make([]Point, len(points))
	for i, q := range points {
		all[i] = Point{q.N, q.TPS * float64(q.N)}
	}
	first, last := float64(points[0].N), float64(points[len(points)-1].N)
	upTo := func(points []Point, step float64) float64 {
		most := 0.0
		for _, q := range points {
			most = max(most, q.TPS)
		}
		return math.Ceil(most/step) * step
	}

	var curve drawing
	p := panel{70, 60, 620, 270, first, last, upTo(points, 20)}
	curve.begin(720, 390, "A curve", fmt.Sprintf("Tokens per second of one user fall from %.0f at n = %g to %.0f at n = %g; the floor of %g is kept up to n = %g.", points[0].TPS, first, points[len(points)-1].TPS, last, floored, users))
	fmt.Fprintf(&curve, "<rect class=\"room\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", p.left, p.top, p.x(users)-p.left, p.height)
	fmt.Fprintf(&curve, "<rect class=\"below\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", p.x(users), p.top, p.left+p.width-p.x(users), p.height)
	curve.axes(&p, "Tokens/s of ONE user", 20, points)
	curve.line("floor", p.left, p.y(floored), p.left+p.width, p.y(floored))
	curve.text("text floortext", "start", p.left+8, p.y(floored)-8, fmt.Sprintf("floor: %g tokens/s", floored))
	curve.line("floor", p.x(users), p.top, p.x(users), p.top+p.height)
	curve.text("text", "end", p.x(users)-8, p.top+20, fmt.Sprintf("up to n = %g every user has the floor", users))
	curve.curve(&p, "each", "dot", points)
	curve.WriteString("</svg>\n")

	var why drawing
	why.begin(940, 390, "Why per user", fmt.Sprintf("Left: tokens per second of all users together rise all the way. Right: those of one user fall below the floor of %g beyond n = %g. The same engine at the same time.", floored, users))
	left, right := panel{70, 60, 370, 270, first, last, upTo(all, 1000)}, panel{540, 60, 370, 270, first, last, upTo(points, 20)}
	for _, p := range []panel{left, right} {
		fmt.Fprintf(&why, "<rect class=\"below\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", p.x(users), p.top, p.left+p.width-p.x(users), p.height)
	}
	why.axes(&left, "Tokens/s of ALL users: better and better", 1000, all)
	why.curve(&left, "all", "alldot", all)
	why.axes(&right, "Tokens/s of ONE user: a broken promise", 20, points)
	why.line("floor", right.left, right.y(floored), right.left+right.width, right.y(floored))
	why.text("text floortext", "start", right.left+8, right.y(floored)-8, fmt.Sprintf("floor: %g", floored))
	why.curve(&right, "each", "dot", points)
	for _, p := range []panel{left, right} {
		why.line("floor", p.x(users), p.top, p.x(users), p.top+p.height)
	}
	why.WriteString("</svg>\n")
	return map[string]string{"curve.svg": curve.String(), "per-user.svg": why.String()}
}

// The pictures of docs/UNDERSTAND.md are drawn from what was measured; go test -update
// draws them anew.
func TestThePicturesAreOfTheData(t *testing.T) {
	preset, ok := Lookup(pictured)
	if !ok {
		t.Fatal(pictured)
	}
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "UNDERSTAND.md")))(t)
	for name, want := range pictures(preset.Points) {
		file := filepath.Join("..", "..", "docs", name)
		if golden.Update() {
			must.Do(t, os.WriteFile(file, []byte(want), 0o644))
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("docs/%s is not of the data: go test ./internal/presets -update draws it (%v)", name, err)
		}
		if users := fmt.Sprintf("%g users](%s)", mostUsers(preset.Points), name); !strings.Contains(string(page), users) {
			t.Errorf("docs/UNDERSTAND.md does not show %s as that of %q", name, users)
		}
	}
	// The table of the page is of the same points.
	for _, q := range preset.Points {
		all := math.Round(q.TPS * float64(q.N))
		text := fmt.Sprintf("%g", all)
		if all >= 1000 {
			text = fmt.Sprintf("%d,%03d", int(all)/1000, int(all)%1000)
		}
		if row := fmt.Sprintf("| %d | %.0f | %s |", q.N, q.TPS, text); !strings.Contains(string(page), row) {
			t.Errorf("the table of docs/UNDERSTAND.md has no row %s", row)
		}
	}
}
