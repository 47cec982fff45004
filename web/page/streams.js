// SPDX-License-Identifier: Apache-2.0
// What a stream has: its slots, its writer, and how far its readers are.

import { ApiError, get } from "./api.js";
import { h, facts } from "./dom.js";
import { bytes, count } from "./format.js";

const LAYOUT = "frame";
const MARKS = { free: "·", loaned: "L", published: "#", held: "H", unknown: "?" };

/** Whether a segment may be a stream, from its description alone. */
export function mayBeStream(segment) {
  return segment.has_lock && segment.layouts.some((layout) => layout.name === LAYOUT);
}

/** Whether a segment is a stream. Its frames are read without the lock, and not changed. */
export async function isStream(segment) {
  try {
    return mayBeStream(segment) && Boolean(await get("/api/stream", { name: segment.name }));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return false;
  }
}

function process(pid, command) {
  return pid ? `${command || "process"} (${pid})` : "unknown";
}

function slots(stream) {
  const titles = (slot, i) => `slot ${i}: ${slot.state}${slot.sequence ? `, frame ${slot.sequence}` : ""}${slot.pid ? `, ${process(slot.pid, slot.command)}` : ""}${slot.holders ? `, ${slot.holders} holders` : ""}`;
  const n = (state) => stream.slots.filter((slot) => slot.state === state).length;
  return [h("p", { class: "slots", role: "img", "aria-label": "The slots" },
    ...stream.slots.map((slot, i) => h("span", { class: `slot ${slot.state}`, title: titles(slot, i) }, MARKS[slot.state]))),
  h("p", { class: "soft" }, `${n("free")} free (·), ${n("loaned")} loaned (L), ${n("published")} published (#), ${n("held")} held (H)`)];
}

function readers(stream) {
  if (!stream.sees_readers) return h("p", { class: "warn" }, "Its readers are not seen: all slots of its lock are taken.");
  if (!stream.readers.length) return h("p", { class: "soft" }, "It has no readers.");
  return h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ...["Reader", "Stage", "Lag", "Missed", "Holds"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...stream.readers.map((reader) => h("tr", {},
      h("td", {}, process(reader.pid, reader.command) + (reader.has_left ? ", has left" : "")), h("td", { class: "number" }, reader.stage),
      h("td", { class: "number" }, `${count(reader.lag)} frames`), h("td", { class: reader.missed ? "number bad" : "number" }, `${count(reader.missed)} frames`),
      h("td", { class: "number" }, `${reader.held} frames`)))));
}

/** Makes the nodes of the section about a stream. */
export function streamParts(stream) {
  return [h("h2", {}, "Stream"), facts([
    ["Delivery", stream.mode], ["A frame", bytes(stream.frame_bytes)],
    ["Published", stream.stages.map((stage) => `${count(stage.published)} frames${stage.ended ? ", ended" : ""}`).join("; ")],
    ["Writer", stream.many_writers ? "many" : process(stream.pid, stream.command)],
    ["Writers that died at work", count(stream.deaths), stream.deaths ? "bad" : ""]]),
  ...slots(stream), readers(stream)];
}
