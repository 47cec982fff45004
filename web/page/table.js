// SPDX-License-Identifier: Apache-2.0
// A table of very many rows: only those that are visible have elements. It sorts and filters.

import { fill, h } from "./dom.js";
import { Order } from "./order.js";

const MORE = 8; // rows above and below the visible ones
/** The height of a row in pixels. */
function rowHeight() {
  return 2 * parseFloat(getComputedStyle(document.documentElement).fontSize);
}

/** columns: {key, title, hint, kind: "text" or "number", show(row) gives a text or a node,
 * width in rem, class}. rows() gives all rows, which are objects with an id, and with `order`, which is
 * null at first. */
export class Table {
  constructor({ columns, label, sort, rows, onSort, onArrange, onDraw }) {
    this.columns = columns;
    this.sort = sort; // {key, down}
    this.onSort = onSort; // after the user has sorted
    this.onArrange = onArrange; // after rows were sorted and filtered
    this.onDraw = onDraw; // after other rows may be visible
    this.order = new Order({ rows, ready: () => this.arranged(), onBusy: (isBusy) => this.table.setAttribute("aria-busy", String(isBusy)) });
    this.elements = new Map(); // by id
    this.heads = new Map();
    this.body = h("tbody");
    this.above = h("tr", { class: "space", "aria-hidden": "true" }, h("td"));
    this.below = this.above.cloneNode(true);
    this.table = h("table", { "aria-label": label }, this.head(), this.body);
    this.element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, this.table);
    // They are kept, because asking an element for them after a change makes the browser lay it out.
    [this.scrollTop, this.clientHeight, this.height] = [0, 600, rowHeight()];
    this.element.addEventListener("scroll", () => {
      this.scrollTop = this.element.scrollTop;
      this.later();
    });
    this.observer = new ResizeObserver(() => {
      this.clientHeight = this.element.clientHeight;
      this.height = rowHeight();
      this.later();
    });
    this.observer.observe(this.element);
  }

  head() {
    const cells = this.columns.map((column) => {
      const button = h("button", { type: "button", title: column.hint, onclick: () => this.toggle(column) }, column.title);
      const cell = h("th", { scope: "col", class: this.classOf(column) }, button);
      if (column.width) cell.style.width = `${column.width}rem`;
      this.heads.set(column.key, cell);
      return cell;
    });
    return h("thead", {}, h("tr", {}, ...cells));
  }

  classOf(column) {
    return [column.kind === "number" ? "right" : "", column.class || ""].join(" ").trim() || null;
  }

  toggle(column) {
    const same = this.sort.key === column.key;
    this.sort = { key: column.key, down: same ? !this.sort.down : column.kind === "number" };
    this.arrange();
    this.onSort?.();
  }

  get shown() {
    return this.order.shown;
  }

  /** Sorts all rows again. */
  arrange() {
    const { key, down } = this.sort;
    for (const [name, cell] of this.heads) {
      if (name === key) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.order.sortBy(key, this.columns.find((column) => column.key === key).kind === "number", down);
  }

  /** Shows the rows for which filter(row) is true; all of them if it is null. */
  show(filter) {
    this.order.filterBy(filter);
  }

  arranged() {
    this.table.setAttribute("aria-rowcount", this.order.count + 1);
    this.onArrange?.();
    this.draw();
  }

  /** Forgets the elements of rows that have changed, so that they are made again. */
  changed(ids) {
    for (const id of ids) {
      this.elements.get(id)?.remove();
      this.elements.delete(id);
    }
    this.later();
  }

  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** The number of the first row that has elements. */
  first() {
    return Math.max(0, Math.floor(this.scrollTop / this.height) - MORE);
  }

  visible() {
    const first = this.first();
    const n = Math.ceil((this.clientHeight || 600) / this.height) + 2 * MORE;
    return this.shown.slice(first, first + n);
  }

  draw() {
    const { height } = this;
    const rows = this.visible();
    const first = rows.length ? this.first() : 0;
    const kept = new Map();
    const elements = rows.map((row, i) => {
      const element = this.elements.get(row.id) || this.make(row);
      element.setAttribute("aria-rowindex", first + i + 2);
      kept.set(row.id, element);
      return element;
    });
    this.elements = kept;
    this.above.firstChild.style.height = `${first * height}px`;
    this.below.firstChild.style.height = `${Math.max(0, this.order.count - first - rows.length) * height}px`;
    const focused = document.activeElement;
    fill(this.body, this.above, ...elements, this.below);
    if (focused && focused !== document.activeElement && this.body.contains(focused)) focused.focus();
    this.onDraw?.();
  }

  make(row) {
    const cells = this.columns.map((column) => {
      const value = column.show ? column.show(row) : row[column.key];
      const text = value === null || value === undefined ? "" : value;
      return h("td", { class: this.classOf(column), title: typeof text === "string" ? text : null }, text);
    });
    return h("tr", { class: row.changed ? "changed" : null }, ...cells);
  }

  end() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }
}
