// One chart: the learned curve of one target, what it rests on, the floors it
// has to keep, and where the load is.

import { s, attr } from "./dom.js";
import { plain } from "./format.js";

const pad = { left: 42, right: 36, top: 22, bottom: 34 };

// niceStep returns 1, 2 or 5 times a power of ten, so that about `want` steps
// make up `range`.
function niceStep(range, want) {
  const raw = range / want;
  const power = 10 ** Math.floor(Math.log10(raw));
  const lead = raw / power;
  return power * (lead > 5 ? 10 : lead > 2 ? 5 : lead > 1 ? 2 : 1);
}

// at interpolates the line ys over ns at n, in log n; null outside.
export function at(ns, ys, n) {
  if (!ns.length || n < ns[0] || n > ns[ns.length - 1]) return null;
  let i = ns.findIndex((x) => x >= n);
  if (ns[i] === n || i === 0) return ys[i];
  if (ys[i] === null || ys[i - 1] === null) return null;
  const share = Math.log(n / ns[i - 1]) / Math.log(ns[i] / ns[i - 1]);
  return ys[i - 1] + share * (ys[i] - ys[i - 1]);
}

// Views of a curve: what one stream gets, what all get together, and when the
// first token comes.
const views = {
  stream: { y: (tps) => tps, name: "tok/s per stream" },
  together: { y: (tps, n) => tps * n, name: "tok/s of all together" },
};

const known = (y) => y !== null && y !== undefined;

// scales maps n (in log) and tokens/s (from 0) to pixels.
function scales(v, width, height) {
  const of = views[v.view].y;
  const maxN = Math.max(8, v.curve.n.at(-1) ?? 0, ...v.bins.map((b) => b.n), v.n, v.m);
  const line = (ys) => v.curve.n.map((n, i) => (known(ys[i]) ? of(ys[i], n) : null));
  const ghost = v.ghost ? line(v.curve.tps).map((y) => y && y / v.scale) : [];
  const speeds = [...line(v.curve.tps), ...ghost, ...v.bins.filter((b) => known(b.tps)).map((b) => of(b.tps, b.n)),
    ...(v.view === "stream" ? v.floors.map((f) => f.tps * 1.1) : []), ...(v.other ? v.other.curve.n.map((n, i) => of(v.other.curve.tps[i] ?? 0, n)) : []), 1].filter(known);
  const top = Math.max(...speeds) * 1.05;
  const step = niceStep(top, height < 210 ? 4 : 5);
  const maxY = Math.ceil(top / step) * step;
  const inner = { w: width - pad.left - pad.right, h: height - pad.top - pad.bottom };
  const octaves = Math.log2(maxN * 1.04);
  return {
    maxN, maxY, step, name: views[v.view].name,
    x: (n) => pad.left + (Math.log2(Math.min(Math.max(n, 1), maxN * 1.04)) / octaves) * inner.w,
    y: (tps, n) => pad.top + (1 - Math.min(of(tps, n) / maxY, 1.02)) * inner.h,
    flat: (y) => pad.top + (1 - y / maxY) * inner.h,
    n: (px) => Math.min(maxN, Math.max(1, Math.round(2 ** (((px - pad.left) / inner.w) * octaves)))),
    left: pad.left, right: width - pad.right, top: pad.top, bottom: height - pad.bottom,
  };
}

// path draws the points of the line that are known.
function path(ns, ys, k, from = 0, to = Infinity) {
  let d = "";
  let pen = "M";
  ns.forEach((n, i) => {
    if (n < from || n > to || !known(ys[i])) return;
    d += `${pen}${k.x(n).toFixed(1)} ${k.y(ys[i], n).toFixed(1)}`;
    pen = "L";
  });
  return d;
}

function axes(k) {
  let grid = "";
  const out = [];
  for (let y = 0; y <= k.maxY + 1e-9; y += k.step) {
    grid += `M${k.left} ${k.flat(y).toFixed(1)}H${k.right}`;
    out.push(s("text", { x: k.left - 7, y: k.flat(y) + 4, "text-anchor": "end" }, k.maxY >= 10000 ? +(y / 1000).toFixed(3) + "k" : String(+y.toFixed(6))));
  }
  const every = Math.ceil(26 / (k.x(2) - k.x(1))); // octaves between two labels
  for (let i = 0; 2 ** i <= k.maxN; i++) {
    const x = k.x(2 ** i);
    grid += `M${x.toFixed(1)} ${k.top}V${k.bottom}`;
    if (i % every === 0) out.push(s("text", { x, y: k.bottom + 16, "text-anchor": "middle" }, String(2 ** i)));
  }
  out.push(s("text", { x: k.left - 34, y: 11 }, k.name));
  out.push(s("text", { x: k.right, y: k.bottom + 30, "text-anchor": "end" }, "streams decoding at once (n)"));
  return [s("path", { class: "grid-line", d: grid }), ...out];
}

function evidence(v, k) {
  const out = [];
  const { curve, support } = v;
  const [from, seen] = support ?? [1, 0];
  if (support) {
    const x1 = k.x(from) - 4;
    out.push(s("rect", { class: "support", x: x1, y: k.top, width: k.x(seen) + 4 - x1, height: k.bottom - k.top }));
  }
  const band = path(curve.n, curve.tps, k, from, seen) + path([...curve.n].reverse(), [...curve.low].reverse(), k, from, seen).replace(/^M/, "L");
  if (curve.n.length) {
    if (curve.prior) out.push(s("path", { class: "prior-line", d: path(curve.n, curve.prior, k) }));
    if (v.ghost) out.push(s("path", { class: "ghost", d: path(curve.n, curve.tps.map((y) => (known(y) ? y / v.scale : null)), k) }));
    out.push(s("path", { class: "band", d: band + "Z" }));
    // Dashes where nothing was seen: left of the first and right of the last.
    const first = curve.n.find((n) => n >= from) ?? 1, last = curve.n.findLast((n) => n <= seen) ?? 1;
    for (const [name, ys] of [["low", curve.low], ["curve", curve.tps]]) {
      out.push(s("path", { class: name, d: path(curve.n, ys, k, first, last) }));
      out.push(s("path", { class: name + " beyond", d: path(curve.n, ys, k, 1, first) + path(curve.n, ys, k, last, Infinity) }));
    }
  }
  if (v.asked) out.push(s("path", { class: "asked", d: path(v.asked.n, v.asked.tps, k) }));
  if (v.other) {
    out.push(s("path", { class: "other", d: path(v.other.curve.n, v.other.curve.tps, k, 1, k.maxN) }));
  }
  for (const b of v.bins) {
    if (known(b.tps) && b.tokens > 0) {
      const r = Math.min(6, 2.2 + Math.log10(1 + (b.steps ?? 0)));
      out.push(s("circle", { class: "bin", cx: k.x(b.n), cy: k.y(b.tps, b.n), r: r.toFixed(1), "data-n": b.n, "data-tps": b.tps }));
    } else if (known(b.prior)) {
      const x = k.x(b.n), y = k.y(b.prior, b.n);
      out.push(s("path", { class: "prior", "data-n": b.n, d: `M${x} ${y - 5}L${x + 5} ${y}L${x} ${y + 5}L${x - 5} ${y}Z` }));
    }
  }
  return out;
}

function load(v, k) {
  const out = [];
  if (v.m > Math.max(v.n, 1)) {
    out.push(s("rect", { class: "waiting", x: k.x(v.n), y: k.top, width: k.x(v.m) - k.x(v.n), height: k.bottom - k.top }));
  }
  if (v.n > 0) {
    const x = k.x(v.n);
    const end = x > k.right - 70;
    out.push(s("line", { class: "now", x1: x, x2: x, y1: k.top, y2: k.bottom }));
    out.push(s("text", { class: "now-name", x: x + (end ? -6 : 6), y: k.top + 10, "text-anchor": end ? "end" : "start" }, `n = ${v.n} now`));
  }
  return out;
}

const manyFloors = 4;

// floors are drawn with their figures at the right edge, pushed apart where
// they would overlap; which routes they belong to stands below the chart. Of
// many, only the lowest and the highest have a figure.
function floors(v, k) {
  const out = [];
  let free = Infinity;
  const sorted = [...v.floors].sort((a, b) => a.tps - b.tps);
  const ns = [];
  for (let n = 1; n <= k.maxN; n *= 1.25) ns.push(n);
  const line = (f) => (v.view === "stream" ? `M${k.left} ${k.y(f.tps, 1).toFixed(1)}H${k.right}` : path(ns, ns.map(() => f.tps), k));
  const between = sorted.length > manyFloors ? sorted.splice(1, sorted.length - 2) : [];
  if (between.length) out.push(s("path", { class: "floor many", d: between.map(line).join("") }));
  for (const f of sorted) {
    const y = k.y(f.tps, 1);
    out.push(s("path", { class: "floor", d: line(f), "data-tps": f.tps }));
    if (v.view === "stream") {
      const label = Math.min(y + 4, free);
      free = label - 12;
      out.push(s("text", { class: "floor-name", x: k.right + 5, y: label }, plain(f.tps)));
    }
    // Where the bound crosses the floor; a bound that never came down to it
    // crosses nowhere. And up to where streams are placed by now.
    if (f.capacity > 0 && !f.capacity_is_lower_bound) out.push(s("circle", { class: "holds-at", cx: k.x(f.capacity), cy: k.y(f.tps, f.capacity), r: 4.2 }));
    if (known(f.admits) && !f.admits_is_lower_bound && v.m + f.admits > 0) {
      const x = k.x(v.m + f.admits), at = k.y(f.tps, v.m + f.admits);
      out.push(s("path", { class: "admits", "data-n": v.m + f.admits, d: `M${x - 5.5} ${at - 11}H${x + 5.5}L${x} ${at - 2}Z` }));
    }
  }
  return out;
}

// firstToken draws the time to the first token by the prompt tokens that have
// to be read before it, the request's own and those ahead.
function firstToken(v, k) {
  const { base_s: base, prefill_tokens_per_s: rate } = v.ttft;
  const top = k.maxY;
  const xs = [];
  for (let x = k.from; x <= k.to * 1.001; x *= 2 ** 0.25) xs.push(x);
  const d = xs.map((x, i) => `${i ? "L" : "M"}${k.px(x).toFixed(1)} ${k.flat(Math.min(base + x / rate, top)).toFixed(1)}`).join("");
  const out = [];
  let grid = "";
  for (let y = 0; y <= top + 1e-9; y += k.step) {
    grid += `M${k.left} ${k.flat(y).toFixed(1)}H${k.right}`;
    out.push(s("text", { x: k.left - 7, y: k.flat(y) + 4, "text-anchor": "end" }, String(+y.toFixed(4))));
  }
  for (let x = k.from; x <= k.to; x *= 4) {
    grid += `M${k.px(x).toFixed(1)} ${k.top}V${k.bottom}`;
    out.push(s("text", { x: k.px(x), y: k.bottom + 16, "text-anchor": "middle" }, x >= 1024 ? x / 1024 + "k" : String(x)));
  }
  for (const limit of [...new Set(v.limits)]) {
    out.push(s("path", { class: "floor", d: `M${k.left} ${k.flat(limit).toFixed(1)}H${k.right}` }), s("text", { class: "floor-name", x: k.right + 3, y: k.flat(limit) + 4 }, plain(limit) + "\u00a0s"));
  }
  out.push(s("text", { x: k.left - 34, y: 11 }, "seconds to the first token"), s("text", { x: k.right, y: k.bottom + 30, "text-anchor": "end" }, "prompt tokens, own and ahead"));
  return [s("path", { class: "grid-line", d: grid }), ...out, s("path", { class: "curve", d })];
}

function firstTokenScales(v, width, height) {
  const from = 64, to = 65536;
  const most = Math.max(v.ttft.base_s + 16384 / v.ttft.prefill_tokens_per_s, ...v.limits.map((l) => l * 1.2), 0.1);
  const step = niceStep(most, 4), maxY = Math.ceil(most / step) * step;
  return {
    from, to, step, maxY, left: pad.left, right: width - pad.right, top: pad.top, bottom: height - pad.bottom,
    px: (x) => pad.left + (Math.log2(x / from) / Math.log2(to / from)) * (width - pad.left - pad.right),
    flat: (y) => pad.top + (1 - y / maxY) * (height - pad.top - pad.bottom),
  };
}

// Chart draws into an <svg> and lets the reader move along n, with a pointer
// or with the arrow keys. read(n) is told where the reader is; null = nowhere.
export class Chart {
  constructor(read) {
    this.read = read;
    this.reader = null; // n the reader points at
    this.svg = s("svg", { role: "slider", tabindex: 0, "aria-valuemin": 1 });
    this.marks = s("g");
    this.cursor = s("g");
    this.svg.append(this.marks, this.cursor);
    this.svg.addEventListener("pointermove", (e) => this.point(this.k?.n(e.clientX - this.svg.getBoundingClientRect().left)));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.svg.addEventListener("blur", () => this.point(null));
    this.svg.addEventListener("keydown", (e) => this.key(e));
  }

  key(e) {
    if (!this.k) return;
    const n = this.reader ?? Math.max(1, this.view.n);
    const next = { ArrowRight: n + 1, ArrowUp: n + 1, ArrowLeft: n - 1, ArrowDown: n - 1, PageUp: n * 2, PageDown: Math.round(n / 2), Home: 1, End: this.k.maxN }[e.key];
    if (e.key === "Escape") this.point(null);
    if (next === undefined) return;
    e.preventDefault();
    this.point(Math.min(this.k.maxN, Math.max(1, next)));
  }

  point(n) {
    this.reader = n ?? null;
    this.drawCursor();
    this.read(this.reader);
  }

  // draw shows view at the size that the chart has. It does nothing while
  // neither has changed.
  draw(view) {
    this.view = view;
    const { width, height } = this.svg.getBoundingClientRect();
    if (width < 80 || height < 80) return;
    const key = JSON.stringify([view, width, height]);
    if (key === this.drawn) return;
    this.drawn = key;
    attr(this.svg, "viewBox", `0 0 ${width} ${height}`);
    if (view.view === "ttft") {
      this.k = null;
      this.marks.replaceChildren(...firstToken(view, firstTokenScales(view, width, height)));
      this.drawCursor();
      return;
    }
    const k = (this.k = scales(view, width, height));
    attr(this.svg, "aria-valuemax", k.maxN);
    this.marks.replaceChildren(...axes(k), ...load(view, k), ...evidence(view, k), ...floors(view, k));
    this.drawCursor();
  }

  drawCursor() {
    const { k, reader, view } = this;
    if (!k || reader === null) {
      this.cursor.replaceChildren();
      return;
    }
    const x = k.x(reader);
    const tps = at(view.curve.n, view.curve.tps, reader);
    this.cursor.replaceChildren(
      s("line", { class: "cursor", x1: x, x2: x, y1: k.top, y2: k.bottom }),
      ...(tps === null ? [] : [s("circle", { class: "cursor-dot", cx: x, cy: k.y(tps, reader), r: 4.5 })]),
    );
  }
}
