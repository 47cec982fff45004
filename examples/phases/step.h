/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - the computation: four steps on plain arrays.
 *
 *   float   peak      peak = loudest |a|
 *           scale     b = a, scaled so that its peak is STEP_LEVEL
 *           filter    c = b + STEP_LIFT (b - low-pass of b)
 *   int     quantise  d = c in 16 bits;   e = histogram of d
 *
 * Ranges of a step can be done in any order, or at the same time. The step
 * before it must be complete, because filter reads beyond the ends of its range.
 * No step writes an array that it reads, so a range can be done again. No
 * function here depends on whether the memory is shared. */
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

/* The share of one range in a result of all ranges. */
struct partial {
    float peak;
    int32_t histogram[HISTOGRAM_ROWS];
};

const char *step_name(enum step step);
const char *step_layout(enum step step); /* "float" or "int": the views it needs */
const char *step_text(enum step step);   /* what it does, in a few words */

/* Finds a step by name. Returns N_STEPS if there is none of that name. */
enum step step_find(const char *name);

/* Clears the result to which step_merge() adds. Call it before the first range. */
void step_prepare(enum step step, const struct arrays *arrays);

/* Computes the arrays of one range. */
void step_run(enum step step, const struct arrays *arrays, struct range range);

/* Computes the share of a range, which step_run() must have computed, in the common result. */
void step_count(enum step step, const struct arrays *arrays, struct range range,
                struct partial *ret_partial);

/* Adds a share to the common result. Only one process at a time may call it. */
void step_merge(enum step step, const struct arrays *arrays, const struct partial *partial);

#endif
