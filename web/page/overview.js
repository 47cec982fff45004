// SPDX-License-Identifier: Apache-2.0
// The first page: figures of the daemon, all segments, and events as they happen.

import { events, get, repeat } from "./api.js";
import { facts, fill, h, say } from "./dom.js";
import { takeEarly } from "./early.js";
import { eventList } from "./events.js";
import { BACKINGS, LIFETIMES, bytes, count, duration, time } from "./format.js";
import { listAll } from "./list.js";
import { Table } from "./table.js";

const SHOW_MS = 500; // between two looks of the user at a list that still grows
const SOON_MS = 50; // from the moment at which rows without details are visible to a request for them
const LOOK_MS = 2000; // between two looks at the visible rows and at the figures
const NAMES = 64; // of one request
const TOUCHING = new Set(["created", "attached", "detached", "died", "owner_died", "access", "phase"]);

const STATES = new Set(["isBrief", "changed", "order", "text"]); // of a row, beside its figures
const LATE = new Set(["layout", "generation", "changes", "resident", "created_us"]); // what a brief row may lack

const segmentLink = (row) => h("a", { href: `#/segment?${new URLSearchParams({ name: row.name })}` }, row.name);

// isLate: the list comes without it, because the daemon must look for it (docs/WEB.md).
const COLUMNS = [
  { key: "name", title: "Name", show: segmentLink, width: 14 },
  { key: "label", title: "Label", hint: "A text by the creator", class: "wide", width: 10 },
  { key: "size", title: "Size", kind: "number", show: (row) => bytes(row.size), width: 6 },
  { key: "resident", title: "Resident", kind: "number", hint: "Memory or swap that the data take", isLate: true, show: (row) => (row.isBrief ? "" : bytes(row.resident)), class: "middle", width: 6 },
  { key: "attachments", title: "Attached", kind: "number", hint: "Attachments of all processes", class: "middle", width: 5.5 },
  { key: "holder", title: "Lock", hint: "Who holds the lock exclusively", show: (row) => row.holder || (row.has_lock ? "" : "none"), width: 9 },
  { key: "waiters", title: "Waiting", kind: "number", hint: "Who waits for the lock", class: "middle", width: 5 },
  { key: "layout", title: "Phase", hint: "The layout that is current", isLate: true, class: "middle", width: 6 },
  { key: "deaths", title: "Deaths", kind: "number", hint: "Clients that died while they held the lock exclusively", show: (row) => (row.deaths ? h("span", { class: "bad" }, count(row.deaths)) : "0"), class: "middle", width: 5 },
  { key: "user", title: "Owner", class: "wide", width: 5 },
  { key: "lifetime", title: "Lifetime", hint: "When it ends, and what its memory is", show: (row) => [LIFETIMES[row.lifetime], BACKINGS[row.backing]].join(", "), class: "wide", width: 8 },
  { key: "created_us", title: "Created", kind: "number", isLate: true, show: (row) => (row.isBrief ? "" : row.created_us ? time(row.created_us) : "unknown"), class: "wide", width: 6 },
];

/** Turns an answer into objects. One place makes all of them, with the same members in the same order,
 * which browsers are quick at. A column is a list, or the value that all rows have. */
function rowsOf({ n, columns, users }, isBrief) {
  const late = isBrief ? {} : columns;
  const at = (values, i) => (Array.isArray(values) ? values[i] : values ?? null);
  const rows = [];
  for (let i = 0; i < n; i++) {
    const owner = at(columns.owner, i);
    rows.push({
      isBrief, changed: false, order: null, text: null,
      id: at(columns.id, i), name: at(columns.name, i), label: at(columns.label, i), size: at(columns.size, i),
      attachments: at(columns.attachments, i), owner, lifetime: at(columns.lifetime, i),
      backing: at(columns.backing, i), has_lock: at(columns.has_lock, i), deaths: at(columns.deaths, i),
      holder: at(columns.holder, i), waiters: at(columns.waiters, i), layout: at(columns.layout, i),
      generation: at(late.generation, i), changes: at(late.changes, i),
      resident: at(late.resident, i), created_us: at(late.created_us, i),
      user: users[owner] || String(owner),
    });
  }
  return rows;
}

function figures(daemon) {
  const used = daemon.memory_limit !== null && daemon.memory_free !== null
    ? daemon.memory_limit - daemon.memory_free : null;
  const memory = used === null ? bytes(daemon.memory_free)
    : h("span", {}, `${bytes(used)} of ${bytes(daemon.memory_limit)}`,
      h("meter", { min: 0, max: daemon.memory_limit, value: used, "aria-label": "shared memory in use" }));
  const list = [
    ["Shared memory in use", memory],
    ["Free for segments", bytes(daemon.memory_free)],
  ];
  if (daemon.segments !== null) list.push(["Segments", count(daemon.segments)], ["Attachments", count(daemon.attachments)]);
  if (daemon.total_died !== null) {
    list.push(["Clients that died", count(daemon.total_died)],
      ["Died with the lock", count(daemon.total_owner_died), daemon.total_owner_died ? "bad" : ""]);
  }
  for (const quota of daemon.quotas) {
    if (quota.limit === null) continue;
    const show = quota.what.endsWith("bytes") ? bytes : count;
    list.push([`Quota of ${quota.what.replace("_", " ")}`, h("span", {}, `${show(quota.used)} of ${show(quota.limit)}`,
      h("meter", { min: 0, max: quota.limit, value: quota.used, high: quota.limit * 0.9, "aria-label": `quota of ${quota.what}` }))]);
  }
  list.push(["Daemon", `${daemon.version}, up ${duration(daemon.uptime_us)}`]);
  return facts(list);
}

/** The text of a row in which the filter looks. */
function textOf(row) {
  row.text ??= `${row.name} ${row.label} ${row.layout || ""} ${row.holder || ""} ${row.user}`.toLowerCase();
  return row.text;
}

/** The state of the page: all rows by id, and what must be asked for. A list comes without its late
 * columns at first. Visible rows get them by name; and all rows, if the user sorts or filters by one. */
class Overview {
  constructor(table, counter, early) {
    this.table = table;
    this.counter = counter;
    this.early = early; // asks for the first list already, or null
    this.rows = new Map();
    this.touched = new Set();
    this.gone = new Set(); // ids that were removed since the list was asked for, whose rows it may still have
    this.loading = null;
    this.isLoaded = false;
    this.words = []; // of the filter
    this.soon = 0;
  }

  /** The late column that decides what is shown, and is not known of all rows; or undefined. */
  missing() {
    const late = COLUMNS.filter(({ key, isLate }) => isLate && (key === this.table.sort.key || (key === "layout" && this.words.length)));
    return late.find(({ key }) => [...this.rows.values()].some((row) => row.isBrief && (row[key] === null || row[key] === undefined)));
  }

  /** Says how many there are, and whether the order or the filter lacks a column. */
  tell() {
    if (!this.rows.size && !this.isLoaded) return;
    const [shown, all, missing] = [this.table.order.count, this.rows.size, this.missing()];
    const text = `${shown === all ? "" : `${count(shown)} of `}${count(all)} segment${all === 1 ? "" : "s"}`;
    say(this.counter, missing ? `${text}: ${missing.title} is not known of all yet` : text, "soft");
  }

  /** Gets the column that the order or the filter lacks. */
  complete() {
    this.tell();
    if (this.missing()) this.reload();
  }

  /** Takes rows in that are new or have changed. */
  put(rows) {
    for (const row of rows) {
      const old = this.rows.get(row.id);
      this.rows.set(row.id, row);
      if (old && old !== row) this.table.order.remove(old);
    }
    this.table.order.put(rows);
  }

  /** Gets all segments. The first list is shown from time to time while it grows. */
  async load() {
    const [seen, isFirst, isBrief] = [new Map(), !this.rows.size, !this.missing()];
    let shown = -Infinity;
    this.gone.clear();
    const take = (answer, last) => {
      const rows = rowsOf(answer, isBrief).filter((row) => row.id <= last && !this.gone.has(row.id));
      if (!isFirst) {
        for (const row of rows) seen.set(row.id, row);
        return;
      }
      this.put(rows);
      if (performance.now() - shown < SHOW_MS) return;
      shown = performance.now();
      this.table.arranged();
    };
    this.table.order.isGrowing = isFirst;
    const early = this.early?.list(take);
    this.early = null;
    await (early || listAll(isBrief, take));
    if (isFirst) {
      this.table.arranged();
      return;
    }
    for (const id of this.gone) seen.delete(id);
    this.rows = seen;
    this.table.elements.clear();
    this.table.order.replace();
  }

  reload() {
    this.loading = this.loading || this.load().catch(() => {}).finally(() => {
      this.loading = null;
      this.isLoaded = true;
      this.table.order.settle();
    });
  }

  /** Asks for visible rows that have no details yet. */
  lookSoon() {
    if (this.soon || this.table.order.isGrowing || !this.table.visible().some((row) => row.isBrief)) return;
    this.soon = setTimeout(() => {
      this.soon = 0;
      this.look().catch(() => {});
    }, SOON_MS);
  }

  /** Asks again for the rows that events have named, and for the visible ones. */
  async look() {
    this.complete();
    const visible = this.table.visible().sort((a, b) => b.isBrief - a.isBrief).map((row) => row.name);
    const names = [...new Set([...this.touched, ...visible])].slice(0, NAMES);
    for (const name of names) this.touched.delete(name);
    if (!names.length) return;
    const changed = [];
    let anyDrawn = false;
    for (const row of rowsOf(await get("/api/segments", { name: names }), false)) {
      const old = this.rows.get(row.id) || row;
      row.changed = old === row || Object.keys(old).some((key) => !STATES.has(key) && !(old.isBrief && LATE.has(key)) && old[key] !== row[key]);
      if (!row.changed && !old.changed && !old.isBrief) continue;
      anyDrawn = true;
      this.table.elements.delete(row.id);
      row.order = old.order;
      Object.assign(old, row);
      if (row.changed) changed.push(old);
    }
    if (changed.length) this.put(changed);
    else if (anyDrawn) this.table.draw();
  }

  handle(event) {
    if (event.kind === "subscribed" || event.kind === "lost") {
      this.reload();
    } else if (event.kind === "removed") {
      const row = this.rows.get(event.id);
      this.rows.delete(event.id);
      if (this.loading) this.gone.add(event.id);
      if (row) this.table.order.remove(row);
    } else if (TOUCHING.has(event.kind) && event.segment) {
      this.touched.add(event.segment);
    }
  }
}

export function overview({ main }) {
  document.title = "shmview";
  const top = h("div");
  const counter = h("p", { class: "soft", role: "status" });
  const search = h("input", { type: "search", placeholder: "name, label, phase, process", id: "filter" });
  const locked = h("input", { type: "checkbox", id: "locked" });
  const table = new Table({ columns: COLUMNS, label: "Segments", sort: { key: "name", down: false }, rows: () => state.rows.values(), onSort: () => state.complete(), onArrange: () => state.tell(), onDraw: () => state.lookSoon() });
  const early = takeEarly();
  const state = new Overview(table, counter, early);
  const list = eventList("Events");
  table.arrange();

  function refilter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    state.words = words;
    table.element.scrollTop = 0;
    table.show(words.length || locked.checked
      ? (row) => (!locked.checked || row.holder) && words.every((word) => textOf(row).includes(word)) : null);
    state.complete();
  }
  search.addEventListener("input", refilter);
  locked.addEventListener("change", refilter);

  function handle(event) {
    list.add(event);
    state.handle(event);
  }

  fill(main, h("h1", { class: "hidden" }, "Segments"), top,
    h("div", { class: "bar" }, h("label", { for: "filter" }, "Filter", search),
      h("label", { for: "locked" }, locked, "locked now"), counter),
    h("div", { class: "columns" }, table.element, list.element));

  const ends = [
    early ? early.follow(handle) : events({ handle }),
    repeat(LOOK_MS, async () => { fill(top, figures(await get("/api/daemon"))); }),
    repeat(LOOK_MS, () => state.look()),
    () => { clearTimeout(state.soon); table.end(); },
  ];
  return () => ends.forEach((end) => end());
}
