// Where things stand on the page. A name from the configuration may hold
// anything, so it is written into an id as a link would hold it.

export const idOf = (of, name) => `${of}-${encodeURIComponent(name)}`;
export const linkOf = (of, name) => "#" + idOf(of, name);

// named takes a link apart again; null = it is none of ours.
export function named(hash) {
  const found = /^#(route|backend|curve)-(.*)$/.exec(hash);
  if (!found) return null;
  try {
    return { of: found[1], name: decodeURIComponent(found[2]) };
  } catch {
    return null;
  }
}
