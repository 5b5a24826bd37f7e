// The card of one target: one upstream model on one backend, its load, its
// learned curve, and what the curve rests on.

import { h, text, attr, rebuild } from "./dom.js";
import { at, Chart } from "./chart.js";
import { count, digits, none, plain, plural, span, whole } from "./format.js";

const stepsToKnow = 30; // decode steps before a curve is asked at all

const health = {
  up: ["good", "up"],
  down: ["bad", "down"],
  loading: ["waiting", "loading"],
  draining: ["idle", "draining"],
};

const holdsTitle = "Up to so many streams there, whosever, one of the route is let in; so many more are placed now. ≥: what is known ends there, not the speed.";
const atLeast = (isLowerBound) => (isLowerBound ? "≥\u00a0" : "");

const unknown = { curve: { n: [], tps: [], low: [] }, bins: [], support: null, tokens_seen: 0, updated_at: null };

// floorsOf returns the floors that the routes put on target t, each with the
// names of its routes, and the load up to which it is kept.
export function floorsOf(t, routes) {
  const floors = new Map();
  for (const r of routes) {
    const target = r.targets.find((x) => x.backend === t.backend && x.model === t.model);
    if (!target || r.min_tps === null) continue;
    const f = floors.get(r.min_tps) ?? { ...target, tps: r.min_tps, routes: [] };
    f.routes.push(r.model);
    floors.set(r.min_tps, f);
  }
  return [...floors.values()].sort((a, b) => b.tps - a.tps);
}

// routesOf returns the names of the routes that lead to target t.
const routesOf = (t, routes) =>
  routes.filter((r) => r.targets.some((x) => x.backend === t.backend && x.model === t.model)).map((r) => r.model);

export class TargetCard {
  constructor(visibility) {
    this.name = h("h3");
    this.labels = h("span");
    this.health = h("p", { class: "pill" });
    this.model = h("p", { class: "model" });
    this.trouble = h("p", { class: "trouble", hidden: true });
    this.load = h("p", { class: "load" });
    this.chart = new Chart((n) => this.say(n));
    this.empty = h("div", { class: "empty", hidden: true });
    this.plot = h("div", { class: "plot" }, this.chart.svg, this.empty);
    this.readout = h("p", { class: "readout" });
    this.holds = h("ul", { class: "holds" });
    this.basis = h("p", { class: "basis" });
    this.table = h("div", { tabindex: 0, role: "region" });
    this.details = h("details", null, h("summary", null, "Table of measurements"), this.table);
    this.el = h("article", { class: "card target" },
      h("header", null, this.name, this.labels, this.health),
      this.model, this.trouble, this.load, this.plot, this.readout, this.holds, this.basis, this.details);
    this.details.addEventListener("toggle", () => this.drawTable());

    // Charts out of sight are not drawn; the observer also tells of new sizes.
    this.visible = false;
    this.visibility = visibility;
    visibility.watch(this.plot, (visible) => {
      this.visible = visible;
      this.draw();
    });
  }

  close() {
    this.visibility.forget(this.plot);
  }

  // update shows { target, learned, routes, time, dataURL }.
  update(all) {
    this.all = all;
    const { target: t, routes } = all;
    this.learned = all.learned ?? unknown;
    this.floors = floorsOf(t, routes);
    const title = t.backend + ", " + (t.model || "the client's own model name");
    text(this.name, t.backend);
    attr(this.name, "title", t.backend);
    text(this.model, t.model || "(the client's own model name)");
    attr(this.model, "title", t.model);
    attr(this.el, "aria-label", title);
    attr(this.table, "aria-label", "Measurements of " + title);
    rebuild(this.labels, [t.kind, t.labels], () => [
      h("span", { class: "chip", title: Object.entries({ kind: t.kind, ...t.labels }).map(([k, v]) => `${k}: ${v}`).join("\n") },
        Object.values(t.labels ?? {}).join(" · ") || t.kind)]);
    const [tone, word] = health[t.health] ?? ["idle", t.health];
    const trying = t.health === "down" && t.breaker === "half_open";
    text(this.health, trying ? "trying again" : word);
    attr(this.health, "class", "pill " + (trying ? "waiting" : tone));

    const e = t.last_error;
    attr(this.trouble, "hidden", !e);
    if (e) {
      const age = span(Math.max((all.time - Date.parse(e.since)) / 1000, 0));
      text(this.trouble, `Nothing served for ${age}: ${e.status === null ? "" : e.status + " "}${e.message}`);
    }

    const n = t.in_flight.n;
    const others = t.engine ? t.engine.foreign.waiting + t.engine.foreign.decoding : 0;
    rebuild(this.load, [t.in_flight, others], () => [
      h("span", { class: "n" }, h("b", null, whole(n)), " decoding"),
      h("span", null, h("b", null, whole(Math.max(t.in_flight.m - n, 0))), " waiting for a first token"),
      ...(t.in_flight.below_floor ? [h("span", { class: "late", title: "of these, over their life so far; of this replica" }, h("b", null, whole(t.in_flight.below_floor)), " below their floor")] : []),
      ...(others ? [h("span", { title: "of these; by the engine's own count they did not come through Pacer" }, h("b", null, whole(others)), " of others")] : []),
    ]);
    this.showEmpty();
    this.say(this.chart.reader);
    rebuild(this.holds, this.floors, () => this.floors.map((f) => h("li", { title: holdsTitle },
      h("b", null, `floor ${plain(f.tps)}`), h("span", { class: "who" }, f.routes.join(", ")),
      h("span", null, f.capacity === null ? "not known yet" : f.capacity === 0 ? "never reached" : `holds ${atLeast(f.capacity_is_lower_bound)}${whole(f.capacity)}${f.admits === null ? "" : ` · admits ${atLeast(f.admits_is_lower_bound)}${whole(f.admits)} more`}`))));
    text(this.basis, this.basisText());
    this.draw();
    this.drawTable();
  }

  basisText() {
    const l = this.learned, now = this.all.time;
    if (!l.updated_at && !l.curve.n.length) return "No measurement yet.";
    const parts = [];
    if (l.updated_at) {
      parts.push(`${count(l.tokens_seen)} tokens measured`);
      if (l.support) parts.push(`n from ${l.support[0]} to ${l.support[1]} seen`);
      const age = (now - Date.parse(l.updated_at)) / 1000;
      parts.push(age < 2 ? "latest just now" : `latest ${span(age)} ago`);
      if (l.rho > 0) parts.push(`${digits(l.rho)} prompt tokens per output token`);
      if (l.mean_output_tokens !== null) parts.push(`answers of ${count(l.mean_output_tokens)} tokens`);
    } else {
      parts.push("From the configured prior, nothing measured yet");
    }
    if (l.scale !== 1 && l.scale !== null) parts.push(`scaled by ${digits(l.scale)}`);
    parts.push(`margin ${Math.round(l.margin * 100)}\u00a0%`);
    return parts.join(" · ");
  }

  showEmpty() {
    const { target: t, routes, dataURL } = this.all;
    const steps = this.learned.bins.reduce((sum, b) => sum + (b.steps ?? 0), 0);
    const drawn = this.learned.curve.n.length > 0;
    attr(this.empty, "hidden", drawn);
    attr(this.chart.svg, "hidden", !drawn);
    attr(this.chart.svg, "tabindex", drawn ? 0 : -1);
    attr(this.readout, "hidden", !drawn);
    attr(this.holds, "hidden", !this.floors.length);
    attr(this.details, "hidden", !this.learned.bins.length);
    if (drawn) return;
    const names = routesOf(t, routes).map((m) => (m === "*" ? "any model name" : m));
    rebuild(this.empty, [Math.floor(steps), names, dataURL, t.health], () => {
      if (steps > 0) return [h("b", null, "First streams seen"), h("span", null, `${Math.floor(steps)} of ${stepsToKnow} decode steps until there is a curve`)];
      return [
        h("b", null, "Waiting for the first streams"),
        h("span", null, names.length ? `Send a streaming request for ${names.slice(0, 3).join(" or ")} to` : "No route leads here"),
        names.length ? h("code", null, (dataURL || "the data port, ") + "/v1/chat/completions") : null,
      ];
    });
  }

  // say writes the figures at n, or at the present load while the reader
  // points nowhere.
  say(reader) {
    const l = this.learned;
    const now = this.all.target.in_flight.n;
    const n = reader ?? (now > 0 ? now : l.support?.[1] ?? 1);
    const tps = at(l.curve.n, l.curve.tps, n), low = at(l.curve.n, l.curve.low, n);
    const bin = l.bins.filter((b) => b.tokens > 0).reduce((best, b) => (!best || Math.abs(Math.log(b.n / n)) < Math.abs(Math.log(best.n / n)) ? b : best), null);
    const beyond = l.support && (n > l.support[1] || n < l.support[0]);
    const where = reader !== null ? "" : now > 0 ? " now" : l.curve.n.length ? ", the highest known" : "";
    const said = tps === null
      ? l.curve.n.length ? `n = ${n}${where}: farther than twice what was seen, so not known` : ""
      : `${digits(tps)} tok/s per stream, at least ${digits(low)} · ${digits(n * tps)} tok/s together`;
    const measured = bin && tps !== null
      ? `Nearest measurement: ${digits(bin.tps)} tok/s at n = ${bin.n}, ${plural(bin.tokens, "token", "tokens")} in ${plural(bin.steps, "step", "steps")}` + (beyond ? "; extrapolated" : "")
      : tps !== null ? "By the configured prior, not measured" : "";
    rebuild(this.readout, [n, where, said, measured], () => tps === null ? [said] : [
      h("b", null, `n = ${n}${where}: `), said, h("br"), h("span", null, measured)]);
    attr(this.chart.svg, "aria-label", `Learned curve of ${this.all.target.backend}, by number of streams`);
    attr(this.chart.svg, "aria-valuenow", n);
    attr(this.chart.svg, "aria-valuetext", tps === null ? `n = ${n}: not known` : `n = ${n}: ${said}`);
  }

  draw() {
    if (!this.visible || !this.all) return;
    const { n, m } = this.all.target.in_flight;
    const { curve, bins, support } = this.learned;
    if (curve.n.length) this.chart.draw({ curve, bins, support, n, m, floors: this.floors });
  }

  drawTable() {
    if (!this.details.open || !this.all) return;
    const l = this.learned;
    const head = ["n", "measured", "curve", "bound", "together", "tokens", "steps", "prompt load"];
    rebuild(this.table, [l.bins, l.curve], () => [h("table", null,
      h("thead", null, h("tr", null, ...head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, ...l.bins.map((b) => {
        const tps = at(l.curve.n, l.curve.tps, b.n), low = at(l.curve.n, l.curve.low, b.n);
        const cells = [b.tokens > 0 ? digits(b.tps) : none, digits(tps), digits(low), digits(tps === null ? null : tps * b.n), count(b.tokens), count(b.steps), digits(b.p)];
        return h("tr", null, h("th", { scope: "row" }, String(b.n)), ...cells.map((c) => h("td", null, c)));
      }))),
    h("p", { class: "note" }, `Speeds in tok/s of one stream; together: of all n. Prompt load: prompt tokens per decode step. ${plural(l.bins.length, "level", "levels")} of n.`)]);
  }
}
