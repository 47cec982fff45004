/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - the computation: four steps on plain arrays.
 *
 *   float   peak      peak = loudest |a|
 *           scale     b = a, scaled so that its peak is STEP_LEVEL
 *           filter    c = b + STEP_LIFT (b - low-pass of b)
 *   int     quantise  d = c in 16 bits;   e = histogram of d
 *
 * A step can be done in ranges, in any order or at once, but not before the
 * step before it is done for all: filter reads beyond the ends of its range.
 * No step writes an array that it reads, so that a range can be done again.
 * Nothing here knows whether the memory is shared. */
#ifndef PHASES_STEP_H
#define PHASES_STEP_H

#include "arrays.h"

#define STEP_LEVEL  0.6f
#define STEP_LIFT   0.5f
#define STEP_TAPS   63    /* length of the low-pass, odd */
#define STEP_CUTOFF 0.125 /* of the low-pass, in parts of the sample rate */

enum step {
    STEP_PEAK,
    STEP_SCALE,
    STEP_FILTER,
    STEP_QUANTISE,
    N_STEPS
};

/* What a range adds to a result that belongs to all ranges. */
struct partial {
    float peak;
    int32_t histogram[HISTOGRAM_ROWS];
};

const char *step_name(enum step step);
const char *step_layout(enum step step); /* "float" or "int": the views it needs */
const char *step_text(enum step step);   /* what it does, in a few words */

/* Finds a step by name. Returns N_STEPS if there is none of that name. */
enum step step_find(const char *name);

/* Before all ranges: clears the result that step_merge() adds to. */
void step_prepare(enum step step, const struct arrays *arrays);

/* Computes the arrays of one range. */
void step_run(enum step step, const struct arrays *arrays, struct range range);

/* What a range that was computed adds to the common result. */
void step_count(enum step step, const struct arrays *arrays, struct range range,
                struct partial *ret_partial);

/* After each range, one at a time. */
void step_merge(enum step step, const struct arrays *arrays, const struct partial *partial);

#endif
