// The card of one route: what it promises and what it gave.

import { h, s, text, attr, rebuild } from "./dom.js";
import { count, digits, none, percent, plain, plural, seconds, whole } from "./format.js";

const results = ["met", "missed", "unmeasured", "shed", "failed"];
const meaning = {
  met: "kept the floor",
  missed: "fell below the floor",
  unmeasured: "served, too short or not streamed, so not judged",
  shed: "refused because of load",
  failed: "broken off or not answered",
};

function promise(r) {
  const parts = [];
  if (r.min_tps !== null) parts.push(`≥ ${plain(r.min_tps)} tok/s per stream`);
  if (r.max_ttft_s !== null) parts.push(`first token ≤ ${plain(r.max_ttft_s)}\u00a0s`);
  if (r.attainment_goal !== null && parts.length) parts.push(`for ${plain(r.attainment_goal * 100)}\u00a0%`);
  return parts.length ? "Promises " + parts.join(" · ") : "Promises no speed: takes what is left";
}

function kept(r) {
  const judged = r.met + r.missed + r.shed + r.failed; // refused and failed ones kept nothing
  if (r.min_tps === null && r.max_ttft_s === null) return { share: whole(r.offered), note: r.offered === 1 ? "request" : "requests", tone: "" };
  if (judged === 0) return { share: none, note: r.offered ? "no request could be judged yet" : "no request yet", tone: "" };
  const short = r.attainment_goal !== null && r.attainment < r.attainment_goal;
  return {
    share: percent(r.attainment),
    note: `of ${plural(judged, "judged request", "judged requests")} kept it` + (short ? `, goal ${plain(r.attainment_goal * 100)}\u00a0%` : ""),
    tone: short ? "bad" : "good",
  };
}

// stack is the bar of results; a result that happened is never invisible.
function stack(r) {
  const widths = results.map((name) => (r[name] ? Math.max(r[name] / r.offered, 0.008) : 0));
  const all = widths.reduce((a, b) => a + b, 0) || 1;
  let x = 0;
  return s("svg", { viewBox: "0 0 100 7", preserveAspectRatio: "none", "aria-hidden": "true" },
    ...results.map((name, i) => {
      const width = (widths[i] / all) * 100;
      x += width;
      return width ? s("rect", { class: "c-" + name, x: x - width, y: 0, width, height: 7 }) : null;
    }).filter(Boolean));
}

function quantiles(r) {
  const row = (name, cells) => h("tr", null, h("th", { scope: "row" }, name),
    ...cells.map(([q, value]) => h("td", null, h("small", null, q), value)));
  return [h("tbody", null,
    row("Speed, tok/s", [["p10", digits(r.tps.p10)], ["p50", digits(r.tps.p50)], ["p90", digits(r.tps.p90)]]),
    row("First token", [["p50", seconds(r.ttft_s.p50)], ["p90", seconds(r.ttft_s.p90)], ["p99", seconds(r.ttft_s.p99)]]),
  )];
}

// basis says what the quantiles rest on.
function basis(r) {
  if (!r.ttft_streams && !r.tps_streams) return "No stream measured yet.";
  if (r.ttft_streams === r.tps_streams) return `Of ${plural(r.tps_streams, "stream", "streams")}`;
  return `Speed of ${plural(r.tps_streams, "stream", "streams")}, first token of ${count(r.ttft_streams)}`;
}

export class RouteCard {
  constructor() {
    this.name = h("h3", { class: "mono" });
    this.class = h("span", { class: "chip" });
    this.free = h("p", { class: "free" });
    this.promise = h("p", { class: "promise" });
    this.share = h("b");
    this.shareNote = h("span");
    this.kept = h("p", { class: "kept" }, this.share, this.shareNote);
    this.stack = h("div", { class: "stack", role: "img" });
    this.counts = h("ul", { class: "counts" });
    this.quantiles = h("table", { class: "quantiles" });
    this.basis = h("p", { class: "note" });
    this.el = h("article", { class: "card route" },
      h("header", null, this.name, this.class, this.free),
      this.promise, this.kept, this.stack, this.counts, this.quantiles, this.basis);
  }

  update(r) {
    text(this.name, r.model === "*" ? "* any other" : r.model);
    attr(this.name, "title", r.model);
    text(this.class, r.class);
    rebuild(this.free, [r.free, r.free_is_lower_bound, r.waiting], () => [
      ...(r.waiting ? [h("b", null, whole(r.waiting)), " in line · "] : []),
      ...(r.free === null
        ? ["no limit known"]
        : [h("b", null, (r.free_is_lower_bound ? "≥ " : "") + whole(r.free)), r.free === 1 ? " place free" : " places free"]),
    ]);
    attr(this.free, "title", r.free === null ? "Neither a floor nor a cap limits this route." : r.free_is_lower_bound ? "Limited by what was ever tried, not by speed: there may be room for more." : "Users of this route that fit on top of the present load.");
    text(this.promise, promise(r));
    const k = kept(r);
    text(this.share, k.share);
    text(this.shareNote, k.note);
    attr(this.kept, "class", "kept " + k.tone);
    const numbers = results.map((name) => r[name]);
    attr(this.stack, "aria-label", `${whole(r.offered)} requests: ` + results.map((name) => `${r[name]} ${name}`).join(", "));
    rebuild(this.stack, numbers, () => [stack(r)]);
    rebuild(this.counts, numbers, () => [
      h("li", null, h("b", null, whole(r.offered)), " offered"),
      ...results.map((name) => h("li", { title: meaning[name] }, h("i", { class: "c-" + name }), h("b", null, whole(r[name])), " " + name)),
    ]);
    rebuild(this.quantiles, [r.tps, r.ttft_s], () => quantiles(r));
    text(this.basis, basis(r));
  }
}
