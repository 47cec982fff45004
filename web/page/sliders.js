// SPDX-License-Identifier: Apache-2.0
// Sliders for the dimensions of which the slice takes one index, as in "4,:,:".

import { fill, h } from "./dom.js";
import { items } from "./slice.js";

/** The dimensions with one index: a list of [dimension, index]. None if the slice does not fit. */
function indexes(slice, shape) {
  const list = items(slice);
  if (list.length > shape.length) return [];
  return list.map((item, d) => [d, /^\d+$/.test(item) ? Number(item) : -1])
    .filter(([d, index]) => index >= 0 && index < shape[d]);
}

/** Makes the sliders. They change settings.slice and call moved(). arrange() follows the slice after
 * another change; a slider that stays keeps the focus. */
export function indexSliders(settings, moved) {
  const element = h("div", { class: "bar" });
  let made = "";
  let inputs = [];

  function slider(d) {
    const shown = h("span", { "aria-hidden": "true" }); // a screen reader reads the value of the input
    const input = h("input", { type: "range", min: 0, max: settings.shape[d] - 1, step: 1, oninput: () => {
      const list = items(settings.slice);
      list[d] = input.value;
      settings.slice = list.join(",");
      shown.textContent = input.value;
      moved();
    } });
    inputs.push({ input, shown });
    return h("label", {}, `Index of dimension ${d}`, input, shown);
  }

  function arrange() {
    const found = indexes(settings.slice, settings.shape);
    const now = found.map(([d]) => d).join();
    if (now !== made) {
      made = now;
      inputs = [];
      fill(element, ...found.map(([d]) => slider(d)));
    }
    found.forEach(([, index], i) => {
      inputs[i].input.value = index;
      inputs[i].shown.textContent = String(index);
    });
  }
  arrange();
  return { element, arrange };
}
