// The card of one target: one upstream model on one backend, its load, its
// learned curve, and what the curve rests on.

import { attr, h, rebuild, text } from "./dom.js";
import { at, Chart } from "./chart.js";
import { count, digits, none, plain, plural, since, span, whole } from "./format.js";
import { keyOf } from "./state.js";

const stepsToKnow = 30; // decode steps before a curve is asked at all

const health = {
  up: ["good", "up"],
  down: ["bad", "down"],
  loading: ["warn", "loading"],
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

const shownFloors = 4;
const askAfter = 250; // ms that a slider rests

export class TargetCard {
  constructor(visibility) {
    this.name = h("h3");
    this.labels = h("span", { class: "chip" });
    this.health = h("p", { class: "pill" });
    this.shut = h("button", { type: "button", class: "shut", title: "Close" }, "×");
    this.shut.addEventListener("click", () => this.all.curves.toggle(keyOf(this.all.target), false));
    this.model = h("p", { class: "model" });
    this.trouble = h("p", { class: "trouble", hidden: true });
    this.load = h("p", { class: "load" });
    this.chart = new Chart((n) => this.say(n));
    this.empty = h("div", { class: "empty", hidden: true });
    this.plot = h("div", { class: "plot" }, this.chart.svg, this.empty);
    this.readout = h("p", { class: "readout" });
    this.holds = h("ul", { class: "holds" });
    this.basis = h("p", { class: "basis" });
    this.inside = h("div");
    this.details = h("details", null, h("summary", null, "Explore"), this.inside);
    this.el = h("article", { class: "card target" },
      h("header", null, this.name, this.labels, this.health, this.shut),
      this.model, this.trouble, this.load, this.plot, this.readout, this.holds, this.basis, this.details);
    this.details.addEventListener("toggle", () => (this.details.open ? this.explore() : this.unexplore()));

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

  // update shows { target, world, curves, id }.
  update(all) {
    this.all = all;
    const { target: t, world } = all;
    this.learned = t.learned ?? unknown;
    this.floors = floorsOf(t, world.routes);
    const title = t.backend + ", " + (t.model || "the client's own model name");
    attr(this.el, "id", all.id);
    text(this.name, t.backend);
    text(this.model, t.model || "(the client's own model name)");
    attr(this.el, "aria-label", title);
    attr(this.shut, "aria-label", "Close the curve of " + title);
    text(this.labels, Object.values(t.labels ?? {}).join(" · ") || t.kind);
    const [tone, word] = health[t.health] ?? ["idle", t.health];
    const trying = t.health === "down" && t.breaker === "half_open";
    text(this.health, trying ? "trying again" : word);
    attr(this.health, "class", "pill " + (trying ? "warn" : tone));
    const words = troubleOf(t, world.time);
    attr(this.trouble, "hidden", !words);
    text(this.trouble, words);

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
    rebuild(this.holds, this.floors, () => [...this.floors.slice(0, shownFloors).map((f) => h("li", { title: holdsTitle },
      h("b", null, `floor ${plain(f.tps)}`), h("span", { class: "who" }, f.routes.slice(0, 4).join(", ") + (f.routes.length > 4 ? ` and ${f.routes.length - 4} more` : "")),
      h("span", null, f.capacity === null ? "not known yet" : f.capacity === 0 ? "never reached" : `holds ${atLeast(f.capacity_is_lower_bound)}${whole(f.capacity)}${f.admits === null ? "" : ` · admits ${atLeast(f.admits_is_lower_bound)}${whole(f.admits)} more`}`))),
      this.floors.length > shownFloors ? h("li", { class: "rest" }, `and ${this.floors.length - shownFloors} floors more, down to ${plain(this.floors.at(-1).tps)}`) : ""]);
    text(this.basis, this.basisText());
    this.draw();
    if (this.details.open) this.drawTable();
  }

  basisText() {
    const l = this.learned, now = this.all.world.time;
    if (!l.updated_at && !l.curve.n.length) return "No measurement yet.";
    const parts = [];
    if (l.updated_at) {
      parts.push(`${count(l.tokens_seen)} tokens measured${this.all.target.tokens_by_text ? ", by their text: its streams bring no usage" : ""}`);
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
    const { target: t, world, curves } = this.all;
    const drawn = this.learned.curve.n.length > 0 && (curves.view !== "ttft" || this.learned.ttft);
    attr(this.empty, "hidden", drawn);
    attr(this.chart.svg, "hidden", !drawn);
    attr(this.chart.svg, "tabindex", drawn ? 0 : -1);
    attr(this.readout, "hidden", !drawn);
    attr(this.holds, "hidden", !this.floors.length);
    attr(this.details, "hidden", !this.learned.bins.length);
    if (drawn) return;
    const steps = this.learned.bins.reduce((sum, b) => sum + (b.steps ?? 0), 0);
    const names = routesOf(t, world.routes).map((m) => (m === "*" ? "any model name" : m));
    const [title, words, code] = emptyBy(t, steps, names, this.learned.curve.n.length > 0, world);
    rebuild(this.empty, [title, words, code], () => [h("b", null, title), h("span", null, words), code ? h("code", null, code) : ""]);
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
    const { world, curves } = this.all;
    const { curve, bins, support, scale, ttft } = this.learned;
    if (!curve.n.length || (curves.view === "ttft" && !ttft)) return;
    const other = world.targets.find((t) => keyOf(t) === this.other)?.learned ?? null;
    const limits = world.routes.filter((r) => r.max_ttft_s !== null && r.targets.some((x) => x.backend === this.all.target.backend)).map((r) => r.max_ttft_s);
    this.chart.draw({
      view: curves.view, curve, bins, support, n, m, floors: this.floors, ttft, limits, scale: scale ?? 1,
      ghost: scale !== null && Math.abs(Math.log(scale ?? 1)) > 0.05, asked: this.asked ?? null, other: other && { curve: other.curve },
    });
  }

  // explore makes what few readers need and everybody would pay for.
  explore() {
    const t = this.all.target, id = "x" + Math.random().toString(36).slice(2);
    this.slider = h("input", { type: "range", id: id + "r", min: -7, max: 7, step: 0.25, value: Math.log2(this.learned.rho > 0 ? this.learned.rho : 1).toFixed(2) });
    this.sliderSays = h("output", { for: id + "r" }, "as learned");
    this.slider.addEventListener("input", () => {
      text(this.sliderSays, `${digits(2 ** this.slider.value)} prompt tokens per output token`);
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.askAt(2 ** this.slider.value), askAfter);
    });
    const others = this.all.world.targets.filter((x) => x.learned?.curve.n.length && keyOf(x) !== keyOf(t));
    const select = h("select", { id: id + "c" }, h("option", { value: "" }, "nothing"), ...others.map((x) => h("option", { value: keyOf(x) }, x.model ? `${x.backend} · ${x.model}` : x.backend)));
    select.addEventListener("change", () => {
      this.other = select.value;
      this.draw();
    });
    this.table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Measurements of ${t.backend}` });
    this.inside.replaceChildren(
      h("p", { class: "control" }, h("label", { for: id + "r" }, "Prompt load"), this.slider, this.sliderSays),
      h("p", { class: "control" }, h("label", { for: id + "c" }, "Compare with"), select),
      this.table);
    this.drawTable();
  }

  unexplore() {
    this.asked = null;
    this.other = "";
    this.inside.replaceChildren();
    this.draw();
  }

  // askAt draws the curve at another prompt load, from the same rule that decides.
  async askAt(rho) {
    const t = this.all.target, ns = this.learned.curve.n;
    const every = Math.ceil(ns.length / 32);
    const levels = ns.filter((_, i) => i % every === 0 || i === ns.length - 1);
    const answer = await fetch(`/api/v1/profiles?rho=${rho}&n=${levels.join(",")}`).catch(() => null);
    if (!answer?.ok) return;
    const found = (await answer.json()).targets.find((x) => keyOf(x) === keyOf(t));
    if (!found || !this.details.open) return;
    this.asked = { n: levels, tps: found.points.map((p) => p.tps) };
    this.draw();
  }

  drawTable() {
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

// troubleOf says what is wrong with a target, "" = nothing is.
function troubleOf(t, now) {
  if (t.cause) return t.cause;
  const e = t.last_error;
  if (!e) return "";
  return `${e.within_answers ? "Some answers fail" : "Nothing served"} since ${since(e.since, now)}: ${e.status === null ? "" : e.status + " "}${e.message}`;
}

// emptyBy says why there is no curve: a title, a sentence, a line of code.
function emptyBy(t, steps, names, learned, world) {
  const e = t.last_error;
  if (learned) return ["No first token measured yet", "The time to the first token is learned from streams with prompts of different lengths."];
  if (t.health === "down") return ["Backend down", e ? `${e.status === null ? "" : e.status + " "}${e.message}, since ${since(e.since, world.time)}` : t.cause ?? "It does not answer; it is tried again by itself."];
  if (t.health === "loading") return ["Loading its model", "The engine answers and does not serve yet; the first streams follow by themselves."];
  if (t.health === "draining") return ["Drained", "An operator took it out of service; Resume puts it back in."];
  if (e && !e.within_answers) return ["Nothing served yet", `${e.status === null ? "" : e.status + " "}${e.message}, since ${since(e.since, world.time)}`];
  if (steps > 0) return ["First streams seen", `${Math.floor(steps)} of ${stepsToKnow} decode steps until there is a curve`];
  if (!names.length) return ["No route leads here", "Name this backend under targets: of a route."];
  return ["No streams yet", `Send a streaming request for ${names.slice(0, 3).join(" or ")} to`, (world.dataURL || "the data port, ") + "/v1/chat/completions"];
}
