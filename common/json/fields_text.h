/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a struct straight from its table, for messages that are sent often: to make values
 * of its members first, and free them, takes longer than all else that is done for them. */
#ifndef COMMON_FIELDS_TEXT_H
#define COMMON_FIELDS_TEXT_H

#include "common/json/fields.h"
#include "common/json/json_text.h"

/* Adds what json_text() makes of fields_write(). Strings are UTF-8. */
void fields_text(const struct field *fields, const void *from, struct json_text *text);

/* The same for the n structs at array. */
void fields_text_array(const struct field *of, size_t of_bytes, const void *array, size_t n,
                       struct json_text *text);

/* The members of an object, without its braces. */
void fields_text_members(const struct field *fields, const void *from, struct json_text *text);

#endif
