// SPDX-License-Identifier: Apache-2.0
// Numbers for people, with their units.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** "0 B", "512 B", "4 KiB", "1.5 MiB". */
export function bytes(n) {
  if (n === null || n === undefined) return "unknown";
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toFixed(value < 10 && unit ? 1 : 0))} ${UNITS[unit]}`;
}

/** "3 ms", "12 s", "5 min", "3 h", "12 d", from microseconds. */
export function duration(us) {
  if (us === null || us === undefined) return "unknown";
  for (const [size, unit] of [[86400e6, "d"], [3600e6, "h"], [60e6, "min"], [1e6, "s"], [1e3, "ms"]]) {
    if (us >= size) return `${(us / size).toFixed(us < 10 * size ? 1 : 0)} ${unit}`;
  }
  return `${Math.max(0, Math.round(us))} µs`;
}

/** "12:00:30", or with the date if that is not today. From microseconds since 1970. */
export function time(us) {
  const date = new Date(us / 1000);
  const clock = date.toLocaleTimeString([], { hour12: false });
  return date.toDateString() === new Date().toDateString() ? clock
    : `${date.toLocaleDateString()} ${clock}`;
}

/** "1,234,567". */
export function count(n) {
  return n === null || n === undefined ? "unknown" : n.toLocaleString("en");
}

/** A value of an array, short enough for a label. */
export function value(x) {
  if (typeof x === "string" || !Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (x === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return x.toExponential(3);
  return String(Number(x.toPrecision(6)));
}

export const LIFETIMES = ["", "attached", "manual", "creator"];
export const BACKINGS = ["", "file", "sealed"];
export const ACCESSES = ["", "peek", "read", "write"];
export const HOLDS = ["", "exclusive", "shared"];
