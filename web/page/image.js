// SPDX-License-Identifier: Apache-2.0
// A view of two dimensions as an image. The server gives a byte for each pixel; the colours are
// those of a scale that is even for the eye and readable without seeing colours.

import { getPicture } from "./binary.js";
import { fill, h, say } from "./dom.js";
import { count, value } from "./format.js";

const RANGE_EVERY = 8; // updates: finding the range takes the server as long as the rest
const MOST = 1024; // pixels of a side
const COLORS = ["viridis", "grey"];
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // viridis

function viridis(part) {
  const at = part * (STOPS.length - 1);
  const i = Math.min(STOPS.length - 2, Math.floor(at));
  return STOPS[i].map((from, k) => Math.round(from + (STOPS[i + 1][k] - from) * (at - i)));
}

/** 256 colours as words of RGBA. Byte 0, no number, is transparent. */
function palette(name) {
  const colors = new Uint32Array(256);
  const bytes = new Uint8Array(colors.buffer);
  for (let i = 1; i < 256; i++) {
    const part = (i - 1) / 254;
    const color = name === "grey" ? Array(3).fill(Math.round(part * 255)) : viridis(part);
    bytes.set([...color, 255], 4 * i);
  }
  return colors;
}

/** Reads "low,high" as {low, high}, or null. */
function readScale(text) {
  const [low, high] = text.split(",").map(Number);
  return low <= high ? { low, high } : null;
}

/** A scale that is no single value, or null: the server needs two ends. */
function widened(scale) {
  if (!scale || scale.low < scale.high) return scale;
  const wide = { low: scale.low - 0.5, high: scale.high + 0.5 };
  return wide.low < wide.high ? wide : null;
}

export function imagePicture({ frame, settings, again }) {
  const canvas = h("canvas", { class: "pixels", role: "img", "aria-label": "an image" });
  const scale = h("p", { class: "soft" });
  let kept = readScale(settings.scale); // the scale of the last image whose range is known
  const hold = h("input", { type: "checkbox", checked: kept !== null, onchange: () => {
    settings.scale = hold.checked && kept ? `${kept.low},${kept.high}` : "";
    settings.keep();
  } });
  let colors = palette(settings.colors);
  const select = h("select", { onchange: () => {
    settings.colors = select.value;
    settings.keep();
    colors = palette(select.value);
    again();
  } }, ...COLORS.map((name) => h("option", { value: name, selected: name === settings.colors }, name)));
  fill(frame, h("div", { class: "bar" }, h("label", {}, "Colours", select), h("label", {}, hold, "keep the scale"), scale), canvas);
  const context = canvas.getContext("2d");
  let updates = 0;

  async function update() {
    const wanted = !hold.checked && updates++ % RANGE_EVERY === 0;
    const known = widened(kept);
    const range = known ? { ...known, range: wanted ? 1 : 0 } : {};
    const side = Math.min(MOST, Math.max(64, Math.round(canvas.clientWidth * (window.devicePixelRatio || 1))));
    const [head, bytes, at] = await getPicture("/api/image", { ...settings.request(), rows: side, columns: side, ...range });
    const pixels = new Uint8Array(bytes, at, head.rows * head.columns);
    if (pixels.length) {
      if (canvas.width !== head.columns || canvas.height !== head.rows) {
        canvas.width = head.columns;
        canvas.height = head.rows;
      }
      const image = context.createImageData(head.columns, head.rows);
      const words = new Uint32Array(image.data.buffer);
      for (let i = 0; i < pixels.length; i++) words[i] = colors[pixels[i]];
      context.putImageData(image, 0, 0);
    }
    // The next image has the scale of this one, so that the server reads each element once.
    if (typeof head.min === "number" && !(hold.checked && kept)) kept = { low: head.min, high: head.max };
    const { low, high } = kept ?? head;
    say(scale, `${value(low)} to ${value(high)}`, "soft");
    canvas.setAttribute("aria-label", `an image of ${count(head.shape[0])} rows and ${count(head.shape[1])} columns, values ${value(low)} to ${value(high)}`);
    head.note = head.rows < head.shape[0] || head.columns < head.shape[1] ? `${head.rows} × ${head.columns} pixels are means` : "";
    return head;
  }
  return { update };
}
