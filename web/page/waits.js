// SPDX-License-Identifier: Apache-2.0
// Who waits for whom: the processes that wait for the lock of a segment, its holders, what these wait
// for, and so on, as nested lists of sentences. A cycle is named above them.

import { fill, h, say } from "./dom.js";
import { HOLDS, duration } from "./format.js";

function process(party) {
  return `${party.command || "a process"} (${party.pid || "elsewhere"})`;
}

/** "Deadlock: a (1) waits for S held by b (2), b (2) waits for T held by a (1)." */
function deadlock(waits) {
  const parts = waits.map((wait, i) =>
    `${process(wait)} waits for ${wait.segment} held by ${process(waits[(i + 1) % waits.length])}`);
  return `Deadlock: ${parts.join(", ")}.`;
}

function name(line, own) {
  if (line.segment === own) return line.segment;
  return h("a", { href: `#/segment?${new URLSearchParams({ name: line.segment })}` }, line.segment);
}

function ending(line) {
  if (line.is_closing) return h("strong", { class: "bad" }, ", which closes the circle");
  return line.is_repeated ? ", as above" : null;
}

/** The time of a line, as text: it may change while the line stays. */
function lasting(line) {
  if (line.since_us === null) return "";
  return line.holds ? `, for at least ${duration(line.since_us)}` : `, for ${duration(line.since_us)}`;
}

/** Makes the panel. update(answer) shows an answer of /api/waits, or nothing with null. */
export function waitsPanel(own) {
  const alerts = h("div", { role: "alert" });
  const lists = h("div", { class: "waits" });
  const note = h("p", { class: "soft", hidden: true }, "Not all waits are shown: there are too many.");
  const element = h("section", { class: "panel", hidden: true },
    h("h2", {}, "Who waits for whom"), alerts, lists, note);
  let shape = "";
  let deadlocks = "";
  let times = [];

  function sentence(line) {
    const time = h("span");
    times.push(time);
    const does = line.holds ? "holds " : "waits for ";
    return h("li", { class: line.is_closing ? "bad" : null }, h("strong", {}, process(line)), ` ${does}`,
      name(line, own), `, ${HOLDS[line.holds || line.waits]}`, time, ending(line));
  }

  /** Lines with their depths become lists in lists. */
  function nest(lines) {
    const top = h("ul");
    const open = [top];
    for (const line of lines) {
      while (open.length > line.depth + 1) open.pop();
      if (open.length <= line.depth) {
        const list = h("ul");
        (open.at(-1).lastElementChild || open.at(-1)).append(list);
        open.push(list);
      }
      open.at(-1).append(sentence(line));
    }
    return top;
  }

  function update(answer) {
    const lines = answer ? answer.lines : [];
    element.hidden = !lines.length;
    note.hidden = !answer || answer.is_complete;
    const texts = (answer ? answer.deadlocks : []).map(deadlock);
    if (texts.join() !== deadlocks) { // else a screen reader reads it twice
      deadlocks = texts.join();
      fill(alerts, ...texts.map((text) => h("p", { class: "bad" }, text)));
    }
    const now = JSON.stringify(lines, (key, value) => (key === "since_us" ? undefined : value));
    if (now !== shape) { // else what has the focus stays
      shape = now;
      times = [];
      fill(lists, nest(lines));
    }
    lines.forEach((line, i) => say(times[i], lasting(line)));
  }
  return { element, update };
}
