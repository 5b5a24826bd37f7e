// Which curves are open: those in trouble, those that the reader asked for, and
// all where there are few.

import { attr, byId, h, keyed, text } from "./dom.js";
import { plural } from "./format.js";
import { idOf } from "./links.js";
import { keyOf, matching, rank } from "./state.js";
import { TargetCard } from "./target.js";

const few = 6;
const troubled = 4; // so many open by themselves
const listed = 30; // of those that are closed

// visibility tells each chart when it comes into sight, and when its size
// changes.
class Visibility {
  tell = new Map();
  seen = new Set();
  sight = new IntersectionObserver((entries) => {
    for (const e of entries) {
      this.seen[e.isIntersecting ? "add" : "delete"](e.target);
      this.tell.get(e.target)?.(e.isIntersecting);
    }
  }, { rootMargin: "400px" });
  size = new ResizeObserver((entries) => {
    for (const e of entries) if (this.seen.has(e.target)) this.tell.get(e.target)?.(true);
  });
  watch(el, tell) {
    this.tell.set(el, tell);
    this.sight.observe(el);
    this.size.observe(el);
  }
  // all draws what is out of sight too, as paper needs it.
  all() {
    for (const tell of this.tell.values()) tell(true);
  }
  forget(el) {
    this.tell.delete(el);
    this.seen.delete(el);
    this.sight.unobserve(el);
    this.size.unobserve(el);
  }
}

class Closed {
  constructor(curves) {
    this.dot = h("i", { class: "dot" });
    this.label = document.createTextNode("");
    this.el = h("button", { type: "button", class: "chip" }, this.dot, this.label);
    this.el.addEventListener("click", () => curves.toggle(this.key, true));
  }
  update({ t, tone, name }) {
    this.key = keyOf(t);
    if (this.label.data !== name) this.label.data = name;
    attr(this.el, "class", "chip " + tone);
  }
}

const trouble = (t) => t.health !== "up" || t.cause || t.last_error || t.in_flight.below_floor > 0 || Math.abs(Math.log(t.learned?.scale ?? 1)) > 0.1;

export class Curves {
  constructor() {
    this.visibility = new Visibility();
    addEventListener("beforeprint", () => this.visibility.all());
    this.asked = new Map(); // by target: whether the reader wants it open
    this.view = "stream";
    for (const radio of document.querySelectorAll("input[name=view]")) {
      radio.addEventListener("change", () => {
        this.view = radio.value;
        this.again?.();
      });
    }
  }

  toggle(key, open) {
    this.asked.set(key, open);
    this.again?.();
  }

  // reveal opens the first curve of a backend.
  reveal(backend) {
    const t = this.world?.targets.find((x) => x.backend === backend);
    if (t) this.toggle(keyOf(t), true);
  }

  isOpen(all, shown) {
    const auto = new Set();
    if (shown.length <= few) for (const t of shown) auto.add(keyOf(t));
    for (const t of shown) if (auto.size < troubled && trouble(t)) auto.add(keyOf(t));
    if (auto.size === 0) {
      for (const t of [...shown].sort((a, b) => b.in_flight.n - a.in_flight.n).slice(0, 2)) auto.add(keyOf(t));
    }
    // A card that opened by itself stays while the reader is among them.
    if (byId("cards").matches(":hover")) for (const key of this.opened ?? []) auto.add(key);
    this.opened = auto;
    return (t) => this.asked.get(keyOf(t)) ?? auto.has(keyOf(t));
  }

  update(world, filter) {
    this.again = () => this.update(world, filter);
    this.world = world;
    const first = new Map();
    const several = new Map();
    for (const t of world.targets) {
      if (!first.has(t.backend)) first.set(t.backend, t);
      several.set(t.backend, (several.get(t.backend) ?? 0) + 1);
    }
    const rows = new Map(world.backends.map((b) => [b.backend, b]));
    const items = world.targets.map((t) => ({ t, words: rows.get(t.backend).words }));
    const shown = matching(items, filter).map((x) => x.t);
    const open = this.isOpen(world.targets, shown);
    const tones = { [rank.bad]: "bad", [rank.warn]: "warn" };
    const cards = shown.filter(open), closed = shown.filter((t) => !open(t));
    keyed(byId("cards"), cards.map((target) => ({ target, world, curves: this, id: first.get(target.backend) === target ? idOf("curve", target.backend) : null })), (x) => keyOf(x.target), () => new TargetCard(this.visibility));
    keyed(byId("closed"), closed.slice(0, listed).map((t) => ({ t, tone: tones[rows.get(t.backend).rank] ?? "", name: several.get(t.backend) > 1 ? `${t.backend} · ${t.model || "any"}` : t.backend })), (x) => keyOf(x.t), () => new Closed(this));
    attr(byId("closed"), "hidden", closed.length === 0);
    text(byId("curves-note"), `what one stream gets, by how many decode there at once (n)` + (closed.length ? ` · ${cards.length} of ${plural(shown.length, "curve", "curves")} open` : "") +
      (closed.length > listed ? `; the filter finds the other ${closed.length - listed}` : ""));
  }
}
