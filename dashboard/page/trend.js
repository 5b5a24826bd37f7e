// Figures over time: small in a row of a table, larger with axes in what a row
// opens into.

import { attr, s } from "./dom.js";
import { clock, digits } from "./format.js";

const known = (y) => y !== null && y !== undefined;

// area draws ys, from 0 to top, as a closed shape for every stretch that is known.
function area(ys, top, x, y) {
  let d = "", open = false;
  ys.forEach((v, i) => {
    if (!known(v)) {
      if (open) d += `L${x(i)} ${y(0)}Z`;
      open = false;
      return;
    }
    if (!open) d += `M${x(i)} ${y(0)}`;
    d += `L${x(i)} ${y(v / top)}L${x(i + 1)} ${y(v / top)}`;
    open = true;
  });
  return open ? d + `L${x(ys.length)} ${y(0)}Z` : d;
}

const round = (v) => +v.toFixed(1);

// harm is what was offered and not kept, per second; a stream that could not be
// judged hurt nobody.
export const harm = (series) => series.offered_per_s.map((o, i) => (known(o) ? series.missed_per_s[i] + series.shed_per_s[i] + series.failed_per_s[i] : null));

// Spark is the load of a route over time, and in another colour what of it was
// not kept.
export class Spark {
  constructor() {
    this.load = s("path", { class: "spark-load" });
    this.harm = s("path", { class: "spark-harm" });
    this.el = s("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, this.load, this.harm);
  }

  update(series) {
    if (series === this.series) return;
    this.series = series;
    const offered = series?.offered_per_s ?? [];
    const top = Math.max(1e-9, ...offered.filter(known)) * 1.05;
    const x = (i) => round((i / Math.max(offered.length, 1)) * 100), y = (share) => round(24 - share * 23);
    attr(this.load, "d", area(offered, top, x, y));
    attr(this.harm, "d", series ? area(harm(series), top, x, y) : "");
  }
}

// ticks of a time axis, at round times of the reader's day.
export function ticks(from, to, want) {
  const steps = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600].map((sec) => sec * 1000);
  const step = steps.find((st) => (to - from) / st <= want) ?? 86400e3;
  const zone = new Date(from).getTimezoneOffset() * 60e3;
  const out = [];
  for (let t = Math.ceil((from - zone) / step) * step + zone; t <= to; t += step) out.push(t);
  return { at: out, seconds: step < 60e3 };
}

const pad = { left: 40, right: 8, top: 6, bottom: 18 };

// lines draws one figure over time, with its limit: lines = [{ ys, name }].
// It returns an <svg> that is made anew at each call.
export function lines({ times, stepMS, ys, limit, name, width, height, unit }) {
  const from = times[0], to = times.at(-1) + stepMS;
  const top = Math.max(1e-9, limit ?? 0, ...ys.filter(known)) * 1.12;
  const x = (t) => round(pad.left + ((t - from) / (to - from)) * (width - pad.left - pad.right));
  const y = (v) => round(pad.top + (1 - v / top) * (height - pad.top - pad.bottom));
  let d = "", pen = "M";
  ys.forEach((v, i) => {
    if (!known(v)) pen = "M";
    else {
      d += `${pen}${x(times[i])} ${y(v)}L${x(times[i] + stepMS)} ${y(v)}`;
      pen = "L";
    }
  });
  const axis = ticks(from, to, width / 90);
  const last = ys.findLast(known);
  return s("svg", { class: "trend", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${name} over time, at last ${digits(last ?? null)} ${unit}` },
    s("path", { class: "grid-line", d: `M${pad.left} ${y(0)}H${width - pad.right}` + axis.at.map((t) => `M${x(t)} ${pad.top}V${y(0)}`).join("") }),
    s("text", { x: pad.left - 5, y: y(top / 1.12) + 4, "text-anchor": "end" }, digits(top / 1.12)),
    s("text", { x: pad.left - 5, y: y(0) + 2, "text-anchor": "end" }, "0"),
    ...axis.at.map((t) => s("text", { x: x(t), y: height - 4, "text-anchor": "middle" }, clock(t, axis.seconds))),
    ...(limit ? [s("path", { class: "floor", d: `M${pad.left} ${y(limit)}H${width - pad.right}` })] : []),
    s("path", { class: "line", d }));
}
