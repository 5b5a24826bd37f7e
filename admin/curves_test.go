package admin

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// TestPageExploresACurve: what a reader may ask of a curve is drawn, at the right
// places: what is admitted, all streams together, the first token, another prompt load,
// the curve of another backend, and after a drift the curve before it.
func TestPageExploresACurve(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 0, 12)
	c, _, _ := servedPage(t, w, 1400)
	drawn := func(selector string) string {
		var d string
		c.Eval(`[...document.querySelectorAll(".target")].find((el) => el.querySelector("h3").textContent === "h200").querySelector("svg `+selector+`")?.getAttribute("d") ?? ""`, &d)
		return d
	}
	on := func(selector string) string {
		return `[...document.querySelectorAll(".target")].find((el) => el.querySelector("h3").textContent === "h200").querySelector("` + selector + `")`
	}
	states := w.router.Routes(time.Now())
	chat := slices.IndexFunc(states, func(s router.RouteState) bool { return s.Route.Name == "chat" })
	if got, want := c.marks("h200", ".admits"), 12+states[chat].Targets[0].Admits; len(got) != 1 || int(got[0].N) != want {
		t.Errorf("the mark of what is admitted is %+v, want at n = %d", got, want)
	}

	alone := drawn(".curve")
	c.Eval(`document.querySelector("input[name=view][value=together]").click(); 0`, nil)
	c.Until(on("svg .curve") + `.getAttribute("d") !== ` + strconv.Quote(alone))
	bins := c.marks("h200", ".bin")
	for i := 1; i < len(bins); i++ {
		if bins[i].Y >= bins[i-1].Y {
			t.Errorf("all together at n = %g: drawn at %g px, want above n = %g at %g px", bins[i].N, bins[i].Y, bins[i-1].N, bins[i-1].Y)
		}
	}
	c.Eval(`document.querySelector("input[name=view][value=ttft]").click(); 0`, nil)
	c.Until(`!` + on(".plot .empty") + `.hidden || ` + on("svg") + `.querySelectorAll(".bin").length === 0`)
	c.Eval(`document.querySelector("input[name=view][value=stream]").click(); 0`, nil)
	c.Until(on("svg .curve") + `?.getAttribute("d") === ` + strconv.Quote(alone))

	c.Eval(on("details")+`.open = true; 0`, nil)
	c.Until(`!!` + on("input[type=range]"))
	c.Eval(`{ const r = `+on("input[type=range]")+`; r.value = 5; r.dispatchEvent(new Event("input")); } 0`, nil)
	c.Until(`!!` + on("svg .asked") + ` && ` + on("output") + `.textContent === "32.0 prompt tokens per output token"`)
	c.Eval(`{ const s = `+on("details select")+`; s.value = [...s.options].find((o) => o.textContent.startsWith("l40s")).value; s.dispatchEvent(new Event("change")); } 0`, nil)
	c.Until(`!!` + on("svg .other"))
	c.Eval(on("details")+`.open = false; 0`, nil)
	c.Until(`!` + on("svg .asked") + ` && !` + on("svg .other"))

	if drawn(".ghost") != "" {
		t.Error("a curve before the drift is drawn, and there was none")
	}
	teachAt(w.book, time.Now(), h200, 2)
	scale := w.book.Curve(h200).Scale()
	if math.Abs(math.Log(scale)) < 0.1 {
		t.Fatalf("an engine that became half as fast has the scale %g: nothing is tried here", scale)
	}
	c.Until(`!!` + on("svg .ghost"))
	var gap struct{ Ghost, Curve float64 } // where each begins, in pixels from the top
	c.Eval(`(() => { const y = (s) => +/^M[\d.]+ ([\d.]+)/.exec(`+on("svg")+`.querySelector(s).getAttribute("d"))[1]; return { Ghost: y(".ghost"), Curve: y(".curve") }; })()`, &gap)
	if gap.Ghost >= gap.Curve {
		t.Errorf("the curve before the drift begins at %g px, want above the present one at %g px", gap.Ghost, gap.Curve)
	}
	c.quiet()
}
