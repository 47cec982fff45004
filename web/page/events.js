// SPDX-License-Identifier: Apache-2.0
// Events as sentences, and a list of the last ones.

import { h } from "./dom.js";
import { ACCESSES, HOLDS, bytes, time } from "./format.js";

const MOST = 200;
const KINDS = {
  died: "bad", owner_died: "bad", lost: "bad", quota: "warn", recovered: "warn", created: "good", away: "bad",
};

function actor(event) {
  if (!event.pid) return "a process";
  return event.command ? `${event.command} (${event.pid})` : `process ${event.pid}`;
}

/** Describes an event in a few words, without its time and segment. */
export function sentence(event) {
  switch (event.kind) {
    case "created": return `${bytes(event.size)} created by ${actor(event)}`;
    case "attached": return `${actor(event)} attached to ${ACCESSES[event.access] || "use"}`;
    case "detached": return `${actor(event)} detached`;
    case "died": return `${actor(event)} died${event.held ? `, holding the lock (${HOLDS[event.held]})` : ""}${event.held_frames ? `, holding ${event.held_frames} frames` : ""}`;
    case "owner_died": return `${actor(event)} died while it held the lock: the bytes may be half written`;
    case "removed": return "the name was removed";
    case "access": return "the rights were changed";
    case "phase": return `phase ${event.generation}: ${event.layout}`;
    case "quota": return event.reason;
    case "recovered": return "the daemon started again";
    case "subscribed": return "events are shown from now on";
    case "lost": return `${event.lost} events were missed`;
    case "away": return "the daemon is gone";
    default: return event.kind.replace("_", " ");
  }
}

/** A panel with the last events, the newest first. */
export function eventList(title) {
  const list = h("ol", { tabindex: "0", "aria-label": title });
  const element = h("section", { class: "panel events" }, h("h2", {}, title), list);
  function add(event) {
    const when = event.time_us ? h("time", { datetime: new Date(event.time_us / 1000).toISOString() }, time(event.time_us)) : null;
    const name = event.segment ? h("a", { href: `#/segment?${new URLSearchParams({ name: event.segment })}` }, event.segment) : null;
    list.prepend(h("li", { class: KINDS[event.kind] || null }, when, name, name ? ": " : null, sentence(event)));
    while (list.children.length > MOST) list.lastChild.remove();
  }
  return { element, add };
}
