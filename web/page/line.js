// SPDX-License-Identifier: Apache-2.0
// A line on a canvas. The server gives the least and the greatest value of each column of pixels; of
// a large view it gives some columns at a time, and the others stay until it is their turn.

import { getPicture } from "./binary.js";
import { fill, h } from "./dom.js";
import { count, duration, value } from "./format.js";

const LEFT = 74;
const BOTTOM = 22;
const TOP = 8;
const SHARE_US = 40000; // of processor time in a second, for all updates together
const TICKS = 5; // about

/** Extremes of finite numbers. */
function range(low, high) {
  let [min, max] = [Infinity, -Infinity];
  for (let i = 0; i < low.length; i++) {
    if (low[i] < min && Number.isFinite(low[i])) min = low[i];
    if (high[i] > max && Number.isFinite(high[i])) max = high[i];
  }
  if (min > max) return [0, 1];
  return min === max ? [min - 0.5, max + 0.5] : [min, max];
}

/** Round numbers between min and max, about TICKS of them. */
function ticks(min, max) {
  const rough = (max - min) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((one) => one >= rough);
  // Between neighbouring doubles a step is too small to be added, so the number of ticks is limited.
  const first = Math.ceil(min / step);
  return Array.from({ length: 2 * TICKS }, (_, i) => (first + i) * step).filter((tick) => tick <= max);
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axes(context, width, height, [min, max], n) {
  context.fillStyle = style("--soft");
  context.strokeStyle = style("--line");
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.beginPath();
  for (const tick of ticks(min, max)) {
    const y = Math.round(TOP + (height - TOP - BOTTOM) * (1 - (tick - min) / (max - min))) + 0.5;
    context.moveTo(LEFT, y);
    context.lineTo(width, y);
    context.fillText(value(Number(tick.toPrecision(10))), LEFT - 6, y + 4);
  }
  context.stroke();
  context.textAlign = "left";
  context.fillText("element 0", LEFT, height - 6);
  context.textAlign = "right";
  context.fillText(count(Math.max(0, n - 1)), width - 4, height - 6);
}

/** Draws the columns. Each reaches its neighbour, so that the line has no gaps. */
function draw(canvas, low, high, n) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const [min, max] = range(low, high);
  axes(context, width, height, [min, max], n);
  const y = (x) => TOP + (height - TOP - BOTTOM) * (1 - (x - min) / (max - min));
  const step = (width - LEFT) / low.length;
  context.strokeStyle = style("--accent");
  context.lineWidth = 1.25;
  context.beginPath();
  let joined = false;
  for (let i = 0; i < low.length; i++) {
    if (!Number.isFinite(low[i]) || !Number.isFinite(high[i])) {
      joined = false;
      continue;
    }
    const x = LEFT + (i + 0.5) * step;
    if (joined) context.lineTo(x, y(high[i]));
    else context.moveTo(x, y(high[i]));
    if (low[i] !== high[i]) context.lineTo(x, y(low[i]));
    joined = true;
  }
  context.stroke();
  return [min, max];
}

export function linePicture({ frame, settings }) {
  const canvas = h("canvas", { role: "img", "aria-label": "a line" });
  fill(frame, canvas);
  let [low, high, next] = [new Float64Array(0), new Float64Array(0), 0];
  let turns = 0; // updates for the whole line
  let slice = settings.slice; // of low and high

  async function update() {
    const columns = Math.max(16, Math.min(4096, canvas.clientWidth - LEFT));
    const budget = Math.round(SHARE_US / settings.rate);
    if (slice !== settings.slice) [slice, low, high, next] = [settings.slice, [], [], 0];
    const [head, bytes, at] = await getPicture("/api/line", { ...settings.request(), columns, first: next, budget });
    if (slice !== settings.slice) return head; // another one was chosen since the request
    if (head.columns !== low.length) {
      low = new Float64Array(head.columns).fill(NaN);
      high = new Float64Array(head.columns).fill(NaN);
    }
    const newLow = new Float64Array(bytes, at, head.read);
    const newHigh = new Float64Array(bytes, at + 8 * head.read, head.read);
    for (let i = 0; i < head.read; i++) {
      low[(head.first + i) % head.columns] = newLow[i];
      high[(head.first + i) % head.columns] = newHigh[i];
    }
    next = head.columns ? (head.first + head.read) % head.columns : 0;
    turns = head.read ? Math.ceil(head.columns / head.read) : 0;
    const [min, max] = draw(canvas, low, high, head.n);
    canvas.setAttribute("aria-label", `a line of ${count(head.n)} elements from ${value(min)} to ${value(max)}`);
    head.note = turns > 1 ? `each part is read again every ${duration((turns * 1e6) / settings.rate)}` : "";
    return head;
  }
  return { update };
}
