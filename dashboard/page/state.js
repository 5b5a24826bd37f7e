// What the page knows: the last event, with the events before it where they
// said only what changed, and what follows from both.

export const keyOf = (t) => t.backend + "\n" + t.model;

// ranks of a route or backend, the worst first.
export const rank = { bad: 0, warn: 1, tight: 2, good: 3, idle: 4 };

export class State {
  event = null;
  targets = new Map(); // by keyOf, with what was learned, which is sent only when it changes
  routes = new Map(); // by name
  marks = new Map(); // by id

  // take merges one event.
  take(event) {
    const all = event.all ?? true;
    const targets = all ? new Map() : this.targets;
    for (const t of event.targets) {
      const key = keyOf(t), before = this.targets.get(key);
      targets.set(key, { ...t, learned: t.learned ?? before?.learned ?? null });
    }
    const routes = all ? new Map() : this.routes;
    for (const r of event.routes) routes.set(r.model, r);
    for (const m of event.marks ?? []) this.marks.set(m.id, m);
    for (const id of [...this.marks.keys()].sort((a, b) => a - b).slice(0, -maxMarks)) this.marks.delete(id);
    Object.assign(this, { event, targets, routes });
    this.world = worldOf(this);
  }

  // forgetMarks is for a new connection, which is sent the marks anew: those of a
  // gateway that was restarted are numbered from the start.
  forgetMarks() {
    this.marks = new Map();
  }
}

const maxMarks = 1000;

function worldOf({ event, targets, routes, marks }) {
  const world = {
    time: Date.parse(event.time), since: event.since, windowS: event.window_s, window: event.window ?? "start",
    dataURL: event.data_url, verdict: event.verdict, replicas: event.replicas ?? 1, ofAll: event.replica === "all",
    targets: [...targets.values()], routes: [...routes.values()],
    marks: [...marks.values()].sort((a, b) => Date.parse(b.time) - Date.parse(a.time) || b.id - a.id),
  };
  world.backends = backendsOf(world);
  const loads = new Map(world.backends.map((b) => [b.backend, b.in_flight]));
  for (const r of world.routes) {
    r.rank = rankOfRoute(r);
    r.running = [...new Set(r.targets.map((t) => t.backend))].reduce((sum, b) => sum + (loads.get(b)?.m ?? 0), 0);
    r.words = [r.model, r.class, r.cause, ...r.targets.flatMap((t) => [t.backend, t.model])].join(" ").toLowerCase();
  }
  return world;
}

// rankOfRoute: a cause that lasts is bad where users are hurt by it, and so is a
// goal that is missed; a goal that is missed without a cause mends itself, or its
// cause is about to be said.
function rankOfRoute(r) {
  const short = r.attainment_goal !== null && r.attainment !== null && r.attainment < r.attainment_goal;
  if (r.cause) return rank.bad;
  if (short || r.losing) return rank.warn;
  if (r.free === 0 || r.waiting > 0) return rank.tight;
  return r.offered === 0 ? rank.idle : rank.good;
}

// backendsOf gathers the targets of each backend into one row.
function backendsOf({ targets, routes }) {
  const backends = new Map();
  for (const t of targets) {
    const b = backends.get(t.backend);
    if (!b) backends.set(t.backend, { ...t, targets: [t], scale: scaleOf(t) });
    else join(b, t);
  }
  const names = new Map(), room = new Map();
  for (const r of routes) {
    for (const t of r.targets) {
      names.set(t.backend, (names.get(t.backend) ?? new Set()).add(r.model));
      if (t.admits !== null) room.set(t.backend, [...(room.get(t.backend) ?? []), t.admits]);
    }
  }
  for (const b of backends.values()) {
    b.routes = [...(names.get(b.backend) ?? [])];
    // Of the route that fits least, and of the one that fits most.
    const admits = room.get(b.backend) ?? [];
    b.room = admits.length ? [Math.min(...admits), Math.max(...admits)] : null;
    b.rank = rankOfBackend(b);
    b.words = [b.backend, b.kind, b.health, b.url, b.cause, ...Object.values(b.labels ?? {}), ...b.targets.map((t) => t.model), ...b.routes].join(" ").toLowerCase();
  }
  return [...backends.values()];
}

const scaleOf = (t) => t.learned?.scale ?? 1;

// join adds target t to the row of its backend. in_flight is of the whole
// backend, or of one model that is counted by itself.
function join(b, t) {
  b.targets.push(t);
  if (Math.abs(Math.log(scaleOf(t))) > Math.abs(Math.log(b.scale))) b.scale = scaleOf(t);
  b.last_error ??= t.last_error;
  if (!b.cause && t.cause) for (const name of ["cause", "cause_kind", "cause_backend", "since", "means", "advice"]) b[name] = t[name];
  if (!t.separate) return;
  const sum = {};
  for (const name of Object.keys(t.in_flight)) sum[name] = b.in_flight[name] + t.in_flight[name];
  b.in_flight = sum;
}

function rankOfBackend(b) {
  if (b.health === "down" || b.cause) return rank.bad;
  if (b.health === "loading" || b.last_error) return rank.warn;
  if (b.health === "draining" || b.room?.[1] === 0) return rank.tight;
  return rank.good; // whether it runs something changes too often to sort by
}

// matching returns those of items that hold every word.
export function matching(items, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? items.filter((x) => words.every((w) => x.words.includes(w))) : items;
}

// Order sorts rows the worst first. While the reader is among them it keeps
// those that are there in their places: a row must not move away from under a
// finger.
export class Order {
  before = [];
  sort(rows, keyOf, hold) {
    let sorted = [...rows].sort((a, b) => a.rank - b.rank);
    if (hold) {
      const place = new Map(this.before.map((key, i) => [key, i]));
      sorted = sorted.sort((a, b) => (place.get(keyOf(a)) ?? 1e9) - (place.get(keyOf(b)) ?? 1e9));
    }
    this.before = sorted.map(keyOf);
    return sorted;
  }
}
