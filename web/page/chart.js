// SPDX-License-Identifier: Apache-2.0
// Charts by uPlot, which the page loads when it first draws one.

import { ApiError, getBytes } from "./api.js";
import { fill, h } from "./dom.js";

let loading = null;
let attempts = 0;

/** Why uPlot has not come. */
async function failure(error) {
  try {
    await getBytes("/uplot.js");
    return new ApiError(0, `uPlot cannot be loaded: ${error.message}`);
  } catch (cause) {
    if (!(cause instanceof ApiError)) return new ApiError(0, `uPlot cannot be loaded: ${cause.message}`);
    if (cause.status !== 404) return cause;
    return new ApiError(404, "lines and histograms need uPlot, which this build of shmview-web lacks");
  }
}

function loadStyle() {
  return new Promise((resolve, reject) => {
    const link = h("link", { rel: "stylesheet", href: "/uplot.css", onload: resolve, onerror: () => {
      link.remove();
      reject(new Error("its style sheet does not come"));
    } });
    document.head.append(link);
  });
}

async function loadBoth() {
  if (attempts++) await getBytes("/uplot.js"); // while that fails, no module is asked for
  // A browser does not ask again for a module that has failed, so each attempt has another address.
  const module = await import(attempts > 1 ? `/uplot.js?${attempts}` : "/uplot.js");
  await loadStyle();
  return module.default;
}

/** Loads uPlot once. Fails with an ApiError, and may then be called again. */
async function load() {
  loading ??= loadBoth();
  try {
    return await loading;
  } catch (error) {
    loading = null;
    throw await failure(error);
  }
}

/** A colour of the style sheet. */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** An axis in the colours of the page. */
export function axis(more) {
  const line = { stroke: () => color("--line"), width: 1 };
  return { stroke: () => color("--soft"), grid: line, ticks: line, font: "11px system-ui, sans-serif", ...more };
}

/** A chart that fills an element, with the values at the cursor below it. */
export class Chart {
  constructor(frame) {
    this.place = h("div", { class: "chart" });
    this.legend = h("div", { class: "legend", "aria-hidden": "true" });
    fill(frame, this.place, this.legend);
    this.plot = null;
    this.kind = null;
    this.ended = false;
    this.observer = new ResizeObserver(() => this.plot?.setSize(this.size()));
    this.observer.observe(this.place);
    this.colors = matchMedia("(prefers-color-scheme: dark)");
    this.recolor = () => this.plot?.redraw(false);
    this.colors.addEventListener("change", this.recolor);
  }

  size() {
    return { width: this.place.clientWidth, height: this.place.clientHeight };
  }

  /** Draws data. If `kind` is another one than before, options(uPlot) gives the options of a new plot. */
  async draw(kind, options, data, label) {
    const uPlot = await load();
    if (this.ended) return;
    if (this.plot && kind === this.kind) {
      this.plot.setData(data);
    } else {
      this.plot?.destroy();
      this.plot = null;
      const usual = { ...this.size(), legend: { mount: (_, element) => fill(this.legend, element) }, padding: [8, 28, 0, 0] };
      this.plot = new uPlot({ ...usual, ...options(uPlot) }, data, this.place);
      this.kind = kind;
      this.plot.ctx.canvas.setAttribute("role", "img");
    }
    this.plot.ctx.canvas.setAttribute("aria-label", label);
  }

  end() {
    this.ended = true;
    this.plot?.destroy();
    this.plot = null;
    this.observer.disconnect();
    this.colors.removeEventListener("change", this.recolor);
  }
}
