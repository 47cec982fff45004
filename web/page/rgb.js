// SPDX-License-Identifier: Apache-2.0
// A view of uint8 with red, green and blue in its last dimension, as an image of these colours.

import { getPicture } from "./binary.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";

const MOST = 1024; // pixels of a side

/** Whether a view can be shown so. */
export function hasColors({ shape, dtype }) {
  return dtype === "uint8" && shape.length >= 3 && shape.at(-1) === 3;
}

export function rgbPicture({ frame, settings }) {
  const canvas = h("canvas", { class: "pixels", role: "img", "aria-label": "an image in colours" });
  fill(frame, canvas);
  const context = canvas.getContext("2d");

  async function update() {
    const side = Math.min(MOST, Math.max(64, Math.round(canvas.clientWidth * (window.devicePixelRatio || 1))));
    const [head, bytes, at] = await getPicture("/api/image", { ...settings.request(), rows: side, columns: side, colors: 1 });
    const pixels = new Uint8Array(bytes, at, 3 * head.rows * head.columns);
    if (pixels.length) {
      if (canvas.width !== head.columns || canvas.height !== head.rows) {
        canvas.width = head.columns;
        canvas.height = head.rows;
      }
      const image = context.createImageData(head.columns, head.rows);
      for (let from = 0, to = 0; from < pixels.length; from += 3, to += 4) {
        image.data[to] = pixels[from];
        image.data[to + 1] = pixels[from + 1];
        image.data[to + 2] = pixels[from + 2];
        image.data[to + 3] = 255;
      }
      context.putImageData(image, 0, 0);
    }
    canvas.setAttribute("aria-label", `an image in colours of ${count(head.shape[0])} rows and ${count(head.shape[1])} columns`);
    head.note = head.rows < head.shape[0] || head.columns < head.shape[1] ? `${head.rows} × ${head.columns} pixels are means` : "";
    return head;
  }
  return { update };
}
