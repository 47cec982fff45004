/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as text: of values, or put together from pieces. */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Pieces: a failure is told at the end. */
struct json_text {
    char *bytes;
    size_t n, room;
    bool failed;
};

void json_text_begin(struct json_text *text);
void json_text_add(struct json_text *text, const char *bytes, size_t n);
/* The whole, new, with a NUL; *ret_bytes is its length with that, unless ret_bytes is NULL.
 * NULL if memory was short. */
char *json_text_end(struct json_text *text, size_t *ret_bytes);

/* The value as text without spaces, as json_text_end() returns it. NULL for a NULL value, or if
 * memory is short: unlike json_dumps(), which may leave out the key for which there was none. */
char *json_text(const json_t *value, size_t *ret_bytes);

#endif
