/* SPDX-License-Identifier: Apache-2.0 */
/* Views of one segment with all kinds of strides, and their elements in C order without gaps. */
#ifndef SUPPORT_REGIONS_H
#define SUPPORT_REGIONS_H

#include <shmview/shmview.h>

#define REGION_BYTES 65536
/* Orders of strides: C, Fortran's, with gaps, reversed. Higher numbers begin again. */
#define REGION_ORDERS 4

/* A view in region i of the segment. */
struct shmview_view region_view(struct shmview_segment *segment, int region, const char *format,
                                uint32_t ndim, const int64_t *shape, unsigned order);

/* Bytes for all elements of a view, which depend on seed, or are 0 for -1. The caller frees them.
 */
char *region_pattern(const struct shmview_view *view, int seed);
void region_store(const struct shmview_view *view, const char *bytes);
int region_equal(const struct shmview_view *view, const char *bytes);

/* Element i in C order, as a number. */
void region_set(const struct shmview_view *view, int i, double value);
double region_get(const struct shmview_view *view, int i);

#endif
