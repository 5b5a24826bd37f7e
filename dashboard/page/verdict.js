// The verdict: what is broken, since when, why. It stands in the page, in the
// title of the tab and in its icon.

import { attr, byId, h, rebuild, text } from "./dom.js";
import { plural, rate, whole } from "./format.js";
import { linkOf } from "./links.js";

const shownCauses = 5;
const icons = { ok: "/favicon.svg", warn: "/favicon-warn.svg", bad: "/favicon-bad.svg", none: "/favicon.svg" };

// fold puts together what has one reason: the routes that suffer from a backend
// with that backend, and then all of which the same is said.
function fold(causes) {
  const gather = (items, keyOf) => {
    const kept = new Map();
    for (const c of items) {
      const same = kept.get(keyOf(c));
      if (same) same.all.push(...c.all);
      else kept.set(keyOf(c), { ...c, all: [...c.all] });
    }
    return [...kept.values()];
  };
  return gather(gather(causes.map((c) => ({ ...c, all: [c] })), (c) => c.cause_backend ?? c.cause), (c) => c.cause);
}

const longest = 150; // characters of a headline that is read at a glance

// first are so many of the causes, and what is wrong with the gateway: a file that is
// refused may be the one that was to help.
const first = (causes, most) => causes.filter((c, i) => i < most || c.of === "gateway");

// shorter says of many causes the first two, and of many names how many.
function shorter(v) {
  const lead = v.state === "bad" ? v.text.split(":")[0] + ": " : "";
  return lead + first(fold(v.causes), 2).map((c) => {
    const backends = c.all.filter((x) => x.of === "backend");
    const who = backends.length > 2 ? `${backends.length} backends` : backends.map((x) => x.name).join(", ");
    return who ? `${who}: ${c.cause}` : c.cause;
  }).join("; ");
}

// headline is what is broken and why, in one line.
function headline(world) {
  const { verdict: v, routes } = world;
  if (v && v.state !== "ok") return v.text.length > longest ? shorter(v) : v.text;
  const short = routes.filter((r) => r.cause === null && r.attainment_goal !== null && r.attainment !== null && r.attainment < r.attainment_goal);
  if (short.length) {
    return `Nothing is wrong now; ${plural(short.length, "route", "routes")} still below the goal over ${spoken[world.window]}`;
  }
  const promised = routes.filter((r) => r.min_tps !== null || r.max_ttft_s !== null);
  if (!routes.length) return "No route is configured";
  if (!promised.length) return "Nothing is wrong; no route promises a speed";
  return promised.length === 1 ? `${promised[0].model} keeps what it promises` : `All ${whole(promised.length)} routes keep what they promise`;
}

export const spoken = { "5m": "5 minutes", "1h": "1 hour", "6h": "6 hours", start: "the time since the start" };

function reason(c) {
  const who = c.all.map((x) => x.name || "gateway");
  const routes = c.all.filter((x) => x.of === "route");
  const names = [...new Set(who)];
  return h("li", { "data-kind": c.cause_kind },
    ...names.slice(0, 3).flatMap((name, i) => {
      const of = c.all.find((x) => (x.name || "gateway") === name).of;
      return [i ? ", " : "", of === "gateway" ? h("b", null, name) : h("a", { href: linkOf(of, name) }, name)];
    }),
    names.length > 3 ? ` and ${plural(names.length - 3, "more", "more")}` : "",
    h("span", { class: "cause" }, c.cause),
    c.cause_backend && !names.includes(c.cause_backend) && routes.length ? h("a", { class: "look", href: linkOf("backend", c.cause_backend) }, "look at " + c.cause_backend) : "",
    c.advice ? h("span", { class: "advice" }, c.advice) : "");
}

function showSummary({ backends, routes }) {
  const up = backends.filter((b) => b.health === "up").length;
  const sum = (pick) => backends.reduce((all, b) => all + pick(b), 0);
  const n = sum((b) => b.in_flight.n), m = sum((b) => b.in_flight.m);
  const tokens = sum((b) => b.tokens_per_s ?? 0);
  const line = routes.reduce((all, r) => all + r.waiting, 0);
  const shed = routes.reduce((all, r) => all + (r.shed_per_s ?? 0), 0);
  rebuild(byId("summary"), [up, backends.length, n, m, line, Math.round(tokens), rate(shed)], () => [
    [whole(up), ` of ${whole(backends.length)}`, backends.length === 1 ? "backend up" : "backends up", up < backends.length ? "bad" : ""],
    [whole(n), "", "decoding", ""],
    [whole(Math.max(m - n, 0)), "", "await first token", ""],
    [whole(line), "", "in line", ""],
    [rate(shed), "/s", "shed, mean of 30 s", shed > 0 ? "bad" : ""],
    [whole(tokens), "/s", "tokens out", ""],
  ].map(([value, small, name, tone]) => h("div", { class: tone || null }, h("dt", null, name), h("dd", null, value, small ? h("small", null, small) : ""))));
}

export function showVerdict(world) {
  const v = world.verdict;
  const line = headline(world);
  const mending = v?.state === "ok" && line.startsWith("Nothing is wrong");
  const state = mending ? "warn" : v?.state ?? "none";
  attr(byId("verdict"), "class", `verdict ${state}`);
  attr(byId("verdict"), "data-state", state);
  text(byId("headline"), line);
  const causes = fold(v?.causes ?? []), shown = first(causes, shownCauses), more = causes.length - shown.length;
  rebuild(byId("reasons"), causes.map((c) => [c.cause, c.advice, c.all.map((x) => [x.of, x.name])]), () => [
    ...shown.map(reason),
    more ? h("li", { class: "rest" }, `and ${plural(more, "more cause", "more causes")}, with the routes and backends below`) : "",
  ]);
  const bad = world.routes.filter((r) => r.cause).length;
  const title = { ok: "Pacer · all kept", warn: "◐ Pacer · " + (mending ? "mending" : "look"), bad: `● ${bad || 1} of ${Math.max(world.routes.length, 1)} broken · Pacer`, none: "Pacer" }[state];
  if (document.title !== title) document.title = title;
  attr(byId("icon"), "href", icons[state]);
  showSummary(world);
}
