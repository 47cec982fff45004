/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a view as doubles, and what is found out about them. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include <shmview/view.h>

/* Calls visit for all elements in C order, n of them at a time, of which the first is element
 * number first. Returns 0; -SHMVIEW_ERR_CONVERSION (the elements are no real numbers), _BOUNDS or
 * _NO_MEMORY. */
int values_each(const struct shmview_view *view, void *arg,
                void (*visit)(void *arg, uint64_t first, const double *values, size_t n));

struct values_summary {
    struct shmview_summary of_library; /* as shmview_summarize() has it */
    uint64_t n_infinite;
    double finite_min, finite_max; /* NaN where nothing is finite */
    double mean, std;              /* NaN without a number; std of all of them, as numpy has it */
};

/* Goes through them three times. Returns as above. */
int values_summarize(const struct shmview_view *view, struct values_summary *ret);

#endif
