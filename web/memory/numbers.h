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
    /* all values, one dimension: as doubles, and the same cells as integers of 64 bits */
    struct shmview_view view, signeds, unsigneds;
};

/* Makes room for n values. The caller owes numbers_deinit(), on failure too. Returns 0 or an error
 * of the library. */
int numbers_init(struct numbers *m, size_t n);
void numbers_deinit(struct numbers *m);
#define CLEANUP_NUMBERS CLEANUP(numbers_deinit)

/* Converts all n elements of a view, at most m->n, into m->values, in C order. Integers that a
 * double cannot hold are rounded. Safe in look_read(). Returns 0 or an error of shmview_copy(). */
int numbers_load(const struct numbers *m, const struct shmview_view *view, size_t n);

#endif
