/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text, put together from pieces, or of a value. */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* A failure to add a piece is reported at the end. */
struct json_text {
    char *bytes;
    size_t n, room;
    bool failed;
};

void json_text_begin(struct json_text *text);
void json_text_add(struct json_text *text, const char *bytes, size_t n);
/* Adds a string that is JSON already. */
void json_text_raw(struct json_text *text, const char *s);
/* Adds s in quotes. A byte that is no part of a UTF-8 character becomes a question mark, because
 * JSON cannot express it. */
void json_text_string(struct json_text *text, const char *s);
/* The whole, new, with a NUL; *ret_bytes is its length with that, unless ret_bytes is NULL.
 * NULL if memory was short. */
char *json_text_end(struct json_text *text, size_t *ret_bytes);

/* The value as text without spaces, as json_text_end() returns it. NULL for a NULL value, or if
 * memory is short: unlike json_dumps(), which may leave out the key for which there was none. */
char *json_text(const json_t *value, size_t *ret_bytes);

/* The length of the UTF-8 character at p, or 0 if it is none. */
size_t utf8_length(const unsigned char *p, const unsigned char *end);

#endif
