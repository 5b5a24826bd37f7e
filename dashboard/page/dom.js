// The little that building a page needs. Nothing here takes HTML: names from
// the configuration are text wherever they go.

const SVG = "http://www.w3.org/2000/svg";

function fill(el, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === true) el.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) el.setAttribute(name, value);
  }
  el.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return el;
}

export const h = (name, attrs, ...children) => fill(document.createElement(name), attrs, children);
export const s = (name, attrs, ...children) => fill(document.createElementNS(SVG, name), attrs, children);
export const byId = (id) => document.getElementById(id);

// Setting what is already there would cost the reader a selection, a focus or
// a repaint, so these write only what changed.
export function text(el, value) {
  if (el.textContent !== value) el.textContent = value;
}

export function attr(el, name, value) {
  if (value === null || value === false) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
    return;
  }
  const wanted = value === true ? "" : String(value);
  if (el.getAttribute(name) !== wanted) el.setAttribute(name, wanted);
}

// size sets a length that the style sheet draws, as a share of 1. The policy of
// the page allows no attribute of style, but a script may set one property.
export function size(el, name, share) {
  const value = Math.min(1, Math.max(0, share)).toFixed(3);
  if (el.style.getPropertyValue(name) !== value) el.style.setProperty(name, value);
}

// rebuild makes the children of el anew where what they are built from changed.
const built = new WeakMap();
export function rebuild(el, from, make) {
  const key = JSON.stringify(from);
  if (built.get(el) === key) return;
  built.set(el, key);
  el.replaceChildren(...make().filter((c) => c !== null && c !== undefined && c !== ""));
}

// place moves el before next. Where the browser can, a focus inside survives.
function place(parent, el, next) {
  if (el.isConnected && parent.moveBefore) parent.moveBefore(el, next);
  else parent.insertBefore(el, next);
}

// keyed keeps one child of parent for each item, in their order, and moves
// only those that are out of place. Children with data-fixed stay in front.
export function keyed(parent, items, keyOf, make) {
  const kept = (parent.keyed ??= new Map());
  const wanted = new Map();
  let next = parent.firstElementChild;
  while (next && "fixed" in next.dataset) next = next.nextElementSibling;
  for (const item of items) {
    const key = keyOf(item);
    const view = kept.get(key) ?? make(item);
    wanted.set(key, view);
    if (view.el === next) next = next.nextElementSibling;
    else place(parent, view.el, next);
    view.update(item);
  }
  for (const [key, view] of kept) {
    if (wanted.has(key)) continue;
    view.el.remove();
    view.close?.();
  }
  parent.keyed = wanted;
}
