/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a view as text: as numpy prints an array, or as JSON. */
#ifndef CLI_ARRAY_TEXT_H
#define CLI_ARRAY_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include <shmview/view.h>

/* From how many elements on the middle is left out, and how many stay at each end of a dimension:
 * numpy's numbers. */
#define ARRAY_THRESHOLD 1000
#define ARRAY_EDGE      3
#define ARRAY_PRECISION 8 /* digits after the point, at most */

struct array_style {
    size_t width;    /* columns of a line */
    bool all;        /* leave nothing out */
    bool is_hex;     /* the bytes of each element, the first one first */
    unsigned margin; /* columns before each line but the first */
};

/* Prints the elements, and no newline at the end. Returns 0, -SHMVIEW_ERR_NO_MEMORY or, of a view
 * with suboffsets, _BOUNDS or _MISALIGNED. */
int array_print(const struct shmview_view *view, const struct array_style *style, FILE *out);

/* Prints them all as nested JSON arrays: numbers; complex as [re, im]; structs as objects, a field
 * without a name called f0, f1 ...; text as strings, of a byte past ASCII the character of that
 * number; "nan", "inf" and "-inf". With is_hex each is a string of its bytes. Returns as above. */
int array_print_json(const struct shmview_view *view, bool is_hex, FILE *out);

#endif
