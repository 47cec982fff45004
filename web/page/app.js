// SPDX-License-Identifier: Apache-2.0
// Finds the page for the part of the address after "#", and shows it. The address has all that a
// page needs, so that a link or a bookmark restores it. The modules of other pages than the first one
// are loaded when they are needed.

import { onConnection } from "./api.js";
import { fill, h, say } from "./dom.js";
import { takeEarly } from "./early.js";
import { overview } from "./overview.js";

const PAGES = {
  "/": () => overview,
  "/segment": async () => (await import("./segment.js")).segment,
  "/view": async () => (await import("./view.js")).view,
};

const main = document.getElementById("main");
const trail = document.getElementById("trail");
let leave = () => {};
let turn = 0; // counts the pages that were asked for

/** Reads "#/path?a=1" as ["/path", {a: "1"}]. */
function read(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  return [path || "/", Object.fromEntries(new URLSearchParams(query))];
}

/** Shows an error, and what the user can do. */
function fail(text, ...remedy) {
  document.title = "shmview";
  fill(main, h("p", { class: "panel error", role: "alert" }, text, " ", ...remedy));
}

async function show() {
  const [path, parameters] = read(location.hash);
  if (!path.startsWith("/")) return; // the link that skips to the contents
  const mine = ++turn;
  leave();
  leave = () => {};
  fill(trail);
  fill(main);
  if (path !== "/") takeEarly()?.end();
  if (!PAGES[path]) {
    fail(`There is no page ${path}.`, h("a", { href: "#/" }, "All segments"));
    return;
  }
  let page = PAGES[path]();
  try {
    if (page !== overview) page = await page;
  } catch {
    if (mine === turn) fail("This page cannot be loaded from its server.", h("button", { type: "button", onclick: () => location.reload() }, "Load again"));
    return;
  }
  if (mine === turn) leave = page({ main, trail, parameters }) || (() => {});
}

onConnection(({ kind, text }) => say(document.getElementById("connection"), text, kind));
window.addEventListener("hashchange", show);
show();
