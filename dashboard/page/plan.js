// What if: the load of the window, played in virtual time by the gateway, as it
// is and with one thing changed.

import { attr, byId, h, rebuild, size, text } from "./dom.js";
import { digits, none, percent, plain, plural, rate, seconds, whole } from "./format.js";

const askEvery = 400; // ms
const shownRows = 12;
const heads = { routes: ["Route", "Kept", "Goal", "Shed", "TPS p10", "Floor", "TTFT p99"], backends: ["Backend", "Full", "Peak"] };

// options keeps the choices of a select, and what is chosen.
function options(select, names, first) {
  rebuild(select, [names, first], () => {
    const chosen = select.value;
    return [h("option", { value: "" }, first), ...names.map((n) => h("option", { value: n, selected: n === chosen }, n))];
  });
}

// arrow writes what was, and what would be where that is something else.
const arrow = (was, then) => (was === then ? then : `${was} → ${then}`);

function routeRows({ now, then }) {
  const before = new Map(now.routes.map((r) => [r.route, r]));
  const worst = [...then.routes].sort((a, b) => a.holds - b.holds || (a.attainment ?? 2) - (b.attainment ?? 2));
  return worst.slice(0, shownRows).map((r) => {
    const was = before.get(r.route) ?? r;
    const each = (f) => arrow(f(was), f(r));
    return h("tr", { class: r.holds ? "" : "hurt" }, h("th", { scope: "row" }, r.route),
      ...[each((x) => percent(x.attainment)), percent(r.attainment_goal), each((x) => percent(x.offered ? x.shed / x.offered : null)),
        each((x) => digits(x.tps.p10)), each((x) => (x.min_tps ? plain(x.min_tps) : none)), each((x) => seconds(x.ttft_s.p99))].map((x) => h("td", null, x)));
  });
}

function backendRows({ now, then }) {
  const before = new Map(now.backends.map((b) => [b.backend, b]));
  const gone = now.backends.filter((b) => !then.backends.some((x) => x.backend === b.backend));
  const busy = [...then.backends].sort((a, b) => (b.utilisation ?? 0) - (a.utilisation ?? 0));
  return [
    ...gone.map((b) => h("tr", null, h("th", { scope: "row" }, b.backend), h("td", null, arrow(percent(b.utilisation), "gone")), h("td", null, arrow(whole(b.peak), none)))),
    ...busy.map((b) => {
      const was = before.get(b.backend);
      const each = (f) => (was ? arrow(f(was), f(b)) : arrow(none, f(b)));
      return h("tr", null, h("th", { scope: "row" }, b.backend), h("td", null, each((x) => percent(x.utilisation))), h("td", null, each((x) => whole(x.peak))));
    }),
  ].slice(0, shownRows);
}

const table = (head, rows) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": head[0] + "s of the plan" },
  h("table", { class: "candidates" }, h("thead", null, h("tr", null, ...head.map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, ...rows)));

export class Plan {
  constructor(access, windowOf) {
    this.access = access;
    this.windowOf = windowOf;
    this.fill();
    byId("plan-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.play();
    });
    // A hundred names are a hundred elements: they are made when somebody comes to choose.
    for (const event of ["focusin", "pointerenter"]) byId("plan-form").addEventListener(event, () => this.fill());
    byId("plan-stop").addEventListener("click", () => this.stop?.abort());
  }

  fill() {
    options(byId("plan-backend"), this.world?.backends.map((b) => b.backend) ?? [], "as they are");
    options(byId("plan-route"), this.world?.routes.filter((r) => r.class === "interactive").map((r) => r.model) ?? [], "as they are");
  }

  update(world) {
    this.world = world;
    const offered = world.routes.reduce((sum, r) => sum + (world.windowS ? r.offered / world.windowS : 0), 0);
    text(byId("plan-note"), `the load of the window above, ${rate(offered)} requests/s, in virtual time; nothing is sent anywhere`);
  }

  question() {
    const q = { window: this.windowOf(), load: +byId("plan-load").value };
    const backend = byId("plan-backend").value, route = byId("plan-route").value;
    if (backend) q.engines = { [backend]: +byId("plan-engines").value };
    if (route) q.min_tps = { [route]: +byId("plan-floor").value };
    return q;
  }

  async play() {
    if (this.stop) return;
    this.stop = new AbortController();
    this.busy(true);
    const look = setInterval(() => this.look(), askEvery);
    try {
      const answer = await fetch("/api/v1/plan", { method: "POST", headers: this.access.headers, body: JSON.stringify(this.question()), signal: this.stop.signal });
      const body = await answer.json();
      if (answer.ok) this.show(body);
      else this.say(body.error.message, "bad");
      if (answer.status === 401) this.access.ask();
    } catch {
      this.say(this.stop.signal.aborted ? "Stopped." : "Pacer did not answer.", "bad");
    } finally {
      clearInterval(look);
      this.stop = null;
      this.busy(false);
    }
  }

  // look asks how far the plan is.
  async look() {
    try {
      const answer = await fetch("/api/v1/plan");
      const state = answer.ok ? await answer.json() : { running: false };
      if (!this.stop || !state.running) return;
      size(byId("plan-bar"), "--done", state.progress);
      attr(byId("plan-progress"), "aria-valuenow", Math.round(state.progress * 100));
    } catch {
      // the question itself will say so
    }
  }

  busy(yes) {
    attr(byId("plan-play"), "disabled", yes);
    attr(byId("plan-stop"), "hidden", !yes);
    attr(byId("plan-progress"), "hidden", !yes);
    size(byId("plan-bar"), "--done", 0);
    attr(byId("plan-progress"), "aria-valuenow", 0);
    if (yes) this.say("Playing …", "");
  }

  say(words, tone) {
    text(byId("plan-verdict"), words);
    attr(byId("plan-verdict"), "class", "says " + tone);
    byId("plan-answer").replaceChildren();
  }

  show(a) {
    this.say(a.verdict, a.then.holds ? "good" : "bad");
    const { routes, backends } = a.then;
    const more = [routes.length > shownRows ? plural(routes.length - shownRows, "better route is", "better routes are") + " not shown" : "",
      backends.length > shownRows ? plural(backends.length - shownRows, "idler backend is", "idler backends are") + " not shown" : ""];
    byId("plan-answer").replaceChildren(table(heads.routes, routeRows(a)), table(heads.backends, backendRows(a)),
      h("ul", { class: "note" }, h("li", null, a.load), ...[...a.notes, ...more].filter(Boolean).map((n) => h("li", null, n))));
  }
}
