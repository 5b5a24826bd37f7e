// How figures are written. Every function takes null for "not known" and then
// returns a dash, so that a missing figure never looks like a zero.

export const none = "–";
export const nbsp = "\u00a0";
const known = (x) => x !== null && x !== undefined && Number.isFinite(x);

// digits writes x with about three significant digits.
export function digits(x) {
  if (!known(x)) return none;
  const size = Math.abs(x);
  if (size >= 1000) return whole(x);
  return x.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

// plain writes what somebody configured: 30, 2.5, 99.9.
export const plain = (x) => (known(x) ? String(+x.toPrecision(6)) : none);

export const whole = (x) => (known(x) ? Math.round(x).toLocaleString("en-US") : none);

// count writes large counts short: 950, 12.4 k, 3.1 M.
export function count(x) {
  if (!known(x)) return none;
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (x >= size) return digits(x / (unit === "k" ? 1e3 : size)) + nbsp + unit;
  }
  return whole(x);
}

export function plural(x, one, many) {
  return count(x) + nbsp + (Math.round(x) === 1 ? one : many);
}

// rate writes events per second: 0, 0.4, 52, 1,240. A few are never none.
export function rate(x) {
  if (!known(x)) return none;
  if (x === 0) return "0";
  if (x < 0.05) return "<0.1";
  return x < 9.95 ? x.toFixed(1) : whole(x);
}

export function seconds(s) {
  if (!known(s)) return none;
  if (s < 1) return Math.round(s * 1000) + nbsp + "ms";
  if (s < 60) return (s < 10 ? s.toFixed(2) : s.toFixed(1)) + nbsp + "s";
  return span(s);
}

// span writes a length of time of which the second does not matter.
export function span(s) {
  if (!known(s)) return none;
  if (s < 90) return Math.max(0, Math.round(s)) + nbsp + "s";
  if (s < 5400) return Math.round(s / 60) + nbsp + "min";
  if (s < 129600) return (s / 3600).toFixed(s < 36000 ? 1 : 0).replace(/\.0$/, "") + nbsp + "h";
  return Math.round(s / 86400) + nbsp + "days";
}

// percent never rounds a miss away: 99.97 % stays below 100 %.
export function percent(share) {
  if (!known(share)) return none;
  const p = share * 100;
  const places = p === 100 || p < 90 ? (p < 10 && p > 0 ? 1 : 0) : p > 99.9 ? 2 : 1;
  const scale = 10 ** places;
  return (Math.floor(p * scale + 1e-6) / scale).toFixed(places) + nbsp + "%";
}

// clock writes the time of day in the reader's zone; with seconds where asked.
export const clock = (ms, withSeconds = true) =>
  new Date(ms).toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit", ...(withSeconds && { second: "2-digit" }) });

// since writes when something began: 09:04, and the day where that was not
// today.
export function since(iso, now) {
  const at = Date.parse(iso);
  if (!known(at)) return "";
  const day = now - at > 20 * 3600e3 ? new Date(at).toLocaleDateString([], { month: "short", day: "numeric" }) + " " : "";
  return day + clock(at, now - at < 90e3);
}
