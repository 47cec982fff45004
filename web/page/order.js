// SPDX-License-Identifier: Apache-2.0
// Rows in order. They come, change and go; very many are sorted and filtered in portions, so that
// the page can react between two of them.

const PORTION = 4000; // rows that are sorted, merged or filtered at once
const SLICE_MS = 12; // of portions between two pauses
const HEAD = 100; // rows that are in order while others come

const pause = () => new Promise((resolve) => { setTimeout(resolve); });

/** Writes the length of a number so that longer ones come later. */
const lengthOf = (n) => (n <= 9 ? String(n - 1) : "9".repeat(Math.floor((n - 1) / 9)) + ((n - 1) % 9));

const isDigit = (code) => code >= 48 && code <= 57;

/** Turns a text into one whose characters can be compared: without case and accents, and with
 * numbers in the order of their values. Comparing by Intl.Collator takes ten times as long, and finding
 * the numbers by an expression twice as long. */
export function sortKey(text) {
  let key = text.toLowerCase();
  if (/[^ -~]/.test(key)) key = key.normalize("NFKD").replace(/\p{M}/gu, "");
  let [found, done] = ["", 0];
  for (let i = 0; i < key.length; i++) {
    if (!isDigit(key.charCodeAt(i))) continue;
    let [first, end] = [i, i + 1];
    while (end < key.length && isDigit(key.charCodeAt(end))) end++;
    while (first < end - 1 && key.charCodeAt(first) === 48) first++;
    found += key.slice(done, i) + lengthOf(end - first) + key.slice(first, end);
    done = i = end;
  }
  return done ? found + key.slice(done) : key;
}

/** What a row is sorted by: what is not known comes last. */
function orderOf(value, isNumber, down) {
  const isKnown = value !== null && value !== undefined;
  if (isNumber) return isKnown ? value : down ? -Infinity : Infinity;
  return isKnown ? sortKey(String(value)) : down ? "" : "\uffff";
}

function comparison(isNumber, down) {
  const sign = down ? -1 : 1;
  if (isNumber) return (a, b) => (a.order - b.order) * sign || a.id - b.id;
  return (a, b) => (a.order < b.order ? -sign : a.order > b.order ? sign : a.id - b.id);
}

/** Merges two lists that are in order. */
function* merge(a, b, compare) {
  const list = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    list.push(compare(b[j], a[i]) < 0 ? b[j++] : a[i++]);
    if (list.length % PORTION === 0) yield;
  }
  return list.concat(a.slice(i), b.slice(j));
}

/** rows have an id, and `order`, which belongs to this class. */
export class Order {
  /** rows(): all of them. ready(): `shown` is in order. onBusy(isBusy): this takes longer than a slice. */
  constructor({ rows, ready, onBusy }) {
    this.rows = rows;
    this.ready = ready;
    this.onBusy = onBusy;
    this.shown = []; // sorted and filtered
    this.count = 0; // as many will be shown: `shown` has the first of them while others come
    this.sorted = [];
    this.coming = new Set(); // rows that are not in `sorted` yet
    this.going = new Set(); // rows that are there still
    this.isAll = false; // nothing is in `sorted`, and all rows are coming
    this.isReady = false; // and they have `order`
    this.filter = null; // of a row, true: it is shown
    this.isGrowing = false; // many rows are still to come
  }

  /** Sorts all rows by a member. */
  sortBy(key, isNumber, down) {
    this.key = key;
    this.isNumber = isNumber;
    this.down = down;
    this.compare = comparison(isNumber, down);
    this.replace();
  }

  filterBy(filter) {
    this.filter = filter;
    if (this.isGrowing) this.replace();
    else if (!this.isSorting) this.restart();
  }

  /** All rows may be other ones now. */
  replace() {
    this.begin(false);
    if (this.isGrowing) {
      [this.shown, this.count] = [[], 0];
      this.grow(this.rows());
      this.ready();
    } else {
      this.restart();
    }
  }

  begin(isReady) {
    [this.sorted, this.isAll, this.isReady] = [[], true, isReady];
    this.coming.clear();
    this.going.clear();
  }

  /** Takes rows in that are new or have changed. */
  put(rows) {
    if (this.isGrowing) {
      for (const row of rows) if (row.order !== null) this.remove(row);
      this.grow(rows);
      return;
    }
    this.isReady = false;
    for (const row of rows) {
      if (row.order !== null) this.going.add(row);
      this.coming.add(row);
    }
    this.run();
  }

  /** Forgets a row, which rows() has no longer. */
  remove(row) {
    if (this.isGrowing) {
      if (!this.filter || this.filter(row)) this.count--;
      this.shown = this.shown.filter((one) => one !== row);
      return;
    }
    this.coming.delete(row);
    this.going.add(row);
    this.run();
  }

  /** Finds the first rows of all, without sorting the others. */
  grow(rows) {
    const last = this.shown.length < HEAD ? null : this.shown[HEAD - 1];
    const first = [...this.shown];
    for (const row of rows) {
      row.order = orderOf(row[this.key], this.isNumber, this.down);
      if (this.filter && !this.filter(row)) continue;
      this.count++;
      if (!last || this.compare(row, last) < 0) first.push(row);
    }
    this.shown = first.sort(this.compare).slice(0, HEAD);
  }

  /** All rows have come. */
  settle() {
    if (this.isGrowing) this.begin(true);
    this.isGrowing = false;
    this.run();
  }

  restart() {
    this.steps = this.work();
    this.run();
  }

  /** Sorts what has come and merges it with what was there. */
  * sort() {
    const [coming, going, isReady] = [[...(this.isAll ? this.rows() : this.coming)], this.going, this.isAll && this.isReady];
    [this.coming, this.going, this.isAll] = [new Set(), new Set(), false];
    const runs = [going.size ? this.sorted.filter((row) => !going.has(row)) : this.sorted];
    for (let i = 0; i < coming.length; i += PORTION) {
      const run = coming.slice(i, i + PORTION);
      if (!isReady) for (const row of run) row.order = orderOf(row[this.key], this.isNumber, this.down);
      runs.push(run.sort(this.compare));
      yield;
      // A run is merged with one before it that is not much longer: each row moves few times.
      while (runs.length > 1 && 2 * runs.at(-1).length > runs.at(-2).length) {
        runs.push(yield* merge(...runs.splice(-2), this.compare));
      }
    }
    while (runs.length > 1) runs.push(yield* merge(...runs.splice(-2), this.compare));
    [this.sorted] = runs;
  }

  * work() {
    if (this.isAll || this.coming.size || this.going.size) {
      this.isSorting = true;
      yield* this.sort();
    }
    this.isSorting = false;
    const rows = this.sorted;
    let found = rows;
    if (this.filter) {
      found = [];
      for (let i = 0; i < rows.length; i += PORTION) {
        for (const row of rows.slice(i, i + PORTION)) if (this.filter(row)) found.push(row);
        yield;
      }
    }
    this.shown = found;
    this.count = found.length;
  }

  /** Works until nothing is left to do. What changes in the meantime is done as well. */
  async run() {
    if (this.runs) return;
    this.runs = true;
    let begun = performance.now();
    let isBusy = false;
    do {
      this.steps ||= this.work();
      while (!this.steps.next().done) {
        if (performance.now() - begun < SLICE_MS) continue;
        if (!isBusy) this.onBusy(true);
        isBusy = true;
        await pause();
        begun = performance.now();
      }
      this.steps = null;
      this.ready();
    } while (this.steps || this.isAll || this.coming.size || this.going.size);
    this.runs = false;
    if (isBusy) this.onBusy(false);
  }
}
