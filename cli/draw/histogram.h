/* SPDX-License-Identifier: Apache-2.0 */
/* Counts values in ranges (bins) of equal width. Gives the same counts as numpy.histogram(), so
 * that users can compare both. */
#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_BINS 200 /* most bins */

struct histogram {
    double min, max; /* edges of the first and the last bin */
    size_t n;        /* bins */
    uint64_t counts[HISTOGRAM_BINS];
};

/* Makes n empty bins from min to max, which are finite. n is 1 to HISTOGRAM_BINS. If min and max
 * are equal, the range becomes half a unit on each side. */
void histogram_init(struct histogram *h, double min, double max, size_t n);
/* Returns the lower edge of bin i, or for i = n the upper edge of the last bin. */
double histogram_edge(const struct histogram *h, size_t i);
/* Counts n values. A value on an edge belongs to the bin that begins there, but max belongs to the
 * last bin. Ignores NaN and values outside the range. */
void histogram_add(struct histogram *h, const double *values, size_t n);

/* Prints one line for each bin to out: its edges, its count, and a bar. A line has at most width
 * columns, unless the labels alone need more. */
void histogram_print(const struct histogram *h, size_t width, bool utf8, FILE *out);

#endif
