// SPDX-License-Identifier: Apache-2.0
// Figures of all elements, and how their values are distributed.

import { get } from "./api.js";
import { Chart, axis, color } from "./chart.js";
import { facts, fill, h } from "./dom.js";
import { count, value } from "./format.js";

export function histogramPicture({ frame, settings }) {
  const [figures, picture] = [h("div"), h("div", { class: "picture" })];
  fill(frame, figures, picture);
  const chart = new Chart(picture);
  let head = null;

  /** The value at which a bin begins. */
  const edge = (bin) => value(head.low + (bin * (head.high - head.low)) / head.counts.length);

  function options(uPlot) {
    return {
      cursor: { y: false, drag: { x: false, setScale: false } },
      scales: { x: { time: false, range: () => [0, head.counts.length] }, y: { range: (_, __, max) => [0, max || 1] } },
      axes: [
        axis({ incrs: [1, 2, 4, 8, 16, 32], space: 90, values: (_, splits) => splits.map(edge) }),
        axis({ size: 62, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500].flatMap((n) => [n, n * 1e3, n * 1e6, n * 1e9, n * 1e12]).sort((a, b) => a - b), values: (_, splits) => splits.map((n) => (n < 1e6 ? count(n) : value(n))) }),
      ],
      series: [
        { label: "Values", value: (_, __, ___, i) => (i === null ? "" : `${edge(i)} to ${edge(i + 1)}`) },
        { label: "Elements", value: (_, n) => (n === null ? "" : count(n)), fill: () => color("--accent"), stroke: () => color("--accent"), width: 0, paths: uPlot.paths.bars({ size: [1, Infinity], gap: 1 }), points: { show: false } },
      ],
    };
  }

  async function update() {
    head = await get("/api/histogram", settings.request());
    const numbers = head.n - head.nan;
    const mean = typeof head.sum === "number" && numbers ? head.sum / numbers : NaN;
    fill(figures, facts([["Elements", count(head.n)], ["NaN", count(head.nan)], ["Infinite", count(head.infinite)],
      ["Least", value(head.min)], ["Greatest", value(head.max)], ["Mean", value(mean)], ["Sum", value(head.sum)]]));
    const data = [head.counts.map((_, i) => i + 0.5), head.counts]; // uPlot finds the nearest middle
    await chart.draw("bins", options, data, `a histogram of ${count(head.n)} elements from ${value(head.low)} to ${value(head.high)}`);
    return head;
  }
  return { update, end: () => chart.end() };
}
