/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the elements of a view as numpy prints an array, or as JSON.
 *
 * The form of numpy is imitated to the character, because users compare the two.
 * numpy itself is not needed. */
#ifndef CLI_ARRAY_TEXT_H
#define CLI_ARRAY_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include <shmview/view.h>

/* Defaults of numpy.set_printoptions(): an array with more elements than ARRAY_THRESHOLD shows only
 * the first and last ARRAY_EDGE of each dimension. */
#define ARRAY_THRESHOLD 1000
#define ARRAY_EDGE      3
#define ARRAY_PRECISION 8 /* digits after the point, at most */

/* How array_print() prints. */
struct array_style {
    size_t width;    /* columns of a line */
    bool all;        /* leave nothing out */
    bool is_hex;     /* the bytes of each element, in the order of their addresses */
    unsigned margin; /* columns before each line but the first */
};

/* Prints the elements, and no newline at the end. Reads them one by one while it prints, so the
 * caller must hold the lock or pass a copy. Errors of the stream are the caller's to check. Returns
 * 0; or -SHMVIEW_ERR_FORMAT, _NO_MEMORY, or for a view with suboffsets _BOUNDS or _MISALIGNED. */
int array_print(const struct shmview_view *view, const struct array_style *style, FILE *out);

/* Like array_print(), but prints all elements as nested JSON arrays. A complex number is [re, im],
 * a struct an object in which fields without a name are called f0, f1 ... Text is a string with one
 * character for each byte. Floats that JSON cannot express are "nan", "inf" and "-inf". With is_hex
 * each element is a string of its bytes. */
int array_print_json(const struct shmview_view *view, bool is_hex, FILE *out);

#endif
