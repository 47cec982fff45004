/* SPDX-License-Identifier: Apache-2.0 */
/* Plain C loops over the rows of matrices, the reference of the calls on whole views. The strides
 * are in bytes and known only at run time. In functions with _rows the elements of a row are
 * adjacent. */
#ifndef BENCH_BULK_RAW_H
#define BENCH_BULK_RAW_H

#include <stdint.h>

#include "kernels.h"

struct raw_summary {
    uint64_t n_nan;
    double min, max, sum;
};

typedef struct raw_matrix raw_m;

void raw_copy_rows(raw_m to, raw_m from);
void raw_copy_strided(raw_m to, raw_m from);
void raw_int32_to_float32_rows(raw_m to, raw_m from);
void raw_float64_to_float32_rows(raw_m to, raw_m from);
void raw_float64_to_float32_strided(raw_m to, raw_m from);
void raw_fill_rows(raw_m to, float value);
void raw_fill_strided(raw_m to, float value);
/* Returns 1 or 0. */
int raw_equal_rows(raw_m a, raw_m b);
void raw_summarize_float32_rows(raw_m x, struct raw_summary *ret);
void raw_summarize_int32_rows(raw_m x, struct raw_summary *ret);

/* The sum of a matrix of float32 by shmview_get_double(), and by SHMVIEW_AT2. */
double sum_by_get(view_p x);
float sum_by_at(view_p x);

#endif
