// The routes, the worst first: what each promises, what it gave within the
// window, what it can still take, and why it does not keep what it promises.

import { attr, byId, h, keyed, rebuild, size, text } from "./dom.js";
import { count, digits, none, percent, plain, plural, rate, seconds, since, whole } from "./format.js";
import { idOf, linkOf } from "./links.js";
import { matching, Order, rank } from "./state.js";
import { lines, Spark } from "./trend.js";

const columns = [
  ["c-name", "Route"], ["c-goal", "Goal"], ["c-kept", "Kept"], ["c-trend", "Load and misses"],
  ["c-rate", "Offered/s"], ["c-rate", "Met/s"], ["c-rate", "Shed/s"],
  ["c-tps", "TPS p10 / floor"], ["c-ttft", "TTFT p99 / limit"], ["c-room", "Headroom"], ["c-cause", "Cause"],
];

const results = ["met", "missed", "unmeasured", "shed", "failed"];
const meaning = {
  met: "kept the goal", missed: "fell below it", unmeasured: "served, too short or not streamed, so not judged",
  shed: "refused because of load", failed: "broken off or not answered",
};

const tones = { [rank.bad]: "bad", [rank.warn]: "warn", [rank.tight]: "tight", [rank.good]: "good", [rank.idle]: "idle" };
const words = { bad: "broken", warn: "below its goal", tight: "full", good: "kept", idle: "idle" };

// goal is what a route promises, the speed apart from the rest.
function goal(r) {
  const share = r.attainment_goal === null ? "" : `${plain(r.attainment_goal * 100)}\u00a0%`;
  if (r.min_tps === null && r.max_ttft_s === null) return [r.class === "batch" ? "batch" : "no speed", r.class === "batch" ? "what is left" : "promised"];
  const limit = r.max_ttft_s === null ? "" : `≤\u00a0${plain(r.max_ttft_s)}\u00a0s`;
  if (r.min_tps === null) return [limit, share];
  return [`≥\u00a0${plain(r.min_tps)} tok/s`, [limit, share].filter(Boolean).join(" · ")];
}

const judged = (r) => r.met + r.missed + r.shed + r.failed;
const nameOf = (r) => (r.model === "*" ? "* any other" : r.model);

class Row {
  constructor(table) {
    this.table = table;
    this.dot = h("i", { class: "dot" });
    this.label = document.createTextNode("");
    this.button = h("button", { type: "button", class: "open", "aria-expanded": "false" }, this.dot, this.label);
    this.button.addEventListener("click", () => table.toggle(this.key));
    this.cells = columns.map(([name, title], i) => (i ? h("td", { class: name, role: "cell", "data-title": title }) : h("th", { scope: "row", role: "rowheader", class: name }, this.button)));
    [this.name, this.goal, this.kept, this.trend, this.offered, this.met, this.shed, this.tps, this.ttft, this.room, this.cause] = this.cells;
    this.spark = new Spark();
    this.trend.append(this.spark.el);
    this.row = h("tr", { role: "row" }, ...this.cells);
    this.el = h("tbody", { role: "rowgroup" }, this.row);
  }

  update(r) {
    this.key = r.model;
    this.r = r;
    const tone = tones[r.rank];
    attr(this.el, "id", idOf("route", r.model));
    attr(this.el, "class", tone);
    attr(this.dot, "title", words[tone]);
    if (this.label.data !== nameOf(r)) this.label.data = nameOf(r);
    attr(this.button, "aria-label", `${nameOf(r)}, ${words[tone]}`);
    const [speed, rest] = goal(r);
    rebuild(this.goal, [speed, rest], () => [speed, rest ? h("small", null, rest) : ""]);
    this.showKept(r);
    this.spark.update(this.table.history?.get(r.model));
    text(this.offered, rate(r.offered_per_s ?? null));
    text(this.met, rate(r.met_per_s ?? null));
    text(this.shed, rate(r.shed_per_s ?? null));
    attr(this.shed, "class", r.shed_per_s > 0 ? "c-rate hurt" : "c-rate");
    this.against(this.tps, digits(r.tps.p10), r.min_tps === null ? "" : plain(r.min_tps), r.min_tps !== null && r.tps.p10 !== null && r.tps.p10 < r.min_tps, "c-tps");
    this.against(this.ttft, seconds(r.ttft_s.p99), r.max_ttft_s === null ? "" : plain(r.max_ttft_s) + "\u00a0s", r.max_ttft_s !== null && r.ttft_s.p99 !== null && r.ttft_s.p99 > r.max_ttft_s, "c-ttft");
    this.showRoom(r);
    this.showCause(r);
    this.open(this.table.opened === r.model);
  }

  // against writes a figure and what it is held against.
  against(cell, value, limit, broken, name) {
    attr(cell, "class", broken ? name + " hurt" : name);
    rebuild(cell, [value, limit], () => [value, limit ? h("small", null, " / " + limit) : ""]);
  }

  showKept(r) {
    const promised = r.min_tps !== null || r.max_ttft_s !== null;
    const left = r.budget_left ?? null;
    rebuild(this.kept, [promised, percent(r.attainment), judged(r) > 0, left === null ? null : Math.floor(left * 100)], () => {
      if (!promised) return [h("span", { class: "dim" }, none)];
      if (!judged(r)) return [h("span", { class: "dim" }, "no request")];
      if (left === null) return [h("b", null, percent(r.attainment))];
      const bar = h("i", { class: left > 0 ? "bar budget" : "bar budget spent" });
      size(bar, "--share", left > 0 ? left : 1);
      return [h("b", null, percent(r.attainment)), bar, h("small", null, left > 0 ? `${Math.floor(left * 100)}\u00a0% budget left` : left < -9.99 ? "budget spent >10×" : `budget spent ${(1 - left).toFixed(1)}×`)];
    });
  }

  showRoom(r) {
    rebuild(this.room, [r.free, r.free_is_lower_bound, r.waiting, r.running], () => {
      const line = r.waiting ? h("small", null, `${whole(r.waiting)} in line`) : "";
      if (r.free === null) return [h("span", { class: "dim" }, "no limit known"), line];
      const bar = h("i", { class: r.free === 0 ? "bar room full" : "bar room" });
      size(bar, "--share", r.free / Math.max(r.free + r.running, 1));
      return [(r.free_is_lower_bound ? "≥\u00a0" : "") + `${whole(r.free)} free`, bar, line];
    });
  }

  showCause(r) {
    text(this.cause, r.cause ?? (r.losing ? "loses requests; why is looked into" : r.rank === rank.warn ? "over; the window still holds it" : r.rank === rank.idle ? "no request in this window" : ""));
    attr(this.cause, "class", r.cause || r.losing ? "c-cause why" : "c-cause dim");
    attr(this.cause, "data-empty", !r.cause && r.rank !== rank.warn);
  }

  open(yes) {
    attr(this.button, "aria-expanded", yes ? "true" : "false");
    if (!yes) {
      this.detail?.remove();
      this.detail = null;
      return;
    }
    if (!this.detail) {
      this.inside = h("td", { colspan: columns.length, role: "cell", id: "detail" });
      this.detail = h("tr", { role: "row", class: "detail" }, this.inside);
      this.el.append(this.detail);
    }
    this.showDetail();
  }

  showDetail() {
    const { r } = this, series = this.table.history?.get(r.model), width = Math.min(340, Math.max(240, this.inside.clientWidth - 32));
    rebuild(this.inside, [results.map((x) => r[x]), r.tps, r.ttft_s, r.targets, r.cause, r.advice, r.means, r.attainment_goal, series?.drawn, width], () => [h("div", { class: "detail-grid" },
      r.cause ? h("div", { class: "cure" },
        h("p", null, h("b", null, r.cause)), r.means ? h("p", null, r.means) : "", r.advice ? h("p", { class: "advice" }, r.advice) : "",
        r.cause_backend ? h("p", null, h("a", { href: linkOf("backend", r.cause_backend) }, r.cause_backend), " · ", h("a", { href: linkOf("curve", r.cause_backend) }, "its curve")) : "") : "",
      h("div", null,
        h("h3", null, `${plural(r.offered, "request", "requests")} in the window`),
        h("ul", { class: "counts" }, ...results.map((name) => h("li", { title: meaning[name] }, h("i", { class: "k-" + name }), h("b", null, whole(r[name])), " " + name))),
        h("table", { class: "quantiles" }, h("tbody", null,
          quantiles("Speed, tok/s", [["p10", digits(r.tps.p10)], ["p50", digits(r.tps.p50)], ["p90", digits(r.tps.p90)]]),
          quantiles("First token", [["p50", seconds(r.ttft_s.p50)], ["p90", seconds(r.ttft_s.p90)], ["p99", seconds(r.ttft_s.p99)]]))),
        h("p", { class: "note" }, `Speed of ${plural(r.tps_streams, "stream", "streams")}, first token of ${count(r.ttft_streams)}`)),
      h("div", null, h("h3", null, "Where it goes"), h("table", { class: "where" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Backend"), h("th", { scope: "col" }, "Holds"), h("th", { scope: "col" }, "Admits more"))),
        h("tbody", null, ...r.targets.slice(0, shownTargets).map((t) => h("tr", null,
          h("th", { scope: "row" }, h("a", { href: linkOf("backend", t.backend) }, t.backend), t.model ? h("small", null, " " + t.model) : ""),
          h("td", null, t.capacity === null ? none : (t.capacity_is_lower_bound ? "≥\u00a0" : "") + whole(t.capacity)),
          h("td", null, t.admits === null ? "no limit" : (t.admits_is_lower_bound ? "≥\u00a0" : "") + whole(t.admits)))))),
      r.targets.length > shownTargets ? h("p", { class: "note" }, `and ${r.targets.length - shownTargets} more`) : ""),
      series ? h("div", null, h("h3", null, "TPS p10"), lines({ ...this.table.axis, ys: series.tps_p10, limit: r.min_tps, name: "TPS p10", unit: "tokens/s", width, height: 120 })) : "",
      series ? h("div", null, h("h3", null, "TTFT p99, s"), lines({ ...this.table.axis, ys: series.ttft_p99_s, limit: r.max_ttft_s, name: "TTFT p99", unit: "s", width, height: 120 })) : "",
    )]);
  }
}

const shownTargets = 12;

const quantiles = (name, cells) => h("tr", null, h("th", { scope: "row" }, name), ...cells.map(([q, value]) => h("td", null, h("small", null, q + " "), value)));

// RouteTable is the table of all routes.
export class RouteTable {
  constructor() {
    this.el = byId("route-table");
    this.order = new Order();
    this.opened = null;
    attr(this.el, "role", "table");
    attr(this.el, "aria-labelledby", "routes-title");
    this.el.append(h("thead", { "data-fixed": true, role: "rowgroup" }, h("tr", { role: "row" }, ...columns.map(([name, title]) => h("th", { scope: "col", role: "columnheader", class: name }, title)))));
  }

  toggle(name, open = this.opened !== name) {
    this.opened = open ? name : null;
    for (const [key, row] of this.el.keyed ?? []) row.open(key === this.opened);
  }

  // remember takes an answer of /api/v1/history by route.
  remember(history) {
    this.axis = { times: history.times.map((t) => Date.parse(t)), stepMS: history.step_s * 1000 };
    this.history = new Map(history.routes.map((r) => [r.model, { ...r, drawn: history.times.at(-1) }]));
    for (const row of (this.el.keyed ?? new Map()).values()) if (row.r) row.update(row.r);
  }

  update(world, filter) {
    const shown = matching(world.routes, filter);
    const hold = this.el.matches(":hover") || this.el.contains(document.activeElement);
    keyed(this.el, this.order.sort(shown, (r) => r.model, hold), (r) => r.model, () => new Row(this));
    const none = byId("routes-none");
    attr(none, "hidden", shown.length > 0);
    text(none, world.routes.length ? `None of the ${plural(world.routes.length, "route", "routes")} matches the filter.` : "No route is configured: add one under routes: in pacer.yaml.");
    const whose = world.ofAll && world.replicas > 1 ? `all ${world.replicas} replicas` : world.replicas > 1 ? "this replica only" : "";
    text(byId("routes-note"), [`since ${since(new Date(world.time - world.windowS * 1000).toISOString(), world.time)}`, whose, "rates of the last 30 s"].filter(Boolean).join(" · "));
    return shown.length;
  }
}
