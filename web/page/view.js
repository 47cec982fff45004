// SPDX-License-Identifier: Apache-2.0
// The page of one view: as a line, an image, numbers, or a histogram. The address has all settings.

import { ApiError, get, url } from "./api.js";
import { fill, h, say } from "./dom.js";
import { bytes, count } from "./format.js";
import { gridPicture } from "./grid.js";
import { histogramPicture } from "./histogram.js";
import { imagePicture } from "./image.js";
import { linePicture } from "./line.js";
import { hasColors, rgbPicture } from "./rgb.js";
import { indexSliders } from "./sliders.js";
import { isStream } from "./streams.js";

const RATES = [1, 2, 5, 10, 20, 30];
const PICTURES = { line: linePicture, image: imagePicture, rgb: rgbPicture, numbers: gridPicture, histogram: histogramPicture };
const SLOWEST_MS = { histogram: 1000, numbers: 200 }; // between two updates, whatever the rate
const STATES = {
  clean: ["read in order", "good"],
  unchecked: ["without a lock: values may be of different moments", "soft"],
  torn: ["a writer came in between: values may be of different moments", "warn"],
  writing: ["a writer is inside: values may be of different moments", "warn"],
  "half written": ["half written: the last owner died inside", "bad"],
};

/** The slice that leaves as many dimensions as a picture has: index 0 of the first ones. */
function defaultSlice(shape, kind) {
  const kept = { line: 1, rgb: 3, histogram: shape.length }[kind] ?? 2;
  const dropped = Math.max(0, shape.length - kept);
  return dropped ? [...Array(dropped).fill("0"), ...Array(shape.length - dropped).fill(":")].join(",") : "";
}

/** The settings of the page, which are the parameters of its address. */
class Settings {
  constructor(parameters, about) {
    const { shape } = about;
    this.shape = shape;
    this.kinds = Object.keys(PICTURES).filter((kind) => kind !== "rgb" || hasColors(about));
    const usual = this.kinds.includes("rgb") ? "rgb" : shape.length >= 2 ? "image" : "line";
    this.kind = this.kinds.includes(parameters.kind) ? parameters.kind : usual;
    this.rate = RATES.includes(Number(parameters.rate)) ? Number(parameters.rate) : 5;
    this.slice = parameters.slice ?? defaultSlice(shape, this.kind);
    this.lock = parameters.lock === "1";
    this.paused = parameters.paused === "1";
    this.colors = parameters.colors ?? ""; // of an image
    this.scale = parameters.scale ?? ""; // that it keeps: "low,high"
    this.fixed = { segment: parameters.segment, layout: parameters.layout, view: parameters.view, as: parameters.as, field: parameters.field };
  }

  /** What each request about the view has. */
  request() {
    return { ...this.fixed, slice: this.slice, lock: this.lock ? "1" : null };
  }

  /** Writes the settings to the address, without a new entry in the history. */
  keep() {
    const all = { ...this.fixed, kind: this.kind, rate: this.rate, slice: this.slice, lock: this.lock ? "1" : "", paused: this.paused ? "1" : "", colors: this.colors, scale: this.scale };
    const kept = Object.entries(all).filter(([, value]) => value !== undefined && value !== "");
    history.replaceState(null, "", `#/view?${new URLSearchParams(kept)}`);
  }
}

/** A label with a list to choose from. */
function choice(label, values, value, onchange) {
  const select = h("select", { onchange: () => onchange(select.value) },
    ...values.map(([key, text]) => h("option", { value: key, selected: String(key) === String(value) }, text)));
  return h("label", {}, label, select);
}

/** Updates a picture as often as the rate says, while the page is visible and not paused. */
class Player {
  constructor(settings, show, status) {
    this.settings = settings;
    this.show = show;
    this.status = status;
    this.look = () => this.turn();
    document.addEventListener("visibilitychange", this.look);
  }

  use(picture) {
    this.picture?.end?.();
    this.picture = picture;
    this.turn(true);
  }

  async turn(once = false) {
    clearTimeout(this.timer);
    if (this.ended || this.running || document.hidden || (this.settings.paused && !once)) {
      this.wanted = this.wanted || (once && this.running);
      return;
    }
    this.running = true;
    const begun = performance.now();
    let pause = Math.max(1000 / this.settings.rate, SLOWEST_MS[this.settings.kind] || 0);
    const picture = this.picture;
    try {
      const head = await picture.update();
      if (picture === this.picture) this.show(head);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      say(this.status, error.message, "bad");
      pause = 1000;
    } finally {
      this.running = false;
    }
    const again = this.wanted;
    this.wanted = false;
    if (again) this.turn(true);
    else if (!this.ended && !this.settings.paused) this.timer = setTimeout(this.look, Math.max(0, pause - (performance.now() - begun)));
  }

  end() {
    this.ended = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.look);
    this.picture?.end?.();
  }
}

function tellState(status, head) {
  const [text, kind] = STATES[head.state];
  const who = head.pid && head.state !== "clean" ? ` (${head.command || "process"} ${head.pid})` : "";
  const stale = head.stale ? "; stale: another phase is current" : "";
  say(status, text + who + stale, head.stale && kind === "good" ? "warn" : kind);
}

/** Saves the canvas, if the picture has one. */
function savePicture() {
  const canvas = document.querySelector(".picture canvas");
  canvas?.toBlob((blob) => {
    const address = URL.createObjectURL(blob);
    h("a", { href: address, download: "shmview.png" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}

/** Downloads the elements. The server is asked first, because the page cannot read the error of a
 * download. A link with `download` keeps the page open if the download fails all the same. */
async function saveElements(settings, button, failure) {
  button.disabled = true;
  say(failure, "");
  try {
    await get("/api/npy", { ...settings.request(), check: 1 });
    h("a", { href: url("/api/npy", settings.request()), download: "" }).click();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    say(failure, error.message, "bad");
  } finally {
    button.disabled = false;
  }
}

function controls(settings, { change, move, step, mayLock }) {
  const slice = h("input", { value: settings.slice, size: 12, "aria-describedby": "slice-help", onchange: () => {
    settings.slice = slice.value.trim();
    sliders.arrange();
    change();
  } });
  settings.choose = (chosen) => {
    settings.slice = slice.value = chosen;
    sliders.arrange();
    move();
  };
  const sliders = indexSliders(settings, () => {
    slice.value = settings.slice;
    move();
  });
  const pause = h("button", { type: "button", "aria-pressed": String(settings.paused), onclick: () => {
    settings.paused = !settings.paused;
    pause.setAttribute("aria-pressed", String(settings.paused));
    change();
  } }, "Pause");
  const failure = h("p", { role: "alert" });
  const save = h("button", { type: "button", onclick: () => saveElements(settings, save, failure) }, "Save as npy");
  return [h("div", { class: "bar" },
    choice("Show as", settings.kinds.map((key) => [key, key]), settings.kind, (value) => {
      if (settings.slice === defaultSlice(settings.shape, settings.kind)) settings.slice = defaultSlice(settings.shape, value);
      slice.value = settings.slice;
      sliders.arrange();
      settings.kind = value;
      change();
    }),
    h("label", {}, "Slice", slice), h("span", { id: "slice-help", class: "hidden" }, "as in Python: 0,:,3:10"),
    choice("Updates", RATES.map((rate) => [rate, `${rate} per second`]), settings.rate, (value) => { settings.rate = Number(value); change(); }),
    mayLock ? choice("Read", [["", "without the lock"], ["1", "under the shared lock"]], settings.lock ? "1" : "", (value) => { settings.lock = value === "1"; change(); }) : null,
    pause, h("button", { type: "button", onclick: step }, "Step"),
    save, h("button", { type: "button", onclick: savePicture }, "Save as PNG")), sliders.element, failure];
}

/** Finds the shape and the type of the view in the description of its segment. */
function findView(segment, parameters) {
  if (!parameters.layout) return { shape: [segment.size], dtype: "" };
  const layout = segment.layouts.find((one) => one.name === parameters.layout);
  const found = layout?.views.find((one) => one.name === parameters.view);
  if (!found) throw new ApiError(404, `there is no view ${parameters.layout}/${parameters.view}`);
  return found;
}

export function view({ main, trail, parameters }) {
  const title = parameters.layout ? `${parameters.layout}/${parameters.view}` : `all bytes as ${parameters.as || "uint8"}`;
  const segmentAddress = `#/segment?${new URLSearchParams({ name: parameters.segment || "" })}`;
  document.title = `${title} – ${parameters.segment} – shmview`;
  fill(trail, h("a", { href: "#/" }, "All segments"), " / ", h("a", { href: segmentAddress }, parameters.segment || ""), " / ", title);
  const status = h("p", { role: "status" });
  const about = h("p", { class: "soft" });
  const frame = h("div", { class: "picture" });
  let player = null;
  let left = false;

  function show(head) {
    tellState(status, head);
    const elements = head.shape.reduce((a, b) => a * b, 1);
    say(about, `${head.format}, ${head.shape.map(count).join(" × ") || "1"} elements, ${bytes(elements * head.itemsize)}${head.note ? `; ${head.note}` : ""}`, "soft");
  }

  async function start() {
    const [segment, daemon] = await Promise.all([get("/api/segment", { name: parameters.segment }), get("/api/daemon")]);
    const ofStream = await isStream(segment);
    if (left) return;
    const settings = new Settings(parameters, findView(segment, parameters));
    player = new Player(settings, show, status);
    function change() {
      settings.keep();
      player.use(PICTURES[settings.kind]({ frame, settings, choose: (slice) => settings.choose(slice), mayChange: daemon.allow_changes && !ofStream, again: () => player.turn(true) }));
      if (!settings.paused) player.turn();
    }
    /** Another part in the same picture, which keeps its colours and its scale. */
    function move() {
      settings.keep();
      player.turn(true);
    }
    fill(main, h("h1", {}, title), ...controls(settings, { change, move, step: () => player.turn(true), mayLock: !ofStream }), status, about, frame);
    change();
  }
  start().catch((error) => {
    fill(main, h("p", { class: "panel error", role: "alert" }, error.message));
    if (!(error instanceof ApiError)) throw error;
  });
  return () => {
    left = true;
    player?.end();
  };
}
