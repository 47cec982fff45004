/* SPDX-License-Identifier: Apache-2.0 */
/* arrays.h - the arrays of the computation, wherever they lie.
 *
 * In the shared segment not all of them hold at the same time (see plan.h). In the private memory
 * of the check they do. */
#ifndef PHASES_ARRAYS_H
#define PHASES_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

/* Rows of the histogram. Row k counts the samples whose magnitude has k binary
 * digits, so a row is 6 dB: row 15 is the loudest, row 0 is silence. */
#define HISTOGRAM_ROWS 16

struct arrays {
    size_t n;    /* samples: length of a, b, c, d */
    float *a;    /* the sound */
    float *b;    /* a at a fixed level */
    float *c;    /* b with its treble lifted */
    float *peak; /* one element: the loudest sample of the input */
    int16_t *d;  /* c as 16-bit samples */
    int32_t *e;  /* histogram of d, HISTOGRAM_ROWS elements */

    size_t n_parts;               /* in the segment only: */
    _Atomic unsigned char *parts; /* enum part of each */
};

/* Samples [first, end). */
struct range {
    size_t first;
    size_t end;
};

#endif
