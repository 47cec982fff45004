// SPDX-License-Identifier: Apache-2.0
// Finds the page for the part of the address after "#", and shows it. The address has all that a
// page needs, so that a link or a bookmark restores it.

import { onConnection } from "./api.js";
import { fill, h, say } from "./dom.js";
import { takeEarly } from "./early.js";
import { overview } from "./overview.js";
import { segment } from "./segment.js";
import { view } from "./view.js";

const PAGES = { "/": overview, "/segment": segment, "/view": view };

const main = document.getElementById("main");
const trail = document.getElementById("trail");
let leave = () => {};

/** Reads "#/path?a=1" as ["/path", {a: "1"}]. */
function read(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  return [path || "/", Object.fromEntries(new URLSearchParams(query))];
}

function show() {
  const [path, parameters] = read(location.hash);
  if (!path.startsWith("/")) return; // the link that skips to the contents
  leave();
  fill(trail);
  fill(main);
  const page = PAGES[path];
  if (page !== overview) takeEarly()?.end();
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
