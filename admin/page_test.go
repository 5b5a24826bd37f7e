package admin

import (
	"context"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/dashboard"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/chromium"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/telemetry"
)

// browser is one that looks at the page of the admin port.
type browser struct {
	*chromium.Browser
	t testing.TB
}

// servedPage opens the page of w in a real browser.
func servedPage(t *testing.T, w *world, width int) (*browser, *httptest.Server, *atomic.Bool) {
	t.Helper()
	c := &browser{Browser: chromium.Start(t), t: t}
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(rw, "down", http.StatusServiceUnavailable)
			return
		}
		w.handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	c.Open(server.URL+"/", width, 1000, false)
	c.Until(`document.querySelectorAll(".target .curve").length > 0`)
	return c, server, &down
}

// quiet fails when the browser complained: of a script, of the policy, of a
// missing file.
func (c *browser) quiet() {
	c.t.Helper()
	for _, complaint := range c.Complaints() {
		c.t.Errorf("the browser says: %s", complaint)
	}
}

// mark is one drawn point or line, in pixels from the top left of its chart.
type mark struct {
	N   float64 `json:"n"`
	TPS float64 `json:"tps"`
	X   float64 `json:"x"`
	Y   float64 `json:"y"`
}

// marks returns what matches selector in the card of backend.
func (c *browser) marks(backend, selector string) []mark {
	c.t.Helper()
	var got []mark
	c.Eval(`(() => {
		const card = [...document.querySelectorAll(".target")].find((el) => el.querySelector("h3").textContent === "`+backend+`");
		return [...card.querySelectorAll("`+selector+`")].map((el) => {
			const b = el.getBoundingClientRect(), s = card.querySelector("svg").getBoundingClientRect();
			return { n: +el.dataset.n || 0, tps: +el.dataset.tps || 0, x: b.x + b.width / 2 - s.x, y: b.y + b.height / 2 - s.y };
		});
	})()`, &got)
	return got
}

func TestPageDrawsWhatWasLearned(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 4, 12)
	for range 40 {
		w.metrics.Observe(telemetry.Exchange{Route: "chat", Outcome: "ok", Counted: true, Result: telemetry.Met, TPS: 41})
	}
	for range 10 {
		w.metrics.Observe(telemetry.Exchange{Route: "chat", Outcome: "shed", Counted: true, Result: telemetry.Shed, ShedReason: "floor"})
	}
	c, _, _ := servedPage(t, w, 1400)

	bins := c.marks("h200", ".bin")
	if len(bins) != 11 {
		t.Fatalf("h200: %d measured points are drawn, want 11\n%s", len(bins), c.Page())
	}
	for i, b := range bins {
		if !near(b.TPS, truth(int(b.N)), 0.02) {
			t.Errorf("h200 at n=%g: drawn at %g tok/s, want %.4g", b.N, b.TPS, truth(int(b.N)))
		}
		if i > 0 && (b.X <= bins[i-1].X || b.Y <= bins[i-1].Y) {
			t.Errorf("h200 at n=%g: drawn at %g, %g, want right of and below n=%g at %g, %g", b.N, b.X, b.Y, bins[i-1].N, bins[i-1].X, bins[i-1].Y)
		}
	}
	// Pixels are linear in tokens/s, and the floor lies on the same scale.
	floors := c.marks("h200", ".floor")
	if len(floors) != 1 || floors[0].TPS != 30 {
		t.Fatalf("h200: floors %+v are drawn, want one at 30", floors)
	}
	first, last := bins[0], bins[len(bins)-1]
	perTPS := (last.Y - first.Y) / (first.TPS - last.TPS)
	if want := first.Y + (first.TPS-30)*perTPS; floors[0].Y < want-1.5 || floors[0].Y > want+1.5 {
		t.Errorf("the floor of 30 is drawn at %g px, want %g", floors[0].Y, want)
	}
	// n = 12 is where the marker stands.
	now := c.marks("h200", ".now")
	at12 := bins[slices.IndexFunc(bins, func(m mark) bool { return m.N == 12 })]
	if len(now) != 1 || now[0].X < at12.X-1 || now[0].X > at12.X+1 {
		t.Errorf("the marker of n = 12 is at %+v, want at x = %g", now, at12.X)
	}
	for _, class := range []string{".curve", ".low", ".band", ".support", ".waiting", ".holds-at"} {
		if len(c.marks("h200", class)) == 0 {
			t.Errorf("h200: no %s is drawn", class)
		}
	}
	if got := c.marks("l40s", ".prior"); len(got) != 3 {
		t.Errorf("l40s: %d points of the prior are drawn, want 3", len(got))
	}
	if got := c.marks("l40s", ".prior-line"); len(got) != 1 {
		t.Errorf("l40s: %d lines of a prior are drawn, want one", len(got))
	}
	if got := c.marks("l40s", ".bin"); len(got) != 0 {
		t.Errorf("l40s: %d measured points are drawn, want none", len(got))
	}
	page := c.Page()
	for _, want := range []string{
		"Live", "12 decoding", "4 waiting for a first token", "n = 12 now", "80 %", "budget spent >10×", "Nothing is wrong now; 1 route still below the goal", "floor 30",
		"No streams yet", "http://127.0.0.1:8080/v1/chat/completions", "From the configured prior",
		"gpu <b>H200</b>", // a name is text, whatever it holds
	} {
		if !strings.Contains(strings.ReplaceAll(page, "\u00a0", " "), want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	for _, never := range []string{"NaN", "undefined", "[object", "sk-secret"} {
		if strings.Contains(page, never) {
			t.Errorf("the page says %q:\n%s", never, page)
		}
	}
	c.quiet()
}

func TestPageFitsItsWindow(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 1, 3)
	c, _, _ := servedPage(t, w, 1400)
	for _, width := range []int{320, 400, 800, 1400, 2400} {
		c.Resize(width, 900)
		c.Until(`innerWidth === ` + strconv.Itoa(width))
		var got struct {
			Page  int      `json:"page"`
			Wider []string `json:"wider"`
		}
		c.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done({
			page: document.documentElement.scrollWidth,
			wider: [...document.querySelectorAll("main *")].filter((el) => el.getBoundingClientRect().right > innerWidth + 1).map((el) => el.tagName + "." + el.getAttribute("class")),
		}))))`, &got)
		if got.Page > width || len(got.Wider) > 0 {
			t.Errorf("at %d px the page is %d px wide: %v", width, got.Page, got.Wider)
		}
	}
	c.quiet()
}

// A page that lives for days must not take the focus or the selection away, so
// elements stay while their figures change.
func TestPageUpdatesInPlace(t *testing.T) {
	w := newWorld(t)
	c, _, _ := servedPage(t, w, 1400)
	c.Eval(`window.kept = document.querySelector(".target svg"); kept.focus(); 0`, nil)
	w.occupy(t, 0, 7)
	c.Until(`document.querySelector(".target .now-name")?.textContent === "n = 7 now"`)
	var same bool
	c.Eval(`document.querySelector(".target svg") === kept && document.activeElement === kept`, &same)
	if !same {
		t.Error("the chart was made anew, or lost the focus, when the load changed")
	}
	c.quiet()
}

func TestPageIsReadableWithoutAPointer(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 0, 12)
	c, _, _ := servedPage(t, w, 1400)
	c.Until(`document.querySelector(".target svg").getAttribute("aria-valuenow") === "12"`)
	var said string
	c.Eval(`(() => {
		const chart = document.querySelector(".target svg");
		chart.focus();
		for (const key of ["ArrowRight", "PageUp", "ArrowLeft"]) chart.dispatchEvent(new KeyboardEvent("keydown", { key }));
		return chart.getAttribute("aria-valuetext") + " | " + chart.closest(".card").querySelector(".readout").innerText;
	})()`, &said)
	if !strings.HasPrefix(said, "n = 25: 35.7 tok/s per stream") || !strings.Contains(said, "| n = 25:") {
		t.Errorf("at n = (12+1)·2−1 the chart says %q, want n = 25 and 35.7 tok/s", said)
	}
	var unnamed []string
	c.Eval(`[...document.querySelectorAll("svg[role], input, [role=region], article.target, [role=img]")]
		.filter((el) => !el.getAttribute("aria-label") && !el.closest("label"))
		.map((el) => el.outerHTML.slice(0, 80))`, &unnamed)
	if len(unnamed) > 0 {
		t.Errorf("without a name for a screen reader: %q", unnamed)
	}
	var table string
	c.Eval(`(() => { const d = document.querySelector(".target details"); d.open = true; return new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(d.innerText)))); })()`, &table)
	if !strings.Contains(table, "measured") || strings.Count(table, "\n") < 11 {
		t.Errorf("the table of measurements says %q, want 11 rows", table)
	}
	c.quiet()
}

func TestPageSaysThatTheConnectionIsLost(t *testing.T) {
	w := newWorld(t)
	c, server, down := servedPage(t, w, 1400)
	c.Until(`document.getElementById("lost").hidden`)
	down.Store(true)
	server.CloseClientConnections()
	c.Until(`!document.getElementById("lost").hidden && document.getElementById("connection").textContent === "Connection lost"`)
	if page := c.Page(); !strings.Contains(page, "The connection to Pacer is lost. This is the state of") {
		t.Errorf("the page does not say how old it is:\n%s", page)
	}
	down.Store(false)
	c.Until(`document.getElementById("lost").hidden && document.getElementById("connection").textContent === "Live"`)
}

// TestPageSaysWhatIsNotKnownYet: a route that loses requests is not called over before
// its cause is said; a backend that died says what became of its streams; and jobs say
// how far they are.
func TestPageSaysWhatIsNotKnownYet(t *testing.T) {
	w := newWorld(t)
	w.watch.Tick(time.Now(), history.Snapshot{Backends: []history.Backend{{Name: "h200"}, {Name: "l40s"}}, Routes: []history.Route{{Name: "chat"}}})
	for range 50 {
		w.metrics.Observe(telemetry.Exchange{Route: "chat", Outcome: "shed", Counted: true, Result: telemetry.Shed, ShedReason: "floor"})
	}
	w.metrics.Observe(telemetry.Exchange{Route: "chat", Backend: "l40s", Outcome: "ok", Passages: []telemetry.Passage{
		{From: "h200", Fate: telemetry.Continued}, {From: "h200", Fate: telemetry.Continued}, {From: "h200", Fate: telemetry.Uncontinuable},
	}})
	full := history.Snapshot{
		Backends: []history.Backend{{Name: "h200", Scale: math.NaN()}, {Name: "l40s", Scale: math.NaN()}},
		Routes:   []history.Route{{Name: "chat", Floor: 30, Best: 40, Bound: true, Capacity: 58, Load: 58, Backends: []string{"h200", "l40s"}}},
	}
	w.watch.Tick(time.Now(), full)
	w.options.Jobs = func(context.Context) ([]api.Job, error) {
		return []api.Job{{ID: "batch_1", Key: "mobile", Endpoint: "/v1/chat/completions", Total: 10_000, Completed: 1200, Failed: 4, Expires: time.Now().Add(time.Hour)}}, nil
	}
	w.handler = New(w.options)
	c, _, _ := servedPage(t, w, 1280)
	cause := `document.querySelector("#route-chat .c-cause").textContent`
	c.Until(cause + ` === "loses requests; why is looked into"`)
	c.Until(`document.getElementById("headline").textContent === "chat loses requests; why is looked into" && document.getElementById("verdict").dataset.state === "warn"`)
	c.Until(`document.querySelector("#backend-h200 .c-health").innerText.replaceAll("\u00a0", " ").includes("It died in the middle of them: 2 streams went on elsewhere, 1 could not be continued.")`)
	c.Until(`!document.querySelector("#backend-l40s .c-health").innerText.includes("died")`)
	for range 5 {
		w.watch.Tick(time.Now(), full)
	}
	c.Until(cause + `.startsWith("load above capacity")`)
	c.Until(`document.getElementById("jobs").innerText.replaceAll("\u00a0", " ").startsWith("batch_1 of mobile, /v1/chat/completions: 1,204 of 10.0 k requests done, 4 of them failed, what is left ends in ")`)
	c.quiet()
}

// TestPageAsksWhatIf: the form asks the gateway, shows how far it is, and reads as
// text what came of it; a plan can be stopped, and a token is asked for where one is
// needed.
func TestPageAsksWhatIf(t *testing.T) {
	w := newWorld(t)
	asked, proceed := make(chan api.PlanQuestion, 1), make(chan struct{})
	w.options.Plan = func(ctx context.Context, q api.PlanQuestion, offered map[string]float64, progress func(float64)) (*api.Plan, error) {
		asked <- q
		progress(0.4)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-proceed:
		}
		answer, err := playedAlready(ctx, q, offered, progress)
		answer.Then.Routes = []api.PlanRoute{{Route: "chat", Class: "interactive", MinTPS: 40, Goal: 0.99, Offered: 100, Shed: 25, Attainment: 0.75}}
		answer.Then.Holds, answer.Verdict, answer.Notes = false, "It does not hold: chat <b>sheds</b>.", []string{"a note"}
		return answer, err
	}
	token := "t0ken"
	conf := *w.options.Config()
	conf.Admin.Token = config.Secret(token)
	w.options.Config = inForce(&conf)
	w.handler = New(w.options)
	c, _, _ := servedPage(t, w, 1280)
	set := func(id, value string) {
		c.Eval(`document.getElementById("`+id+`").value = "`+value+`"; 0`, nil)
	}
	click := func(id string) { c.Eval(`document.getElementById("`+id+`").click(); 0`, nil) }
	says := func(words string) {
		t.Helper()
		c.Until(`document.getElementById("plan").innerText.replaceAll("\u00a0", " ").includes(` + strconv.Quote(words) + `)`)
	}
	says("in virtual time; nothing is sent anywhere")
	c.Eval(`document.getElementById("plan-load").focus(); 0`, nil)
	set("plan-load", "3")
	set("plan-backend", "h200")
	set("plan-route", "chat")
	set("plan-floor", "40")
	click("plan-play")
	says("the admin token is missing or wrong")
	c.Until(`document.getElementById("access").open`)
	c.Type(token)
	c.Press("Enter")
	c.Until(`document.getElementById("unlock").textContent === "Lock again"`)

	click("plan-play")
	q := <-asked
	if q.Load != 3 || q.Engines["h200"] != 0 || len(q.Engines) != 1 || q.MinTPS["chat"] != 40 || q.Window != "5m" {
		t.Errorf("the page asked %+v", q)
	}
	c.Until(`document.getElementById("plan-progress").getAttribute("aria-valuenow") === "40"`)
	click("plan-stop")
	says("Stopped.")
	c.Until(`fetch("/api/v1/plan").then((a) => a.json()).then((s) => !s.running)`)

	click("plan-play")
	<-asked
	close(proceed)
	says("It does not hold: chat <b>sheds</b>.")
	for _, words := range []string{"100 % → 75 %", "– → 25 %", "30 → 40", "a note"} {
		says(words)
	}
	for _, b := range c.Barriers() {
		t.Error(b)
	}
	c.Until(`document.getElementById("plan-progress").hidden && !document.getElementById("plan-play").disabled`)
	for _, never := range []string{"NaN", "undefined", "[object"} {
		if strings.Contains(c.Page(), never) {
			t.Errorf("the page says %q", never)
		}
	}
}

// Each kind of a mark has a tone of its own on the timeline; one without would look like
// what is of no account.
func TestEveryMarkHasATone(t *testing.T) {
	text := must.Get(fs.ReadFile(dashboard.Files(), "timeline.js"))(t)
	tones := regexp.MustCompile(`(?s)const tones = \{(.*?)\};`).FindStringSubmatch(string(text))
	if tones == nil {
		t.Fatal("timeline.js has no tones")
	}
	for _, kind := range history.MarkKinds() {
		if !regexp.MustCompile(`\b` + kind + `: "(bad|warn|idle)"`).MatchString(tones[1]) {
			t.Errorf("timeline.js has no tone for %s", kind)
		}
	}
}
