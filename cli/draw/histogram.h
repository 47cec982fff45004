/* SPDX-License-Identifier: Apache-2.0 */
/* How many values lie in each of some ranges of the same width. */
#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_BINS 200 /* at most */

struct histogram {
    double min, max;
    size_t n;
    uint64_t counts[HISTOGRAM_BINS];
};

/* n bins, 1 or more, from min to max; if they are the same, half a unit to each side. */
void histogram_init(struct histogram *h, double min, double max, size_t n);
/* Where bin i begins; of n, where the last one ends. */
double histogram_edge(const struct histogram *h, size_t i);
/* As numpy.histogram() does: what is an edge belongs to the bin that begins there, the largest to
 * the last one. What is no number or outside counts nowhere. */
void histogram_add(struct histogram *h, const double *values, size_t n);

/* A line for each bin, of at most width columns. */
void histogram_print(const struct histogram *h, size_t width, bool utf8, FILE *out);

#endif
