/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text as a value, for messages from the other end of a socket.
 *
 * jansson's reader does not look whether the buffer of a word could grow. Where memory runs out, it
 * loses bytes of the word, and writes beyond the end of its copy. This one reports the failure. */
#ifndef COMMON_JSON_READ_H
#define COMMON_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/json/fields.h"

/* Reads n bytes of text: one value of RFC 8259, in UTF-8, without a character of code 0, nested
 * LIMIT_JSON_DEPTH deep at most. is_strict refuses an object that has the same key twice, and more
 * than LIMIT_JSON_VALUES values; otherwise the last value of a key counts. A number with a fraction
 * or an exponent becomes a real. Returns a new value; or NULL with *fault, whose no_memory tells
 * bad text from lack of memory. */
json_t *json_read(const char *text, size_t n, bool is_strict, struct wire_fault *fault);

#endif
