// SPDX-License-Identifier: Apache-2.0
// Asks for the list of all segments, in portions.

import { get } from "./api.js";

const FIRST = 1000; // segments of the first request
const PAGE = 5000; // of the others

/** Guesses the id in the middle of the segments that follow a first answer. */
function middleOf({ n, columns, next, all }) {
  const left = Math.max(0, (all ?? 0) - n);
  const first = Array.isArray(columns.id) ? columns.id[0] : columns.id;
  return Math.round(next + (next - first) / n * left / 2);
}

/** Gets the segments with ids above `after` and up to `last`, portion by portion. */
async function walk(after, last, isBrief, take) {
  const ask = (id) => get("/api/segments", { after: id, limit: PAGE, brief: Number(isBrief) });
  for (let asked = ask(after); asked;) {
    const answer = await asked;
    asked = answer.next && answer.next < last ? ask(answer.next) : null; // comes while this one is taken
    asked?.catch(() => {}); // is seen by the next turn
    await take(answer, last);
  }
}

/** Gets all segments, in two halves at the same time, because the daemon, the page's server and the
 * browser can then work at the same time. Calls take(answer, last) for each answer, of which rows with
 * ids above `last` belong to the other half. A walk waits for what take() returns. */
export async function listAll(isBrief, take) {
  const first = await get("/api/segments", { limit: FIRST, brief: Number(isBrief) });
  const middle = first.next ? middleOf(first) : 0;
  await Promise.all([
    take(first, Infinity),
    ...(first.next ? [walk(first.next, middle, isBrief, take), walk(middle, Infinity, isBrief, take)] : []),
  ]);
}
