// SPDX-License-Identifier: Apache-2.0
// A view of one dimension as a line. The server gives the least and the greatest value of each column
// of pixels; of a large view it gives some columns at a time, and the others stay until it is their turn.

import { getPicture } from "./binary.js";
import { Chart, axis, color } from "./chart.js";
import { count, duration, value } from "./format.js";
import { lineOf } from "./slice.js";

const MARGIN = 70; // pixels beside the columns
const SHARE_US = 40000; // of processor time in a second, for all updates together
const FLAT = 1e-9; // the least height of the chart, relative to its values: uPlot adds steps, which must not vanish
const INTEGERS = Array.from({ length: 16 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

/** A power of ten near the values. uPlot has no numbers of more than 17 digits on an axis. */
function unitOf(low, high) {
  let most = 0;
  for (const list of [low, high]) {
    for (const x of list) if (Number.isFinite(x)) most = Math.max(most, Math.abs(x));
  }
  return most ? 10 ** Math.max(-300, Math.floor(Math.log10(most))) : 1;
}

/** The limits of an axis. */
function limits(min, max) {
  if (min === null || max === null) return [0, 1];
  const least = Math.max(Math.abs(min), Math.abs(max)) * FLAT || 1;
  const height = Math.max(max - min, least);
  const middle = min + (max - min) / 2;
  return [middle - height * 0.52, middle + height * 0.52];
}

export function linePicture({ frame, settings, choose }) {
  const chart = new Chart(frame);
  let [low, high, next] = [new Float64Array(0), new Float64Array(0), 0];
  let slice = settings.slice; // of low and high
  let at = null; // lineOf() it
  let unit = 1; // of the values that uPlot has
  let n = 0;

  const place = (element) => (at ? at.first + element * at.step : element);
  const begin = (column) => Math.floor((column * n) / low.length);

  /** The elements of a column. */
  function elements(column) {
    const [first, last] = [begin(column), begin(column + 1) - 1];
    return first === last ? count(place(first)) : `${count(place(first))} to ${count(place(last))}`;
  }

  function options(isExact) {
    const figure = (list) => (_, __, ___, i) => (i === null ? "" : value(list()[i]));
    const series = (label, list) => ({ label, value: figure(list), stroke: () => color("--accent"), width: 1.25, points: { show: () => n === 1 } });
    return {
      cursor: { y: false, drag: { x: at !== null, setScale: false }, bind: { dblclick: () => () => at && choose(at.whole) } },
      scales: { x: { time: false, range: () => [place(0), place(Math.max(1, n - 1))] }, y: { range: (_, min, max) => limits(min, max) } },
      axes: [
        axis({ incrs: INTEGERS, space: 90, values: (_, splits) => splits.map(count) }),
        axis({ size: MARGIN - 8, values: (_, splits) => splits.map((split) => value(Number((split * unit).toPrecision(10)))) }),
      ],
      series: [
        { label: "Element", value: (_, __, ___, i) => (i === null ? "" : elements(i)) },
        ...(isExact ? [series("Value", () => low)] : [series("Greatest", () => high), series("Least", () => low)]),
      ],
      bands: isExact ? [] : [{ series: [1, 2], fill: () => color("--accent") }],
      hooks: { setSelect: [(plot) => {
        const { left, width } = plot.select;
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        if (chart.ended || !at || width < 3) return;
        const index = (x) => Math.round((plot.posToVal(x, "x") - at.first) / at.step);
        const [from, to] = [Math.max(0, index(left)), Math.min(n - 1, index(left + width)) + 1];
        if (to - from > 1) choose(at.narrow(place(from), at.first + (to - 1) * at.step + 1));
      }] },
    };
  }

  /** What uPlot draws: null is a gap. */
  function data(isExact) {
    unit = unitOf(low, high);
    const x = Float64Array.from(low, (_, i) => place(isExact ? i : begin(i)));
    const y = (list) => Array.from(list, (one) => (Number.isFinite(one) ? one / unit : null));
    return isExact ? [x, y(low)] : [x, y(high), y(low)];
  }

  function label() {
    const known = (list) => list.filter(Number.isFinite);
    const least = known(low).reduce((a, b) => Math.min(a, b), Infinity);
    const greatest = known(high).reduce((a, b) => Math.max(a, b), -Infinity);
    return `a line of ${count(n)} elements${least <= greatest ? ` from ${value(least)} to ${value(greatest)}` : ""}`;
  }

  async function update() {
    const columns = Math.max(16, Math.min(4096, frame.clientWidth - MARGIN));
    const budget = Math.round(SHARE_US / settings.rate);
    const wanted = settings.slice;
    const first = wanted === slice ? next : 0;
    const [head, bytes, start] = await getPicture("/api/line", { ...settings.request(), columns, first, budget });
    if (wanted !== settings.slice) return head; // another one was chosen since the request
    if (wanted !== slice || head.columns !== low.length) {
      slice = wanted;
      low = new Float64Array(head.columns).fill(NaN);
      high = new Float64Array(head.columns).fill(NaN);
    }
    const newLow = new Float64Array(bytes, start, head.read);
    const newHigh = new Float64Array(bytes, start + 8 * head.read, head.read);
    for (let i = 0; i < head.read; i++) {
      low[(head.first + i) % head.columns] = newLow[i];
      high[(head.first + i) % head.columns] = newHigh[i];
    }
    next = head.columns ? (head.first + head.read) % head.columns : 0;
    const turns = head.read ? Math.ceil(head.columns / head.read) : 0;
    [n, at] = [head.n, lineOf(slice, settings.shape)];
    const isExact = n === head.columns;
    await chart.draw(`${isExact} ${at !== null}`, () => options(isExact), data(isExact), label());
    head.note = turns > 1 ? `each part is read again every ${duration((turns * 1e6) / settings.rate)}` : "";
    return head;
  }
  return { update, end: () => chart.end() };
}
