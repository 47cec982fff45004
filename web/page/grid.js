// SPDX-License-Identifier: Apache-2.0
// Elements as numbers, a window at a time. If changes are allowed, Enter or a double click edits one.

import { get, post } from "./api.js";
import { fill, h, say } from "./dom.js";
import { count } from "./format.js";

const ROWS = 30;
const COLUMNS = 10;

/** A number that steps through rows or columns. */
function pager(label, page, onchange) {
  const input = h("input", { type: "number", min: 0, value: 0, size: 8, onchange: () => onchange(Math.max(0, Math.floor(Number(input.value) || 0))) });
  const move = (by) => () => onchange(Math.max(0, Number(input.value) + by));
  return { input, element: h("span", { class: "bar" },
    h("button", { type: "button", "aria-label": `earlier ${label}s`, onclick: move(-page) }, "◀"),
    h("label", {}, `First ${label}`, input),
    h("button", { type: "button", "aria-label": `later ${label}s`, onclick: move(page) }, "▶")) };
}

export function gridPicture({ frame, settings, mayChange, again }) {
  const state = { row: 0, column: 0, editing: false };
  const problem = h("p", { class: "bad", role: "alert" });
  const table = h("div", { class: "grid", tabindex: "0", role: "region", "aria-label": "Elements" });
  const rows = pager("row", ROWS, (n) => { state.row = n; again(); });
  const columns = pager("column", COLUMNS, (n) => { state.column = n; again(); });
  fill(frame, h("div", { class: "bar" }, rows.element, columns.element,
    h("span", { class: "soft" }, mayChange ? "Enter or a double click on an element changes it." : "")), problem, table);

  function indexOf(head, i, j) {
    const [row, column] = [head.row + i, head.column + j];
    if (head.shape.length === 2) return [row, column];
    return head.shape.length === 1 ? [row * COLUMNS + column] : [];
  }

  function edit(cell, index) {
    const input = h("input", { value: cell.textContent, "aria-label": `element ${index.join(", ")}` });
    state.editing = true;
    function leave() {
      state.editing = false;
      again();
    }
    input.addEventListener("blur", leave);
    input.addEventListener("keydown", async (event) => {
      event.stopPropagation();
      if (event.key === "Escape") input.blur();
      if (event.key !== "Enter") return;
      try {
        await post("/api/set", { ...settings.request(), index, value: input.value.trim() });
        say(problem, "", "bad");
        input.blur();
      } catch (error) {
        say(problem, error.message, "bad");
      }
    });
    fill(cell, input);
    input.select();
  }

  function cellOf(head, i, j, text) {
    if (text === null) return h("td");
    if (!mayChange) return h("td", { class: "mono" }, text);
    const start = () => edit(cell, indexOf(head, i, j));
    const cell = h("td", { class: "mono", tabindex: "0", ondblclick: start, onkeydown: (event) => { if (event.key === "Enter") start(); } }, text);
    return cell;
  }

  function draw(head) {
    const width = head.cells[0]?.length || 0;
    const titles = Array.from({ length: width }, (_, j) => h("th", { scope: "col" }, count(head.column + j)));
    const lines = head.cells.map((line, i) => h("tr", {},
      h("th", { scope: "row" }, count(head.shape.length === 1 ? (head.row + i) * COLUMNS : head.row + i)),
      ...line.map((text, j) => cellOf(head, i, j, text))));
    const focused = [...table.querySelectorAll("td")].indexOf(document.activeElement);
    fill(table, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "index"), ...titles)), h("tbody", {}, ...lines)));
    if (focused >= 0) table.querySelectorAll("td")[focused]?.focus();
  }

  async function update() {
    const head = await get("/api/grid", { ...settings.request(), row: state.row, column: state.column, rows: ROWS, columns: COLUMNS, wrap: COLUMNS });
    if (!state.editing) draw(head);
    rows.input.value = head.row;
    columns.input.value = head.column;
    columns.element.hidden = head.columns <= COLUMNS;
    head.note = `rows ${count(head.row)} to ${count(head.row + head.cells.length - 1)} of ${count(head.rows)}`;
    return head;
  }
  return { update };
}
