/* SPDX-License-Identifier: Apache-2.0 */
/* Writes structs as JSON text, by their tables. A jansson value of each member would take longer
 * than the rest of a message. */
#ifndef COMMON_FIELDS_TEXT_H
#define COMMON_FIELDS_TEXT_H

#include "common/json/fields.h"
#include "common/json/json_text.h"

/* Adds an object without spaces. Leaves out optional members that are absent. */
void fields_text(const struct field *fields, const void *from, struct json_text *text);

/* Adds an array of the n structs at array. */
void fields_text_array(const struct field *of, size_t of_bytes, const void *array, size_t n,
                       struct json_text *text);

/* Adds the members of an object, without its braces. */
void fields_text_members(const struct field *fields, const void *from, struct json_text *text);

/* Returns a new text: head, the object and tail, with a NUL that *ret_bytes counts unless it is
 * NULL. Returns NULL if memory is short. */
char *fields_message(const char *head, const struct field *fields, const void *from,
                     const char *tail, size_t *ret_bytes);

#endif
