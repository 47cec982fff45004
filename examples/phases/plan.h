/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - where the arrays lie in the segment.
 *
 *   layout  byte 0                                                     to the end
 *           +----------------+----------------+----------------+------+-------+
 *   float   | A  float32 x n | B  float32 x n | C  float32 x n | peak | parts |
 *           +--------+-------+---+------------+----------------+------+-------+
 *   int     | D  i16 | ....  | E | ....       | C  float32 x n | .... | parts |
 *           +--------+-------+---+------------+----------------+------+-------+
 *
 * The int layout begins when every C is ready. A and B are not needed then, so
 * D takes the place of A, and E that of B. One layout passes C to the other: it
 * is in both, at the same place. A worker that writes D[i] reads only C[i], so
 * the workers need no order. (If D lay over C, one worker's D[2 i] would
 * overwrite C[i] before another worker had read it.)
 *
 * The states of the parts (parts.h) are in both layouts too.
 *
 * Each array begins on a cache line of its own. */
#ifndef PHASES_PLAN_H
#define PHASES_PLAN_H

#include <shmview/shmview.h>

#include "arrays.h"

struct plan {
    int64_t n;              /* samples */
    int64_t n_parts;        /* of the samples, for the workers */
    uint64_t a, b, c, peak; /* offsets, layout float */
    uint64_t d, e;          /* offsets, layout int; c is in both */
    uint64_t parts;         /* offset in both */
    uint64_t bytes;         /* of the segment */
    uint64_t apart_bytes;   /* bytes of the arrays without overlap */
};

/* Plans for n samples in n_parts parts. Never fails. */
struct plan plan_make(size_t n, int n_parts);

/* Declares both layouts. Returns what shmview_define() returns. */
int plan_define(const struct plan *plan, struct shmview_segment *segment);

/* Points the members of *arrays that belong to the layout at the memory of the segment, and leaves
 * the others. Returns what shmview_view_open() returns. */
int plan_open(struct shmview_segment *segment, const char *layout, struct arrays *arrays);

#endif
