/* SPDX-License-Identifier: Apache-2.0 */
/* Private memory for doubles, into which the library converts elements of any numeric type. */
#ifndef WEB_NUMBERS_H
#define WEB_NUMBERS_H

#include "web/memory/look.h"

/* A struct of zeroes is closed. */
struct numbers {
    double *values; /* owned */
    size_t n;
    struct shmview_segment *segment; /* wraps values */
    struct shmview_view view;        /* all values, one dimension */
};

/* Makes room for n values. The caller owes numbers_deinit(), on failure too. Returns 0 or an error
 * of the library. */
int numbers_init(struct numbers *m, size_t n);
void numbers_deinit(struct numbers *m);
#define CLEANUP_NUMBERS CLEANUP(numbers_deinit)

/* Converts all n elements of a view, at most m->n, into m->values, in C order. Safe in look_read().
 * Returns 0 or an error of shmview_copy(). */
int numbers_load(const struct numbers *m, const struct shmview_view *view, size_t n);

#endif
