// The backends: whether each serves, what runs there, whether it gives what was
// learned, and the two things an operator may do.

import { attr, byId, h, keyed, rebuild, text } from "./dom.js";
import { none, plain, plural, rate, since, whole } from "./format.js";
import { idOf, linkOf } from "./links.js";
import { matching, Order, rank } from "./state.js";

const columns = [
  ["c-name", "Backend"], ["c-health", "Health"], ["c-load", "Decoding + waiting / limit"], ["c-admits", "Admits"],
  ["c-speed", "Delivered / predicted"], ["c-drift", "Drift"], ["c-tokens", "Tokens/s"], ["c-usd", "USD/h"], ["c-do", ""],
];

const shownFirst = 12;

const health = { up: ["good", "up"], down: ["bad", "down"], loading: ["warn", "loading"], draining: ["idle", "draining"] };
const tones = { [rank.bad]: "bad", [rank.warn]: "warn", [rank.tight]: "tight", [rank.good]: "good", [rank.idle]: "idle" };

// continued says what became of the streams in the middle of which a backend died.
function continued(c) {
  const parts = [c.ok ? `${plural(c.ok, "stream", "streams")} went on elsewhere` : "", c.lost ? `${whole(c.lost)} found no other backend` : "", c.unfit ? `${whole(c.unfit)} could not be continued` : ""].filter(Boolean);
  return parts.length ? "It died in the middle of them: " + parts.join(", ") + "." : "";
}

class Row {
  constructor(table) {
    this.table = table;
    this.cells = columns.map(([name, title], i) => h(i ? "td" : "th", { class: name, role: i ? "cell" : "rowheader", scope: i ? null : "row", "data-title": title || null }));
    [this.name, this.health, this.load, this.admits, this.speed, this.drift, this.tokens, this.usd, this.act] = this.cells;
    this.row = h("tr", { role: "row" }, ...this.cells);
    this.el = h("tbody", { role: "rowgroup" }, this.row);
  }

  update(b) {
    this.b = b;
    attr(this.el, "id", idOf("backend", b.backend));
    attr(this.el, "class", tones[b.rank]);
    const about = [b.kind, ...Object.values(b.labels ?? {})].filter(Boolean).join(" · ");
    rebuild(this.name, [b.backend, b.url, about], () => [
      h("a", { class: "name", href: linkOf("curve", b.backend), title: "Its learned curve" }, b.backend),
      h("small", null, [about, b.url].filter(Boolean).join(" · "))]);
    this.showHealth(b);
    const f = b.in_flight, waiting = Math.max(f.m - f.n, 0);
    rebuild(this.load, [f.n, waiting, b.max_concurrency, f.below_floor, b.engine?.foreign], () => {
      const others = b.engine ? b.engine.foreign.waiting + b.engine.foreign.decoding : 0;
      return [h("b", null, whole(f.n)), ` + ${whole(waiting)}`, h("small", null, " / " + (b.max_concurrency === null || b.max_concurrency === undefined ? "no limit" : whole(b.max_concurrency))),
        f.below_floor ? h("small", { class: "hurt block" }, `${whole(f.below_floor)} below their floor`) : "",
        others ? h("small", { class: "block" }, `${whole(others)} not through Pacer`) : ""];
    });
    text(this.admits, !b.room ? none : b.room[0] === b.room[1] ? whole(b.room[0]) : `${whole(b.room[0])}\u00a0–\u00a0${whole(b.room[1])}`);
    attr(this.admits, "title", "So many more are placed there now, by the route that fits least and the one that fits most.");
    attr(this.admits, "class", b.room?.[1] === 0 ? "c-admits hurt" : "c-admits");
    text(this.speed, b.delivered === null || b.delivered === undefined ? none : "×\u00a0" + b.delivered.toFixed(2));
    attr(this.speed, "class", b.delivered !== null && b.delivered < 0.8 ? "c-speed hurt" : "c-speed");
    const drifts = Math.abs(Math.log(b.scale)) > Math.log(1.05);
    text(this.drift, drifts ? "×\u00a0" + b.scale.toFixed(2) : none);
    attr(this.drift, "class", b.scale < 0.9 ? "c-drift hurt" : "c-drift");
    text(this.tokens, b.tokens_per_s === null || b.tokens_per_s === undefined ? none : b.tokens_per_s < 10 ? rate(b.tokens_per_s) : whole(b.tokens_per_s));
    attr(this.tokens, "title", b.warm?.predicted || b.warm?.reported ? `Prompt tokens from its prefix cache: ${whole(b.warm.reported)} told, ${whole(b.warm.predicted)} predicted.` : null);
    text(this.usd, b.usd_per_hour === null || b.usd_per_hour === undefined ? none : plain(b.usd_per_hour));
    this.showAct(b);
  }

  showHealth(b) {
    const [tone, word] = b.health === "down" && b.breaker === "half_open" ? ["warn", "trying again"] : health[b.health] ?? ["idle", b.health];
    const e = b.last_error;
    const failing = e ? `${e.status === null ? "" : e.status + " "}${e.message}` : "";
    const fate = continued(b.continued);
    rebuild(this.health, [tone, word, b.cause, failing, e?.since, fate], () => [
      h("span", { class: "pill " + tone }, word),
      b.cause ? h("span", { class: "why" }, b.cause) : failing ? h("span", { class: "why" }, `${failing}, since ${since(e.since, this.table.time)}`) : "",
      b.advice ? h("span", { class: "advice" }, b.advice) : "",
      fate ? h("span", { class: "advice" }, fate) : ""]);
  }

  showAct(b) {
    const verb = b.health === "draining" ? "resume" : "drain";
    const may = this.table.access.may;
    rebuild(this.act, [verb, may], () => {
      if (!may) return [];
      const button = h("button", { type: "button", class: "ghost", "aria-label": `${verb} ${b.backend}` }, verb === "drain" ? "Drain" : "Resume");
      button.addEventListener("click", async () => {
        button.disabled = true;
        await this.table.access.change(`/api/v1/backends/${encodeURIComponent(b.backend)}/${verb}`, verb === "drain" ? `${b.backend} takes no new requests; what runs there ends in peace.` : `${b.backend} takes requests again.`);
        button.disabled = false;
      });
      return [button];
    });
  }
}

// BackendTable is the table of all backends, the worst first, a page at a time.
export class BackendTable {
  constructor(access) {
    this.access = access;
    this.el = byId("backend-table");
    this.order = new Order();
    this.shown = shownFirst;
    attr(this.el, "role", "table");
    attr(this.el, "aria-labelledby", "backends-title");
    this.el.append(h("thead", { "data-fixed": true, role: "rowgroup" }, h("tr", { role: "row" },
      ...columns.map(([name, title]) => h("th", { scope: "col", role: "columnheader", class: name }, title || h("span", { class: "away" }, "Drain or resume"))))));
    byId("backends-more").addEventListener("click", () => {
      this.shown = Infinity;
      this.again?.();
    });
  }

  // reveal makes sure that the row of a backend is there.
  reveal(name) {
    if (!this.el.keyed?.has(name)) {
      this.shown = Infinity;
      this.again?.();
    }
  }

  update(world, filter) {
    this.again = () => this.update(world, filter);
    this.time = world.time;
    const found = matching(world.backends, filter);
    const hold = this.el.matches(":hover") || this.el.contains(document.activeElement);
    const sorted = this.order.sort(found, (b) => b.backend, hold);
    keyed(this.el, sorted.slice(0, this.shown), (b) => b.backend, () => new Row(this));
    const none = byId("backends-none"), more = byId("backends-more");
    attr(none, "hidden", found.length > 0);
    text(none, world.backends.length ? `None of the ${plural(world.backends.length, "backend", "backends")} matches the filter.` : "No backend is configured: add one under backends: in pacer.yaml.");
    attr(more, "hidden", sorted.length <= this.shown);
    text(more, `Show all ${sorted.length}`);
    const usd = world.backends.reduce((sum, b) => sum + (b.usd_per_hour ?? 0), 0);
    text(byId("backends-note"), [plural(world.backends.length, "backend", "backends") + (sorted.length > this.shown ? `, the worst ${this.shown} first` : ""), usd ? `${plain(usd)} USD/h` : ""].filter(Boolean).join(" · "));
    return found.length;
  }
}
