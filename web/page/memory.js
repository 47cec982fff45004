// SPDX-License-Identifier: Apache-2.0
// A picture of a segment: one bar for each layout, and on it the bytes that each view occupies.

import { fill, h } from "./dom.js";
import { bytes, count } from "./format.js";

const WIDTH = 1000;
const BAR = 22;
const GAP = 20;
const COLORS = 6; // classes v0 to v5 of the style sheet

/** Puts views that overlap on lines of their own. Returns [view, line] and the number of lines. */
function arrange(views) {
  const ends = [];
  const placed = [...views].sort((a, b) => a.begin - b.begin).map((view) => {
    let line = ends.findIndex((end) => end <= view.begin);
    if (line < 0) line = ends.length;
    ends[line] = Math.max(view.end, view.begin + 1);
    return [view, line];
  });
  return { placed, n: Math.max(1, ends.length) };
}

function describe(layout, view) {
  return `${layout.name}/${view.name}: bytes ${count(view.begin)} to ${count(view.end)}, ${view.dtype} ${view.shape.join(" × ")}`;
}

/** Makes the picture, with a line of text for the view under the pointer. */
export function memoryPicture(s) {
  if (!s.layouts.length) return h("p", { class: "soft" }, `${bytes(s.size)}, and no layout.`);
  const said = h("p", { class: "soft" }, `${bytes(s.size)}. Point at a view for its bytes.`);
  const parts = [];
  let top = 0;
  for (const layout of s.layouts) {
    const { placed, n } = arrange(layout.views);
    const label = h("text", { x: 0, y: top + 14, class: "label" }, layout.name + (layout.name === s.layout ? " (current)" : ""));
    parts.push(label, h("rect", { x: 0, y: top + GAP, width: WIDTH, height: n * BAR, class: "free" }));
    placed.forEach(([view, line], i) => {
      const x = (view.begin / s.size) * WIDTH;
      const width = Math.max(2, ((view.end - view.begin) / s.size) * WIDTH);
      const link = h("a", {
        href: `#/view?${new URLSearchParams({ segment: s.name, layout: layout.name, view: view.name })}`,
        "aria-label": describe(layout, view),
        onpointerenter: () => fill(said, describe(layout, view)),
        onfocus: () => fill(said, describe(layout, view)),
      }, h("rect", { x, y: top + GAP + line * BAR + 1, width, height: BAR - 2, rx: 3, class: `v${i % COLORS}` }));
      if (width > 7 * view.name.length + 8) {
        link.append(h("text", { x: x + 5, y: top + GAP + line * BAR + 15, class: "inside" }, view.name));
      }
      parts.push(link);
    });
    top += GAP + n * BAR + 6;
  }
  return h("div", { class: "across", tabindex: "0", role: "region", "aria-label": "Memory" }, h("svg", { viewBox: `0 0 ${WIDTH} ${top}`, class: "memory", role: "group", "aria-label": "Views over the bytes of the segment" }, ...parts), said);
}
