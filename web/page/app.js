// SPDX-License-Identifier: Apache-2.0
// Finds the page for the part of the address after "#", and shows it. The address has all that a
// page needs, so that a link or a bookmark restores it.

import { onConnection } from "./api.js";
import { fill, h, say } from "./dom.js";
import { overview } from "./overview.js";

const PAGES = { "/": overview };

const main = document.getElementById("main");
const trail = document.getElementById("trail");
let leave = () => {};

/** Reads "#/path?a=1" as ["/path", {a: "1"}]. */
function read(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  return [path || "/", Object.fromEntries(new URLSearchParams(query))];
}

/** The address of a page. Parameters that are empty are left out. */
export function link(path, parameters = {}) {
  const kept = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept).toString();
  return `#${path}${query ? `?${query}` : ""}`;
}

function show() {
  const [path, parameters] = read(location.hash);
  if (!path.startsWith("/")) return; // the link that skips to the contents
  leave();
  fill(trail);
  fill(main);
  const page = PAGES[path];
  if (!page) {
    leave = () => {};
    document.title = "shmview";
    fill(main, h("p", { class: "panel error" }, `There is no page ${path}. `, h("a", { href: "#/" }, "All segments")));
    return;
  }
  leave = page({ main, trail, parameters }) || (() => {});
}

onConnection(({ kind, text }) => say(document.getElementById("connection"), text, kind));
window.addEventListener("hashchange", show);
show();
