/* SPDX-License-Identifier: Apache-2.0 */
/* One element of any format as text: numbers, text, structs, arrays within an element. */
#ifndef CLI_ELEMENT_TEXT_H
#define CLI_ELEMENT_TEXT_H

#include <stdio.h>

#include <shmview/value.h>
#include <shmview/view.h>

#define ELEMENT_COMPONENTS 64

/* What a format says; made once for a view. */
struct element_type {
    struct shmview_part whole;
    struct shmview_component components[ELEMENT_COMPONENTS];
};

/* Reads format, a canonical one. Returns 0 or -SHMVIEW_ERR_FORMAT. */
int element_type_init(struct element_type *type, const char *format);

/* Print the element at bytes, itemsize of them, in the other byte order too. */
void element_print(const struct element_type *type, const unsigned char *bytes, FILE *out);
void element_print_json(const struct element_type *type, const unsigned char *bytes, FILE *out);
/* Two digits a byte. */
void element_print_hex(const struct element_type *type, const unsigned char *bytes, FILE *out);

#endif
