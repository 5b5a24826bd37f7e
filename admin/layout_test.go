package admin

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/chromium"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// pictures is where the tests leave what the page looked like.
var pictures = filepath.Join("..", "bin", "page")

// Bounds of the page at the largest fleet that it is made for.
const (
	mostNodes = 3000      // of the document, text included
	mostBytes = 150 << 10 // of all files
)

// openFleet opens the page of w, and waits until it says what w holds.
func openFleet(t *testing.T, c *chromium.Browser, w *world, width, height int, dark bool) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(w.handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	c.Open(server.URL+"/", width, height, dark)
	c.Until(live)
	return server
}

const (
	live = `document.getElementById("connection").textContent === "Live" && document.querySelectorAll("#route-table > tbody").length > 0`

	// settled waits until what was written is laid out and drawn.
	settled = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))`

	countNodes = `(() => { const w = document.createTreeWalker(document, NodeFilter.SHOW_ALL); let n = 0; while (w.nextNode()) n++; return n; })()`

	// spilled lists what sticks out of the window, and what is cut within its own
	// box though nothing says that the box scrolls.
	spilled = `(() => {
		const out = [];
		if (document.documentElement.scrollWidth > innerWidth) out.push("the page is " + document.documentElement.scrollWidth + " px wide");
		for (const el of document.querySelectorAll("body *")) {
			const box = el.getBoundingClientRect(), style = getComputedStyle(el);
			if (!box.width || el.closest("svg, .away, nav, .scroll")) continue;
			const name = el.tagName + "." + (el.getAttribute("class") ?? "") + ": " + el.textContent.slice(0, 60);
			if (box.right > innerWidth + 1 || box.left < -1 && !el.matches(".skip")) out.push(name + " reaches to " + box.right);
			if (el.children.length === 0 && el.scrollWidth > el.clientWidth + 1 && style.overflow === "hidden") out.push(name + " is cut");
			if (el.matches("td, th") && el.scrollWidth > el.clientWidth + 1) out.push(name + " runs over its cell by " + (el.scrollWidth - el.clientWidth));
		}
		return out.slice(0, 12);
	})()`
)

// TestPageAtEveryWidth: on a phone, a laptop and a wall, by day and by night, the
// largest fleet fits its window, keeps to its bound of nodes, and has nothing
// that axe-core objects to.
func TestPageAtEveryWidth(t *testing.T) {
	w := newFleet(t, true)
	c := chromium.Start(t)
	for _, dark := range []bool{false, true} {
		scheme := map[bool]string{false: "light", true: "dark"}[dark]
		for _, size := range [][2]int{{390, 844}, {1280, 900}, {3840, 2160}} {
			name := fmt.Sprintf("%s at %d px", scheme, size[0])
			openFleet(t, c, w.world, size[0], size[1], dark)
			c.Eval(settled, nil)
			var nodes int
			var out []string
			c.Eval(countNodes, &nodes)
			c.Eval(spilled, &out)
			if nodes > mostNodes {
				t.Errorf("%s: %d nodes, want at most %d", name, nodes, mostNodes)
			}
			for _, s := range out {
				t.Errorf("%s: %s", name, s)
			}
			c.Shoot(filepath.Join(pictures, fmt.Sprintf("fleet-%s-%d.png", scheme, size[0])), false)
			var paint float64
			c.Eval(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint)
			t.Logf("%s: %d nodes, first paint after %.0f ms", name, nodes, paint)
		}
	}
	for _, complaint := range c.Complaints() {
		t.Errorf("the browser says: %s", complaint)
	}
}

// TestPageKeepsNobodyOut asks axe-core, in both schemes and at three widths, with
// a row open.
func TestPageKeepsNobodyOut(t *testing.T) {
	w := newFleet(t, true)
	c := chromium.Start(t)
	for _, dark := range []bool{false, true} {
		for _, width := range []int{390, 1280, 3840} {
			if racetest.On && (!dark || width != 390) {
				continue // six looks take a minute beside the race detector; make numbers takes them all
			}
			openFleet(t, c, w.world, width, 1000, dark)
			c.Until(`document.querySelector("#route-table .open") && document.querySelector(".card details")`) // not of one frame on a busy machine
			c.Eval(`document.querySelector("#route-table .open").click(); document.querySelector(".card details").open = true; scrollTo(0, 1e6); 0`, nil)
			c.Until(`document.querySelector("#detail h3") && document.querySelectorAll("#decision-table > tbody").length > 0`)
			c.Eval(`document.querySelector("#decision-table .open").click(); 0`, nil)
			c.Eval(settled, nil)
			for _, b := range c.Barriers() {
				t.Errorf("dark %t, %d px: %s", dark, width, b)
			}
		}
	}
}

// TestPageAsksNobodyElse: everything that the page loads comes from the admin
// port, and all of it together is small.
func TestPageAsksNobodyElse(t *testing.T) {
	w := newFleet(t, true)
	c := chromium.Start(t)
	server := openFleet(t, c, w.world, 1280, 900, false)
	c.Eval(`scrollTo(0, 1e6); 0`, nil)
	c.Until(`document.querySelectorAll("#decision-table > tbody").length > 0`)
	own := must.Get(url.Parse(server.URL))(t)
	asked := c.Asked()
	if len(asked) < 15 {
		t.Errorf("the page asked for %d addresses, want its files and the API: %v", len(asked), asked)
	}
	bytes := 0
	for _, a := range asked {
		u, err := url.Parse(a)
		if err != nil || u.Host != own.Host {
			t.Errorf("the page asked for %s", a)
			continue
		}
		if !strings.HasPrefix(u.Path, "/api/") {
			bytes += w.get(u.Path).Body.Len()
		}
	}
	if bytes > mostBytes {
		t.Errorf("the page is %d bytes, want at most %d", bytes, mostBytes)
	}
	t.Logf("%d bytes in %d requests", bytes, len(asked))
}

// TestPageIsSteppedThroughByKeys: / goes to the filter, j and k from row to row,
// Enter opens one, Escape closes it.
func TestPageIsSteppedThroughByKeys(t *testing.T) {
	w := newFleet(t, true)
	c := chromium.Start(t)
	openFleet(t, c, w.world, 1280, 900, false)
	press := func(keys ...string) {
		for _, key := range keys {
			c.Press(key)
		}
	}
	press("/")
	c.Until(`document.activeElement.id === "filter"`)
	c.Type("team-1")
	c.Until(`document.querySelectorAll("#route-table > tbody").length === 10`)
	press("Enter")
	c.Until(`document.activeElement.matches("#route-table > tbody:nth-of-type(1) .open")`)
	press("j", "j", "k")
	c.Until(`document.activeElement.matches("#route-table > tbody:nth-of-type(2) .open")`)
	press("Enter")
	c.Until(`document.activeElement.getAttribute("aria-expanded") === "true" && document.getElementById("detail")`)
	press("Escape")
	c.Until(`!document.getElementById("detail")`)
	press("/", "Escape")
	c.Until(`document.querySelectorAll("#route-table > tbody").length === 30 && document.getElementById("filter").value === ""`)
}

// TestPageChangesOnlyWhatChanged: an event in which one route is another touches
// only that row, whatever the size of the fleet.
func TestPageChangesOnlyWhatChanged(t *testing.T) {
	w := newFleet(t, false)
	c := chromium.Start(t)
	openFleet(t, c, w.world, 1280, 900, false)
	c.Eval(settled, nil)
	c.Eval(`window.touched = new Set(); new MutationObserver((all) => {
		for (const m of all) { const row = (m.target.nodeType === 1 ? m.target : m.target.parentElement)?.closest("tbody"); if (row) touched.add(row.id); }
	}).observe(document.getElementById("route-table"), { subtree: true, childList: true, characterData: true, attributes: true }); 0`, nil)
	route := w.router.Routes(time.Now())[4].Route.Name
	w.miss(route)
	c.Until(`[...touched].some((id) => id === "route-" + encodeURIComponent(` + strconv.Quote(route) + `))`)
	var touched []string
	c.Eval(`[...touched]`, &touched)
	if len(touched) != 1 {
		t.Errorf("%d rows were written, want the one of %s: %v", len(touched), route, touched)
	}
}

// TestPageOnPaper: what is clicked is not printed, and every open curve is.
func TestPageOnPaper(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 1, 8)
	c := chromium.Start(t)
	openFleet(t, c, w, 1280, 900, false)
	c.Print(true)
	c.Eval(`dispatchEvent(new Event("beforeprint")); 0`, nil)
	c.Until(`[...document.querySelectorAll(".card")].filter((el) => el.querySelector(".curve")).length === 2`)
	var shown []string
	c.Eval(`[...document.querySelectorAll("button:not(.open), input, nav, .tools")].filter((el) => el.getClientRects().length).map((el) => el.outerHTML.slice(0, 80))`, &shown)
	if len(shown) > 0 {
		t.Errorf("printed, though nobody can click on paper: %v", shown)
	}
	c.Shoot(filepath.Join(pictures, "paper.png"), true)
}

// TestPageIsReadOnlyWithoutTheToken: no button that changes something is there
// before the token is, and the token is kept nowhere.
func TestPageIsReadOnlyWithoutTheToken(t *testing.T) {
	w := newFleet(t, true)
	w.secret("letmein")
	c := chromium.Start(t)
	openFleet(t, c, w.world, 1280, 900, false)
	buttons := `document.querySelectorAll(".c-do button").length`
	c.Until(buttons + ` === 0`)
	unlock := func(token string) {
		c.Eval(`document.getElementById("unlock").click(); document.getElementById("access-token").focus(); 0`, nil)
		c.Type(token)
		c.Press("Enter")
		c.Until(buttons + ` > 0`)
		c.Eval(`document.querySelector(".c-do button").click(); 0`, nil)
	}
	unlock("wrong")
	c.Until(`!document.getElementById("toast").hidden && document.getElementById("toast").textContent.includes("token is missing or wrong") && ` + buttons + ` === 0`)
	unlock("letmein")
	c.Until(`document.getElementById("toast").textContent.includes("takes no new requests")`)
	if got := w.drained.Load(); got == nil || !strings.HasPrefix(*got, "gpu-") {
		t.Errorf("drained %v, want a backend", got)
	}
	var kept string
	c.Eval(`JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML.includes("letmein")])`, &kept)
	if kept != `[{},{},"",false]` {
		t.Errorf("the token was kept: %s", kept)
	}
}

// TestBarriersAreFound: a page that shuts people out is found to.
func TestBarriersAreFound(t *testing.T) {
	c := chromium.Start(t)
	openFleet(t, c, newFleet(t, false).world, 1280, 900, false)
	c.Eval(`document.querySelector("#filter").closest("label").replaceWith(document.querySelector("#filter")); document.querySelector("#filter").removeAttribute("placeholder"); 0`, nil)
	if found := c.Barriers(); len(found) != 1 || !strings.HasPrefix(found[0], "label ") {
		t.Errorf("of a field without a name, axe-core says %q", found)
	}
}
