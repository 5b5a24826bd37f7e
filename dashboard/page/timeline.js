// What happened, on one axis of time: a lane for each route or backend that
// anything happened to, and the same as a list.

import { attr, byId, h, keyed, rebuild, s, text } from "./dom.js";
import { clock, plural, since, span } from "./format.js";
import { linkOf } from "./links.js";
import { ticks } from "./trend.js";

const lengths = { "5m": 300, "1h": 3600, "6h": 21600 };
const leastS = 900; // the axis is never shorter: what led to it matters
const maxLanes = 8;
const shownFirst = 8;

const tones = {
  backend_down: "bad", errors: "bad", floor: "bad", shedding: "warn", overload: "warn", drift: "warn",
  breaker: "warn", config_refused: "warn", loading: "warn", store: "warn", drain: "idle", reload: "idle", discovery: "idle", start: "idle",
};

// Lane draws the marks of one subject. Its pictures are stretched, so all that
// it holds are rectangles.
class Lane {
  constructor() {
    this.name = h("span", { class: "lane-name" });
    this.svg = s("svg", { class: "lane", viewBox: "0 0 1000 20", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.el = h("div", { class: "lane-row" }, this.name, this.svg);
  }

  update({ of, subject, marks, from, to }) {
    rebuild(this.name, [of, subject], () => [of === "gateway" ? "gateway" : h("a", { href: linkOf(of, subject) }, subject), of === "gateway" ? "" : h("small", null, " " + of)]);
    const x = (t) => Math.max(0, Math.min(1000, ((t - from) / (to - from)) * 1000));
    const rects = marks.map((m) => {
      const start = x(Date.parse(m.time)), end = m.ended === null ? 1000 : x(Date.parse(m.ended));
      return [m.kind, m.ended === null, Math.round(start * 2) / 2, Math.max(4, Math.round((end - start) * 2) / 2), m.text];
    });
    rebuild(this.svg, rects, () => rects.map(([kind, lasts, left, width, words]) =>
      s("rect", { class: `mark ${tones[kind] ?? "idle"}${lasts ? " lasts" : ""}`, x: Math.min(left, 996), y: 3, width, height: 14 }, s("title", null, words))));
  }
}

class Item {
  constructor() {
    this.when = h("time");
    this.what = h("span");
    this.el = h("li", null, this.when, this.what);
  }

  update({ mark: m, now }) {
    const lasts = m.ended === null, length = lasts ? now - Date.parse(m.time) : Date.parse(m.ended) - Date.parse(m.time);
    const lead = `${m.of} ${m.subject}: `; // the log says it in one line, here the link does
    const words = m.text.startsWith(lead) ? m.text.slice(lead.length) : m.text;
    text(this.when, since(m.time, now));
    attr(this.when, "datetime", m.time);
    attr(this.el, "class", `mark ${tones[m.kind] ?? "idle"}${lasts ? " lasts" : ""}`);
    rebuild(this.what, [words, m.subject, m.replica, lasts, length >= 1000 ? span(length / 1000) : ""], () => [
      m.of === "gateway" ? "" : h("a", { href: linkOf(m.of, m.subject) }, m.subject), m.of === "gateway" ? "" : ": ", words,
      m.replica ? h("small", null, ` on ${m.replica}`) : "",
      lasts ? h("small", null, length >= 1000 ? ` for ${span(length / 1000)} so far` : " now") : length >= 1000 ? h("small", null, ` for ${span(length / 1000)}`) : ""]);
  }
}

export class Timeline {
  constructor() {
    this.shown = shownFirst;
    byId("timeline-more").addEventListener("click", () => {
      this.shown = this.shown === shownFirst ? 200 : shownFirst;
      this.again?.();
    });
  }

  update(world, filter) {
    this.again = () => this.update(world, filter);
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const length = world.window === "start" ? world.windowS : lengths[world.window];
    const to = world.time, begin = to - Math.max(length, leastS) * 1000;
    // Before the gateway ran, nothing is known to have happened.
    const oldest = Math.min(Date.parse(world.since), ...world.marks.map((m) => Date.parse(m.time)));
    const from = Math.max(begin, Math.min(oldest - 5000, to - 120e3));
    const marks = world.marks.filter((m) => (m.ended === null || Date.parse(m.ended) >= from) && words.every((w) => `${m.subject} ${m.kind} ${m.text}`.toLowerCase().includes(w)));
    const lanes = new Map();
    for (const m of marks) {
      const key = m.of + "\n" + m.subject;
      const lane = lanes.get(key) ?? { key, of: m.of, subject: m.subject, marks: [], from, to, lasts: false };
      lane.marks.push(m);
      lane.lasts ||= m.ended === null;
      lanes.set(key, lane);
    }
    const sorted = [...lanes.values()].sort((a, b) => b.lasts - a.lasts || (a.of + a.subject < b.of + b.subject ? -1 : 1)).slice(0, maxLanes);
    keyed(byId("lanes"), sorted, (l) => l.key, () => new Lane());
    this.showAxis(from, to, sorted.length > 0);
    keyed(byId("marks"), marks.slice(0, this.shown).map((mark) => ({ mark, now: to })), (x) => x.mark.id, () => new Item());
    attr(byId("timeline-more"), "hidden", marks.length <= shownFirst);
    text(byId("timeline-more"), this.shown === shownFirst ? `Show all ${marks.length}` : `Show the last ${shownFirst}`);
    attr(byId("timeline-none"), "hidden", marks.length > 0);
    text(byId("timeline-none"), `Nothing happened in the last ${span((to - from) / 1000)}.`);
    text(byId("timeline-note"), `the last ${span((to - from) / 1000)}` + (lanes.size > maxLanes ? ` · ${plural(lanes.size, "lane", "lanes")}, ${maxLanes} of them shown` : ""));
  }

  showAxis(from, to, some) {
    const axis = byId("axis");
    attr(axis.parentElement, "hidden", !some);
    const marks = ticks(from, to, innerWidth < 700 ? 4 : 9);
    marks.at = marks.at.filter((t) => Math.abs((t - from) / (to - from) - 0.5) < 0.46); // whole within the axis
    rebuild(axis, marks.at, () => marks.at.map((t) => h("span", null, clock(t, marks.seconds))));
    [...axis.children].forEach((el, i) => el.style.setProperty("--at", ((marks.at[i] - from) / (to - from)).toFixed(4)));
  }
}
