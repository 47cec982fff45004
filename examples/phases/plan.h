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
 * The int layout begins when every C is ready. Nobody needs A and B any more, so
 * D takes the place of A and E that of B. C is what one layout hands to the
 * other: it is in both, at the same place, and a worker that writes D[i] reads
 * nothing but C[i], so that no order among the workers is needed. (Were D laid
 * over C, one worker's D[2 i] would destroy another's C[i] before its turn.)
 *
 * The states of the parts (parts.h) are in both layouts, too.
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
    uint64_t apart_bytes;   /* what the arrays would take without overlap */
};

/* Plans for n samples in n_parts parts. Never fails. */
struct plan plan_make(size_t n, int n_parts);

/* Declares both layouts. Returns what shmview_define() returns. */
int plan_define(const struct plan *plan, struct shmview_segment *segment);

/* Points the members of *arrays that belong to layout at the segment's memory,
 * leaves the others. Returns what shmview_view_open() returns. */
int plan_open(struct shmview_segment *segment, const char *layout, struct arrays *arrays);

#endif
