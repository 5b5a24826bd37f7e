// The page: one stream of events from the admin API, shown in parts. Elements
// are made once and then kept, so nothing flickers and no focus is lost.

import { Access } from "./access.js";
import { BackendTable } from "./backends.js";
import { Curves } from "./curves.js";
import { Decisions } from "./decisions.js";
import { attr, byId, text } from "./dom.js";
import { clock, plural } from "./format.js";
import { askJobs } from "./jobs.js";
import { idOf, named } from "./links.js";
import { Plan } from "./plan.js";
import { RouteTable } from "./routes.js";
import { State } from "./state.js";
import { Timeline } from "./timeline.js";
import { showVerdict } from "./verdict.js";

const staleAfter = 5000; // ms without an event: the connection is no good
const retryAfter = 4000; // ms, when the server has refused for good
const historyEvery = 10_000; // ms

const state = new State();
let at = 0; // performance.now() of the last event
let broken = false; // the connection ended since

const access = new Access(() => show());
const parts = { routes: new RouteTable(), timeline: new Timeline(), backends: new BackendTable(access), curves: new Curves() };
new Decisions();

const filter = byId("filter");
const windowOf = () => document.querySelector("input[name=window]:checked").value;
const plan = new Plan(access, windowOf);

let left = []; // what show has yet to write

// show writes what is known: the verdict and the routes first, then a part in each
// frame, since all of them would take longer than a frame has.
function show() {
  const { world } = state;
  if (!world) return;
  const idle = left.length === 0;
  let routes = 0, backends = 0;
  left = [
    () => {
      showVerdict(world);
      routes = parts.routes.update(world, filter.value);
    },
    () => (backends = parts.backends.update(world, filter.value)),
    () => parts.timeline.update(world, filter.value),
    () => parts.curves.update(world, filter.value),
    () => {
      plan.update(world);
      text(byId("matching"), filter.value.trim() ? `${plural(routes, "route", "routes")}, ${plural(backends, "backend", "backends")}` : "");
      showConnection(); // "Live" is said of a page that is written
    },
  ];
  if (idle) write();
}

function write() {
  try {
    left.shift()();
  } finally {
    if (left.length) requestAnimationFrame(write);
  }
}

// showConnection says how fresh the page is.
function showConnection() {
  const stale = !state.event ? performance.now() > staleAfter : performance.now() - at > staleAfter;
  const pill = byId("connection"), lost = byId("lost");
  document.body.classList.toggle("stale", stale && state.event !== null);
  attr(lost, "hidden", !stale);
  if (stale) {
    text(pill, "Connection lost");
    attr(pill, "class", "pill bad");
    text(lost, state.event
      ? `The connection to Pacer is lost. This is the state of ${clock(Date.parse(state.event.time))}; trying again.`
      : "Pacer does not answer; trying again.");
  } else if (broken) {
    text(pill, "Reconnecting");
    attr(pill, "class", "pill warn");
  } else if (state.event) {
    text(pill, "Live");
    attr(pill, "class", "pill good");
  }
}

let source = null;

function connect() {
  source?.close();
  source = new EventSource(`/api/v1/events?window=${windowOf()}&deltas=true`);
  source.onopen = () => state.forgetMarks();
  source.onmessage = (m) => {
    state.take(JSON.parse(m.data));
    at = performance.now();
    broken = false;
    show();
  };
  // The browser comes back by itself, unless it was refused.
  const mine = source;
  source.onerror = () => {
    broken = true;
    showConnection();
    if (mine.readyState !== EventSource.CLOSED) return;
    access.refresh(); // a session may be over
    setTimeout(() => mine === source && connect(), retryAfter);
  };
}

// askHistory fetches what the small pictures of the routes are drawn from.
async function askHistory() {
  if (document.hidden) return;
  try {
    const w = windowOf();
    const answer = await fetch(`/api/v1/history?by=route&window=${w === "start" ? "6h" : w}`);
    if (answer.ok) parts.routes.remember(await answer.json());
  } catch {
    // the page says by itself that the connection is lost
  }
}

// follow goes where a link of the page points, opening what is closed.
function follow() {
  const to = named(location.hash);
  if (!to) return;
  if (to.of === "route") parts.routes.toggle(to.name, true);
  if (to.of === "backend") parts.backends.reveal(to.name);
  if (to.of === "curve") parts.curves.reveal(to.name);
  const el = byId(idOf(to.of, to.name));
  el?.scrollIntoView({ block: "center" });
  el?.querySelector("button, a, svg[tabindex]")?.focus({ preventScroll: true });
}

// move puts the focus on the next or previous row.
function move(by) {
  const rows = [...document.querySelectorAll("#route-table .open")];
  if (!rows.length) return;
  const here = rows.indexOf(document.activeElement);
  const next = rows[here < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, here + by))];
  next.focus();
}

document.addEventListener("keydown", (e) => {
  const typing = e.target.matches("input, textarea, select") || document.querySelector("dialog[open]");
  if (e.key === "Escape" && e.target === filter) {
    filter.value = "";
    filter.blur();
    show();
  }
  if (e.key === "Enter" && e.target === filter) move(1);
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "Escape") return parts.routes.toggle(null, false);
  const act = { "/": () => filter.focus(), j: () => move(1), k: () => move(-1) }[e.key];
  if (!act) return;
  e.preventDefault();
  act();
});

// A page that nobody sees costs nothing: browsers allow few connections to
// one host, and a forgotten tab would keep one.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    return;
  }
  at = performance.now();
  connect();
  askHistory();
  askJobs();
});

for (const radio of document.querySelectorAll("input[name=window]")) {
  radio.addEventListener("change", () => {
    connect();
    askHistory();
  });
}
addEventListener("hashchange", follow);
document.addEventListener("click", (e) => {
  const link = e.target.closest?.("a[href^='#']");
  if (link && link.hash === location.hash) follow();
});
filter.addEventListener("input", show);
setInterval(showConnection, 1000);
setInterval(askHistory, historyEvery);
setInterval(askJobs, historyEvery);
connect();
askHistory();
askJobs();
