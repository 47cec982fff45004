// SPDX-License-Identifier: Apache-2.0
// Slices as in Python: "4,:,2:10".

/** The items of a slice, without spaces. */
export function items(slice) {
  return slice.split(",").map((item) => item.trim());
}

/** Where the elements of a line lie in its dimension, by the slice and the shape of the view: {first, step}, and
 * narrow(from, to), which gives the slice of those from place `from` to `to`, without that. null if the line goes
 * backwards. */
export function lineOf(slice, shape) {
  const list = slice.trim() ? items(slice) : [];
  let d = list.findIndex((item) => item.includes(":"));
  if (d < 0) d = list.push(":") - 1;
  const [start, , step] = list[d].split(":").map((text) => (text.trim() ? Number(text) : null));
  const [begin, by] = [start ?? 0, step ?? 1];
  const first = begin < 0 ? Math.max(0, begin + shape[d]) : begin;
  if (!(first >= 0 && by > 0)) return null;
  const put = (item) => list.map((one, i) => (i === d ? item : one)).join(",");
  return {
    first,
    step: by,
    narrow: (from, to) => put(`${from}:${to}${by === 1 ? "" : `:${by}`}`),
    whole: put(":"),
  };
}
