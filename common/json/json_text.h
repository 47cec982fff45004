/* SPDX-License-Identifier: Apache-2.0 */
/* Builds JSON text from pieces, or from a value of jansson. All messages
 * and the layouts of the registry are written by this module.
 *
 *     struct json_text t;
 *     json_text_begin(&t);
 *     json_text_raw(&t, "{\"name\":");
 *     json_text_string(&t, name);
 *     json_text_raw(&t, "}");
 *     char *text = json_text_end(&t, NULL);      NULL if memory was short */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* A text that grows. If memory is short, pieces are ignored from then on, and json_text_end()
 * reports it; so callers check only once. */
struct json_text {
    char *bytes; /* owned until json_text_end() */
    size_t n, room;
    bool failed;
};

/* Begins an empty text. The caller owes json_text_end(), which also frees a text that failed. */
void json_text_begin(struct json_text *text);
/* Adds n bytes that are JSON already. */
void json_text_add(struct json_text *text, const char *bytes, size_t n);
/* Like json_text_add(), for a string that ends with a NUL. */
void json_text_raw(struct json_text *text, const char *s);
/* Adds s in quotes, with escapes. A byte outside of a UTF-8 character becomes a question mark,
 * because JSON cannot express it. */
void json_text_string(struct json_text *text, const char *s);
/* Ends the text with a NUL. Returns it, new; or NULL if memory was short. *ret_bytes is its length
 * with the NUL, unless ret_bytes is NULL. */
char *json_text_end(struct json_text *text, size_t *ret_bytes);

/* Returns the value as text without spaces, as json_text_end() does. Returns NULL for a NULL value,
 * or if memory is short. json_dumps() is not used, because it may then omit a key without an
 * error. */
char *json_text(const json_t *value, size_t *ret_bytes);

/* Returns the length of the UTF-8 character at p, or 0 if there is none that ends before `end`.
 * Refuses surrogates, overlong forms and characters beyond U+10FFFF. */
size_t utf8_length(const unsigned char *p, const unsigned char *end);

#endif
