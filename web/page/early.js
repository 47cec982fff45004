// SPDX-License-Identifier: Apache-2.0
// Asks for events and for the list of segments before the page's other modules have come, because
// browser, server and daemon can then work at the same time.

import { events } from "./api.js";
import { listAll } from "./list.js";

/** The events until the overview takes them, and the list that was asked for after their begin. Only
 * the first portions are asked for until then. */
class Early {
  constructor() {
    [this.seen, this.listed] = [[], null];
    const taken = new Promise((resolve) => { this.taking = resolve; });
    this.handle = (event) => {
      this.seen.push(event);
      if (event.kind !== "subscribed" || this.listed) return;
      this.listed = listAll(true, async (...answer) => (await taken)(...answer));
      this.listed.catch(() => {}); // is seen by list()
    };
    this.end = events({ handle: (event) => this.handle(event) });
  }

  /** Calls handle(event) for all events from the first one on. Returns a function that ends it. */
  follow(handle) {
    const { seen } = this;
    // An answer may be older than what a second beginning has skipped.
    if (seen.filter(({ kind }) => kind === "subscribed" || kind === "lost").length > 1) this.listed = null;
    this.handle = handle;
    seen.forEach(handle);
    return this.end;
  }

  /** Calls take() as listAll() does. Returns its promise, or null if the list must be asked for. */
  list(take) {
    const { listed } = this;
    if (listed) this.taking(take);
    return listed;
  }
}

let early = /^#?\/?$/.test(location.hash) ? new Early() : null;

/** Gives it once; then null, or if the page was opened elsewhere. The caller owes follow() or end(). */
export function takeEarly() {
  const given = early;
  early = null;
  return given;
}
