// The little that building a page needs. Nothing here takes HTML: names from
// the configuration are text wherever they go.

const SVG = "http://www.w3.org/2000/svg";

function fill(el, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === true) el.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) el.setAttribute(name, value);
  }
  el.append(...children.filter((c) => c !== null && c !== undefined));
  return el;
}

export const h = (name, attrs, ...children) => fill(document.createElement(name), attrs, children);
export const s = (name, attrs, ...children) => fill(document.createElementNS(SVG, name), attrs, children);

// Setting what is already there would cost the reader a selection, a focus or
// a repaint, so these write only what changed.
export function text(el, value) {
  if (el.textContent !== value) el.textContent = value;
}

export function attr(el, name, value) {
  if (value === null || value === false) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
  } else if (el.getAttribute(name) !== String(value)) {
    el.setAttribute(name, value);
  }
}

// same remembers, per element, what it was last built from.
const built = new WeakMap();
export function rebuild(el, from, make) {
  const key = JSON.stringify(from);
  if (built.get(el) === key) return;
  built.set(el, key);
  el.replaceChildren(...make());
}

// keyed keeps one child of parent for each item, in their order, and moves
// only those that are out of place.
export function keyed(parent, items, keyOf, make) {
  const kept = (parent.keyed ??= new Map());
  const wanted = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const view = kept.get(key) ?? make(item);
    wanted.set(key, view);
    if (view.el === place) place = place.nextElementSibling;
    else parent.insertBefore(view.el, place);
    view.update(item);
  }
  for (const [key, view] of kept) {
    if (wanted.has(key)) continue;
    view.el.remove();
    view.close?.();
  }
  parent.keyed = wanted;
}
