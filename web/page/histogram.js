// SPDX-License-Identifier: Apache-2.0
// Figures of all elements, and how their values are distributed.

import { get } from "./api.js";
import { facts, fill, h } from "./dom.js";
import { count, value } from "./format.js";

const WIDTH = 640;
const HEIGHT = 220;

function bars(head) {
  const most = Math.max(1, ...head.counts);
  const step = WIDTH / head.counts.length;
  const width = (head.high - head.low) / head.counts.length;
  const parts = head.counts.map((n, i) => {
    const height = (n / most) * HEIGHT;
    const bar = h("rect", { x: i * step + 0.5, y: HEIGHT - height, width: step - 1, height, class: "v0" });
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = `${value(head.low + i * width)} to ${value(head.low + (i + 1) * width)}: ${count(n)}`;
    bar.append(title);
    return bar;
  });
  return h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + 18}`, class: "memory", role: "img", "aria-label": `a histogram of ${count(head.n)} elements from ${value(head.low)} to ${value(head.high)}` },
    ...parts, h("text", { x: 0, y: HEIGHT + 14 }, value(head.low)),
    h("text", { x: WIDTH, y: HEIGHT + 14, "text-anchor": "end" }, value(head.high)));
}

export function histogramPicture({ frame, settings }) {
  const [figures, picture] = [h("div"), h("div", { class: "panel across", tabindex: "0", role: "region", "aria-label": "Histogram" })];
  fill(frame, figures, picture);

  async function update() {
    const head = await get("/api/histogram", settings.request());
    const numbers = head.n - head.nan;
    const mean = typeof head.sum === "number" && numbers ? head.sum / numbers : NaN;
    fill(figures, facts([["Elements", count(head.n)], ["NaN", count(head.nan)], ["Infinite", count(head.infinite)],
      ["Least", value(head.min)], ["Greatest", value(head.max)], ["Mean", value(mean)], ["Sum", value(head.sum)]]));
    fill(picture, bars(head));
    return head;
  }
  return { update };
}
