/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

/* The value as text without spaces, new; *ret_bytes is its length with its NUL, unless
 * ret_bytes is NULL. NULL for a NULL value, or if memory is short: unlike json_dumps(), which
 * may leave out the key for which there was none. */
char *json_text(const json_t *value, size_t *ret_bytes);

#endif
