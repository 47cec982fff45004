// SPDX-License-Identifier: Apache-2.0
// Makes elements. Text only ever becomes text, never markup: names, labels and commands come from
// other programs.

const isThere = (child) => child !== null && child !== undefined;

/** Makes an element. Properties that begin with "on" are listeners, other ones attributes; those
 * that are null or false are left out. Children are nodes or texts. */
export function h(tag, properties = {}, ...children) {
  const svg = h.svg.has(tag) || (tag === "a" && children[0] instanceof SVGElement);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter(isThere));
  return element;
}
h.svg = new Set(["svg", "rect", "line", "g", "path", "text"]);

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter(isThere));
  return element;
}

/** Sets the text of an element, and only if it differs, so that screen readers read no text twice. */
export function say(element, text, kind = "") {
  if (element.textContent !== text) element.textContent = text;
  if (element.className !== kind) element.className = kind;
}

/** A list of names and figures. Facts are [name, value or node, kind]. */
export function facts(list) {
  return h("dl", { class: "facts" }, ...list.map(([name, value, kind]) =>
    h("div", {}, h("dt", {}, name), h("dd", { class: kind || null }, value ?? "unknown"))));
}
