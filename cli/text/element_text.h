/* SPDX-License-Identifier: Apache-2.0 */
/* Prints one element of any format: a number, text, a struct, or an array within an element. The
 * library decodes it (shmview/value.h), so that every type and byte order is covered; this module
 * only chooses the form: that of Python, or JSON. */
#ifndef CLI_ELEMENT_TEXT_H
#define CLI_ELEMENT_TEXT_H

#include <stdio.h>

#include <shmview/value.h>
#include <shmview/view.h>

#define ELEMENT_COMPONENTS 64 /* the most that a format has */

/* A parsed format. Made once for a view, not for each element. */
struct element_type {
    struct shmview_part whole; /* the element; borrows from components */
    struct shmview_component components[ELEMENT_COMPONENTS];
};

/* Parses a format. *type must not be moved afterwards. Returns 0 or -SHMVIEW_ERR_FORMAT. */
int element_type_init(struct element_type *type, const char *format);

/* Print the element that the item size bytes at `bytes` contain. They need not be aligned. A struct
 * is (1, 2.5), in JSON {"a": 1, "b": 2.5}; an array is [1, 2]. */
void element_print(const struct element_type *type, const unsigned char *bytes, FILE *out);
void element_print_json(const struct element_type *type, const unsigned char *bytes, FILE *out);
/* Prints two hexadecimal digits for each byte, in the order of the addresses. */
void element_print_hex(const struct element_type *type, const unsigned char *bytes, FILE *out);

#endif
