/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text, and JSON and HTML written to it.
 *
 * Answers are written directly and not as a tree of objects first, because a list of 100,000
 * segments has a million values. If memory runs out, the text remembers that and ignores the rest,
 * so that only the end needs a check. */
#ifndef WEB_TEXT_H
#define WEB_TEXT_H

#include "web/base/base.h"

/* A struct of zeroes is empty. */
struct text {
    char *bytes; /* owned; not terminated */
    size_t n, room;
    bool failed; /* memory was short; bytes are not to be used */
};

void text_free(struct text *t);
#define CLEANUP_TEXT CLEANUP(text_free)

void text_add(struct text *t, const void *bytes, size_t n);
void text_put(struct text *t, const char *string);
/* Makes room for exactly n more bytes, which the caller writes at bytes + n itself. Returns whether
 * there was memory. */
bool text_fit(struct text *t, size_t n);
__attribute__((format(printf, 2, 3))) void text_print(struct text *t, const char *format, ...);
/* Writes a decimal number, several times as fast as text_print(). */
void text_int(struct text *t, int64_t number);

/* Write one value as JSON. string may hold any bytes: those that are no UTF-8 become U+FFFD. The
 * characters <, > and & are escaped too, so that the text does no harm if a browser takes it for
 * HTML. NULL is null. */
void text_json(struct text *t, const char *string);
void text_json_n(struct text *t, const char *bytes, size_t n);
/* Writes a number; NaN and infinities, which JSON does not have, become strings. */
void text_json_double(struct text *t, double x);
/* Writes a number that is -1 if it is not known: null then. */
void text_json_known(struct text *t, int64_t number);

/* Writes string with &, <, > and quotes escaped for HTML. */
void text_html(struct text *t, const char *string);

#endif
