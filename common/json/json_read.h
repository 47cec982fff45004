/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON text into values of jansson: messages from the other end of a socket, and layouts in
 * the registry.
 *
 * It replaces jansson's reader for two reasons. That one does not check whether the buffer of a
 * string could grow: if memory runs out, it loses bytes and writes beyond the end of its copy. And
 * it does not limit the number of values: 1 MiB of empty objects took the daemon's loop 80 ms.
 *
 * The values are jansson's, because the tables (fields.h) read those, and the configuration is read
 * by jansson itself. */
#ifndef COMMON_JSON_READ_H
#define COMMON_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/json/fields.h"

/* Reads n bytes of text: one value of RFC 8259, in UTF-8, without a character of code 0, nested
 * LIMIT_JSON_DEPTH deep at most. is_strict refuses an object that has the same key twice, and
 * values that weigh more than LIMIT_JSON_WEIGHT; otherwise the last value of a key counts. A number
 * with a fraction or an exponent becomes a real.
 *
 * Returns a new value, or NULL with *fault. fault->no_memory distinguishes lack of memory from bad
 * text; fault->reason of bad text begins with the byte at which reading stopped. Any thread. */
json_t *json_read(const char *text, size_t n, bool is_strict, struct wire_fault *fault);

#endif
