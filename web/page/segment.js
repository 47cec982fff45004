// SPDX-License-Identifier: Apache-2.0
// The page of one segment: its memory with the views over it, its phase, who holds and awaits its
// lock, and its past.

import { events, get, repeat } from "./api.js";
import { facts, fill, h } from "./dom.js";
import { eventList } from "./events.js";
import { ACCESSES, BACKINGS, HOLDS, LIFETIMES, bytes, count, duration, time } from "./format.js";
import { memoryPicture } from "./memory.js";
import { mayBeStream, streamParts } from "./streams.js";
import { waitsPanel } from "./waits.js";

const LOOK_MS = 1000;
const STREAM_MS = 2000; // each look attaches the stream for a moment

function mode(bits) {
  return (bits & 0o777).toString(8).padStart(4, "0");
}

function figures(s) {
  const holder = s.parties.find((party) => party.holds === 1);
  const list = [
    ["Size", bytes(s.size)],
    ["Resident", bytes(s.resident)],
    ["Phase", s.generation ? `${s.layout} (${s.generation})` : "none yet"],
    ["Lock", s.has_lock ? (holder ? `held by ${holder.command} (${holder.pid})` : "not held exclusively") : "none", holder ? "warn" : ""],
    ["Attachments", count(s.attachments)],
    ["Changes", count(s.changes)],
    ["Owners that died inside", count(s.owner_deaths), s.owner_deaths ? "bad" : ""],
    ["Lifetime", `${LIFETIMES[s.lifetime]}, ${BACKINGS[s.backing]}`],
    ["Owner and mode", `${s.owner}:${s.group} ${mode(s.mode)}`],
  ];
  if (s.created_us) list.push(["Created", time(s.created_us)]);
  if (s.label) list.unshift(["Label", s.label]);
  return facts(list);
}

function role(party) {
  const roles = [];
  if (party.holds) roles.push(`holds it ${HOLDS[party.holds]}`);
  if (party.waits) roles.push(`waits for it ${HOLDS[party.waits]}`);
  return roles.join(", ") || "idle";
}

function parties(s) {
  if (!s.parties.length) return h("p", { class: "soft" }, "No process has attached it.");
  const rows = s.parties.map((party) => h("tr", {},
    h("td", {}, party.command || "unknown"), h("td", { class: "number" }, party.pid || "elsewhere"),
    h("td", {}, ACCESSES[party.access]), h("td", { class: party.holds === 1 ? "warn" : party.waits ? "bad" : null }, role(party)),
    h("td", { class: "number" }, party.since_us === null || !(party.holds || party.waits) ? "" : duration(party.since_us))));
  return h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ...["Program", "Process", "Access", "Lock", "For at least"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...rows));
}

function viewRow(segment, layout, view) {
  const parameters = { segment, layout: layout.name, view: view.name };
  return h("tr", {},
    h("td", {}, h("a", { href: `#/view?${new URLSearchParams(parameters)}` }, view.name)),
    h("td", {}, view.dtype === "struct" ? h("code", {}, view.format) : view.dtype),
    h("td", { class: "number" }, view.shape.length ? view.shape.map(count).join(" × ") : "1 element"),
    h("td", { class: "number" }, `${count(view.begin)} to ${count(view.end)}`));
}

function layouts(s) {
  const raw = h("p", {}, h("a", { href: `#/view?${new URLSearchParams({ segment: s.name, as: "uint8" })}` }, "All bytes as numbers"));
  return [...s.layouts.map((layout) => h("section", {},
    h("h3", {}, `Layout ${layout.name}`, layout.name === s.layout ? h("span", { class: "good" }, " – current") : null),
    h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, ...["View", "Type", "Elements", "Bytes"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...layout.views.map((view) => viewRow(s.name, layout, view)))))), raw];
}

export function segment({ main, trail, parameters }) {
  const name = parameters.name || "";
  document.title = `${name} – shmview`;
  fill(trail, h("a", { href: "#/" }, "All segments"), " / ", name);
  const [top, picture, views, who] = [h("div"), h("div"), h("div", { class: "across", tabindex: "0", role: "region", "aria-label": "Views" }), h("div", { class: "across", tabindex: "0", role: "region", "aria-label": "Processes" })];
  const problem = h("p", { class: "panel error", role: "alert", hidden: true });
  const list = eventList("Events of this segment");
  const stream = h("section", { class: "panel", hidden: true });
  const waits = waitsPanel(name);
  let shape = "";
  let server = 0; // the process of the page's server, whose own looks are no news
  let looksAtStream = false;

  fill(main, h("h1", {}, name), problem, top,
    h("section", { class: "panel" }, h("h2", {}, "Memory"), picture), waits.element, stream,
    h("div", { class: "columns" }, h("div", { class: "stack" },
      h("section", { class: "panel" }, h("h2", {}, "Processes"), who),
      h("section", { class: "panel" }, h("h2", {}, "Views"), views)), list.element));

  async function lookAtStream() {
    if (!looksAtStream) return;
    fill(stream, ...streamParts(await get("/api/stream", { name })));
    stream.hidden = false;
  }

  function note(event) {
    if (!server || event.pid !== server) list.add(event);
  }

  async function look() {
    try {
      server = server || (await get("/api/daemon")).server_pid;
      const s = await get("/api/segment", { name });
      problem.hidden = true;
      looksAtStream = mayBeStream(s);
      fill(top, figures(s));
      fill(who, parties(s));
      waits.update(s.parties.some((party) => party.waits) ? await get("/api/waits", { name }) : null);
      const now = JSON.stringify([s.layouts, s.layout]);
      if (now === shape) return; // what has the focus stays
      shape = now;
      fill(views, ...layouts(s));
      fill(picture, memoryPicture(s));
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
      throw error;
    }
  }
  const ends = [repeat(LOOK_MS, look), repeat(STREAM_MS, lookAtStream), events({ names: [name], after: 1, handle: note })];
  return () => ends.forEach((end) => end());
}
