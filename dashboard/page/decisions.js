// What became of the last requests, and why: the refused first, each with every
// candidate as the decision saw it.

import { attr, byId, h, keyed, rebuild, text } from "./dom.js";
import { clock, digits, none, plain, seconds, whole } from "./format.js";
import { linkOf } from "./links.js";

const columns = [["c-time", "Time"], ["c-id", "Request"], ["c-route", "Route"], ["c-floor", "Floor"], ["c-outcome", "Outcome"], ["c-chosen", "Where"], ["c-waited", "Waited"], ["c-cause", "Why"]];
const shown = 10;
const askEvery = 2000; // ms
const refused = (d) => d.outcome === "shed" || d.outcome === "no_backend";

// meaning of the reasons of candidates, in the words of the documentation.
const reasons = {
  ok: "could take it", down: "not in service", breaker: "its breaker is open", drain: "drained", cap: "at its limit", slow_start: "still tried out, at the cap of the slow start",
  own_floor: "would not give this request its floor", protects: "would push somebody below the floor", reserve: "kept for interactive requests", ttft: "the first token would come too late",
  tenant: "this key may not", unknown: "its speed is not known",
};
const tones = { placed: "good", granted: "good", spilled: "warn", best_effort: "warn", probe: "idle", queued: "idle", shed: "bad", no_backend: "bad" };

function why(d) {
  if (refused(d)) {
    const parts = [d.shed_reason ?? d.outcome];
    if (d.behind > 0) parts.push(`behind ${whole(d.behind)} in line`);
    if (d.best_low !== null && d.floor > 0) parts.push(`best bound ${digits(d.best_low)} of ${plain(d.floor)}`);
    if (d.retry_after_s !== null) parts.push(`told to come back in ${seconds(d.retry_after_s)}`);
    return parts.join(" · ");
  }
  const chosen = d.candidates.find((c) => c.backend === d.chosen);
  return chosen && chosen.low !== null ? `bound ${digits(chosen.low)}${d.floor > 0 ? ` of ${plain(d.floor)}` : ""} at m = ${chosen.m + chosen.unheard + 1} · ${d.policy}` : d.policy;
}

class Row {
  constructor(view) {
    this.view = view;
    this.cells = columns.map(([name, title]) => h("td", { class: name, role: "cell", "data-title": title }));
    [this.time, this.id, this.route, this.floor, this.outcome, this.chosen, this.waited, this.why] = this.cells;
    this.button = h("button", { type: "button", class: "open", "aria-expanded": "false" });
    this.button.addEventListener("click", () => this.open(!this.detail));
    this.id.append(this.button);
    this.row = h("tr", { role: "row" }, ...this.cells);
    this.el = h("tbody", { role: "rowgroup" }, this.row);
  }

  update(d) {
    this.d = d;
    text(this.time, clock(Date.parse(d.time)));
    text(this.button, d.request_id || "no id");
    text(this.route, d.route);
    text(this.floor, d.floor > 0 ? plain(d.floor) : none);
    rebuild(this.outcome, d.outcome, () => [h("span", { class: "pill " + (tones[d.outcome] ?? "idle") }, d.outcome.replace("_", " "))]);
    text(this.chosen, d.chosen ?? none);
    text(this.waited, d.waited_s >= 0.0005 ? seconds(d.waited_s) : none);
    text(this.why, why(d));
  }

  open(yes) {
    attr(this.button, "aria-expanded", yes ? "true" : "false");
    this.detail?.remove();
    this.detail = null;
    if (!yes) return;
    const head = ["Backend", "n", "m", "Speed then", "Bound", "Floor", "Protects", "Headroom", "By", "Verdict"];
    this.detail = h("tr", { role: "row", class: "detail" }, h("td", { colspan: columns.length, role: "cell" },
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Candidates of " + (this.d.request_id || "the request") }, h("table", { class: "candidates" },
        h("thead", null, h("tr", null, ...head.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, ...this.d.candidates.map((c) => h("tr", { class: c.feasible ? "" : "no" },
          h("th", { scope: "row" }, h("a", { href: linkOf("curve", c.backend) }, c.backend), c.model ? h("small", null, " " + c.model) : "", c.backend === this.d.chosen ? h("b", null, " ✓") : ""),
          ...[whole(c.n), whole(c.m) + (c.unheard ? `+${whole(c.unheard)}` : ""), digits(c.tps), digits(c.low), c.floor > 0 ? plain(c.floor) : none, c.protect > 0 ? plain(c.protect) : none, digits(c.headroom), c.basis || none, `${c.reason}: ${reasons[c.reason] ?? ""}`].map((x) => h("td", null, x))))))),
      this.d.left_out ? h("p", { class: "note" }, `${this.d.left_out} more were not kept.`) : ""));
    this.el.append(this.detail);
  }
}

export class Decisions {
  constructor() {
    this.el = byId("decision-table");
    attr(this.el, "role", "table");
    attr(this.el, "aria-labelledby", "decisions-title");
    this.el.append(h("thead", { "data-fixed": true, role: "rowgroup" }, h("tr", { role: "row" }, ...columns.map(([name, title]) => h("th", { scope: "col", role: "columnheader", class: name }, title)))));
    byId("request-id").addEventListener("input", () => this.ask());
    new IntersectionObserver(([e]) => {
      this.inSight = e.isIntersecting;
      this.ask();
    }, { rootMargin: "200px" }).observe(byId("decisions"));
    setInterval(() => this.ask(), askEvery);
  }

  // ask is done only while somebody can see the answer.
  async ask() {
    if (!this.inSight || document.hidden || this.asking) return;
    this.asking = true;
    try {
      const wanted = byId("request-id").value.trim().toLowerCase();
      const ask = async (query) => {
        const answer = await fetch(`/api/v1/decisions?limit=${shown}&find=${encodeURIComponent(wanted)}${query}`);
        if (!answer.ok) throw new Error(answer.status);
        return (await answer.json()).decisions;
      };
      const [first, all] = await Promise.all([ask("&refused=true"), ask("")]);
      this.show(first, all.filter((d) => !refused(d)), wanted);
    } catch {
      // the page says by itself that the connection is lost
    } finally {
      this.asking = false;
    }
  }

  show(first, rest, wanted) {
    // What the reader opened stays where it is.
    const open = [...(this.el.keyed ?? new Map()).entries()].filter(([, row]) => row.detail).map(([key, row]) => [key, row.d]);
    const keyOf = (d) => `${d.time} ${d.request_id} ${d.outcome}`;
    const kept = open.map(([, d]) => d);
    const keys = new Set(kept.map(keyOf));
    keyed(this.el, [...kept, ...[...first, ...rest].filter((d) => !keys.has(keyOf(d)))].slice(0, shown), keyOf, () => new Row(this));
    const some = first.length + rest.length > 0;
    attr(byId("decisions-none"), "hidden", some);
    text(byId("decisions-none"), wanted ? "None of the decisions that are kept matches." : "No request has come yet.");
    text(byId("decisions-note"), !some ? "" : first.length ? "the refused first, of those that are kept" : "none of those that are kept was refused");
  }
}
