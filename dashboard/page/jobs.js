// The batch jobs that run: requests that nobody waits for, which come and go in the
// rows of the routes of class batch.

import { attr, byId, h, rebuild } from "./dom.js";
import { plural, span, whole } from "./format.js";

function words(j, now) {
  const parts = [`${whole(j.completed + j.failed)} of ${plural(j.total, "request", "requests")} done`];
  if (j.failed) parts.push(`${whole(j.failed)} of them failed`);
  parts.push(j.cancelling ? "being cancelled" : `what is left ends in ${span((Date.parse(j.expires) - now) / 1000)}`);
  return `${j.key ? ` of ${j.key}` : ""}, ${j.endpoint}: ${parts.join(", ")}`;
}

// askJobs shows them, or nothing where there are none.
export async function askJobs() {
  if (document.hidden) return;
  try {
    const answer = await fetch("/api/v1/jobs");
    if (!answer.ok) return;
    const { jobs } = await answer.json(), now = Date.now();
    attr(byId("jobs"), "hidden", jobs.length === 0);
    const lines = jobs.map((j) => [j.id, words(j, now)]);
    rebuild(byId("jobs"), lines, () => lines.map(([id, said]) => h("li", null, h("b", null, id), said)));
  } catch {
    // the page says by itself that the connection is lost
  }
}
