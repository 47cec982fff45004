/* SPDX-License-Identifier: Apache-2.0 */
/* Visits the elements of a view as doubles, and summarises them, for the statistics and pictures of
 * shmviewctl. Works through a small buffer, so a view of any size and any strides is possible. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include <shmview/view.h>

/* Calls visit with all elements in C order, n at a time. `first` is the number of values[0] among
 * all elements. values is valid only during the call. Integers of 64 bits are rounded. Returns 0,
 * or -SHMVIEW_ERR_CONVERSION (the elements are not real numbers), _BOUNDS or _NO_MEMORY. */
int values_each(const struct shmview_view *view, void *arg,
                void (*visit)(void *arg, uint64_t first, const double *values, size_t n));

struct values_summary {
    struct shmview_summary of_library; /* from shmview_summarize() */
    uint64_t n_infinite;
    double finite_min, finite_max; /* NaN if no element is finite */
    double mean, std; /* NaN if no element is a number. std divides by n, as numpy does */
};

/* Reads all elements three times: the deviation needs the mean first. Without a lock the passes may
 * see different values. Returns as above. */
int values_summarize(const struct shmview_view *view, struct values_summary *ret);

#endif
