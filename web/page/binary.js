// SPDX-License-Identifier: Apache-2.0
// Answers that are bytes: a JSON text and then numbers.

import { getBytes } from "./api.js";

/** Gets an answer. Returns its text as an object, and the bytes after it. */
export async function getPicture(path, parameters) {
  const all = await getBytes(path, parameters);
  const n = new DataView(all).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(all, 8, n)));
  return [head, all, 8 + n];
}
