// The page: one stream of events from the admin API, shown in cards. Elements
// are made once and then kept, so nothing flickers and no focus is lost.

import { h, text, attr, rebuild, keyed } from "./dom.js";
import { clock, span, whole } from "./format.js";
import { RouteCard } from "./route.js";
import { TargetCard } from "./target.js";

const staleAfter = 5000; // ms without an event: the connection is no good
const retryAfter = 4000; // ms, when the server has refused for good
const filterFrom = 7; // targets from which a filter helps
const denseFrom = 13; // targets from which the cards get smaller

const $ = (id) => document.getElementById(id);
const keyOf = (t) => t.backend + "\n" + t.model;

const state = {
  event: null,
  at: 0, // performance.now() of the last event
  broken: false, // the connection ended since
  learned: new Map(), // by target: sent only when it changes
};

// visibility tells each chart when it comes into sight, and when its size
// changes.
const visibility = {
  tell: new Map(),
  seen: new Set(),
  watch(el, tell) {
    this.tell.set(el, tell);
    this.sight.observe(el);
    this.size.observe(el);
  },
  forget(el) {
    this.tell.delete(el);
    this.seen.delete(el);
    this.sight.unobserve(el);
    this.size.unobserve(el);
  },
};
visibility.sight = new IntersectionObserver((entries) => {
  for (const e of entries) {
    visibility.seen[e.isIntersecting ? "add" : "delete"](e.target);
    visibility.tell.get(e.target)?.(e.isIntersecting);
  }
}, { rootMargin: "400px" });
visibility.size = new ResizeObserver((entries) => {
  for (const e of entries) if (visibility.seen.has(e.target)) visibility.tell.get(e.target)?.(true);
});

function take(event) {
  const kept = new Map();
  for (const t of event.targets) {
    const key = keyOf(t);
    kept.set(key, t.learned ?? state.learned.get(key) ?? null);
  }
  state.learned = kept;
  state.event = event;
  state.at = performance.now();
  state.broken = false;
}

function showSummary(e) {
  const backends = new Map(e.targets.map((t) => [t.backend, t]));
  const all = [...backends.values()];
  const up = all.filter((t) => t.health === "up").length;
  // in_flight is of a whole backend, or of one model that is counted by itself.
  const counts = [...new Map(e.targets.map((t) => [t.separate ? keyOf(t) : t.backend, t])).values()];
  const n = counts.reduce((sum, t) => sum + t.in_flight.n, 0);
  const m = counts.reduce((sum, t) => sum + t.in_flight.m, 0);
  const line = e.routes.reduce((sum, r) => sum + r.waiting, 0);
  rebuild($("summary"), [up, all.length, n, m, line], () => [
    [whole(up), ` of ${whole(all.length)}`, all.length === 1 ? "backend up" : "backends up"],
    [whole(n), "", "streams decoding"],
    [whole(Math.max(m - n, 0)), "", "waiting for a first token"],
    [whole(line), "", "in line, not sent yet"],
  ].map(([value, small, name]) => h("div", null, h("dt", null, name), h("dd", null, value, h("small", null, small)))));
}

function matches(t, routes, words) {
  const names = routes.filter((r) => r.targets.some((x) => x.backend === t.backend && x.model === t.model)).map((r) => r.model);
  const all = [t.backend, t.model, t.kind, t.health, ...Object.values(t.labels ?? {}), ...names].join(" ").toLowerCase();
  return words.every((w) => all.includes(w));
}

function show() {
  const e = state.event;
  if (!e) return;
  const time = Date.parse(e.time);
  showSummary(e);
  text($("routes-note"), `Counts since ${new Date(e.since).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })} (${span((time - Date.parse(e.since)) / 1000)}), ` +
    `this replica. Quantiles of the last ${span(e.window_s)}.`);
  keyed($("routes"), e.routes, (r) => r.model, () => new RouteCard());

  attr($("filter-label"), "hidden", e.targets.length < filterFrom);
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = e.targets.filter((t) => matches(t, e.routes, words));
  $("cards").classList.toggle("dense", e.targets.length >= denseFrom);
  attr($("nothing"), "hidden", shown.length > 0 || e.targets.length === 0);
  keyed($("cards"), shown.map((target) => ({ target, learned: state.learned.get(keyOf(target)), routes: e.routes, time, dataURL: e.data_url })),
    (x) => keyOf(x.target), () => new TargetCard(visibility));
}

// showConnection says how fresh the page is.
function showConnection() {
  const stale = !state.event ? performance.now() > staleAfter : performance.now() - state.at > staleAfter;
  const pill = $("connection");
  const lost = $("lost");
  document.body.classList.toggle("stale", stale && state.event !== null);
  attr(lost, "hidden", !stale);
  if (stale) {
    text(pill, "Connection lost");
    attr(pill, "class", "pill bad");
    text(lost, state.event
      ? `The connection to Pacer is lost. This is the state of ${clock(Date.parse(state.event.time))}; trying again.`
      : "Pacer does not answer; trying again.");
  } else if (state.broken) {
    text(pill, "Reconnecting");
    attr(pill, "class", "pill waiting");
  } else if (state.event) {
    text(pill, "Live");
    attr(pill, "class", "pill good");
  }
}

let source = null;

function connect() {
  source?.close();
  source = new EventSource("/api/v1/events");
  source.onmessage = (m) => {
    take(JSON.parse(m.data));
    show();
    showConnection();
  };
  // The browser comes back by itself, unless it was refused.
  const mine = source;
  source.onerror = () => {
    state.broken = true;
    showConnection();
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === source && connect(), retryAfter);
  };
}

// A page that nobody sees costs nothing: browsers allow few connections to
// one host, and a forgotten tab would keep one.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    return;
  }
  state.at = performance.now();
  connect();
});

$("filter").addEventListener("input", show);
setInterval(showConnection, 1000);
connect();
