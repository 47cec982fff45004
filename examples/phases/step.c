/* SPDX-License-Identifier: Apache-2.0 */
#include "step.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    const char *layout;
    const char *text;
} steps[N_STEPS] = {
    [STEP_PEAK] = {"peak", "float", "find the loudest sample"},
    [STEP_SCALE] = {"scale", "float", "B = A at a fixed level"},
    [STEP_FILTER] = {"filter", "float", "C = B with its treble lifted"},
    [STEP_QUANTISE] = {"quantise", "int", "D = C in 16 bits, E = histogram of D"},
};

const char *step_name(enum step step)
{
    return steps[step].name;
}

const char *step_layout(enum step step)
{
    return steps[step].layout;
}

const char *step_text(enum step step)
{
    return steps[step].text;
}

enum step step_find(const char *name)
{
    enum step step = 0;
    while (step < N_STEPS && strcmp(steps[step].name, name) != 0)
        step++;
    return step;
}

static void find_peak(const float *a, struct range range, struct partial *partial)
{
    for (size_t i = range.first; i < range.end; i++)
        partial->peak = fmaxf(partial->peak, fabsf(a[i]));
}

static void scale(const struct arrays *arrays, struct range range)
{
    const float peak = *arrays->peak;
    /* A sound whose peak is below any normal float counts as silence, because the inverse of the
     * peak would be infinite. */
    float gain = peak < FLT_MIN ? 0 : STEP_LEVEL / peak;
    for (size_t i = range.first; i < range.end; i++)
        arrays->b[i] = arrays->a[i] * gain;
}

/* A windowed sinc (Hamming), scaled so that a constant passes unchanged. */
static void make_low_pass(double *taps)
{
    const double pi = 3.14159265358979323846;
    const int middle = STEP_TAPS / 2;
    double sum = 0;
    for (int k = 0; k < STEP_TAPS; k++) {
        double x = 2 * pi * STEP_CUTOFF * (k - middle);
        double sinc = k == middle ? 1 : sin(x) / x;
        taps[k] = sinc * (0.54 - 0.46 * cos(2 * pi * k / (STEP_TAPS - 1)));
        sum += taps[k];
    }
    for (int k = 0; k < STEP_TAPS; k++)
        taps[k] /= sum;
}

static void filter(const struct arrays *arrays, struct range range)
{
    const ptrdiff_t n = (ptrdiff_t)arrays->n;
    const float *b = arrays->b;
    double taps[STEP_TAPS];
    make_low_pass(taps);
    for (ptrdiff_t i = (ptrdiff_t)range.first; i < (ptrdiff_t)range.end; i++) {
        double sum = 0;
        for (ptrdiff_t k = 0; k < STEP_TAPS; k++) {
            ptrdiff_t from = i + k - STEP_TAPS / 2;
            if (from >= 0 && from < n) /* silence before and after */
                sum += taps[k] * (double)b[from];
        }
        arrays->c[i] = b[i] + STEP_LIFT * (b[i] - (float)sum);
    }
}

static int row_of(int16_t sample)
{
    int row = 0;
    for (int magnitude = sample < 0 ? -sample : sample; magnitude > 0; magnitude >>= 1)
        row++;
    return row;
}

static void quantise(const struct arrays *arrays, struct range range)
{
    for (size_t i = range.first; i < range.end; i++) {
        float clipped = fminf(fmaxf(arrays->c[i], -1), 1);
        arrays->d[i] = (int16_t)lrintf(clipped * 32767);
    }
}

void step_prepare(enum step step, const struct arrays *arrays)
{
    if (step == STEP_PEAK)
        *arrays->peak = 0;
    if (step == STEP_QUANTISE) /* E lies where floats were, which mean nothing as ints */
        memset(arrays->e, 0, HISTOGRAM_ROWS * sizeof *arrays->e);
}

void step_run(enum step step, const struct arrays *arrays, struct range range)
{
    if (step == STEP_SCALE)
        scale(arrays, range);
    else if (step == STEP_FILTER)
        filter(arrays, range);
    else if (step == STEP_QUANTISE)
        quantise(arrays, range);
}

void step_count(enum step step, const struct arrays *arrays, struct range range,
                struct partial *ret_partial)
{
    *ret_partial = (struct partial){0};
    if (step == STEP_PEAK)
        find_peak(arrays->a, range, ret_partial);
    for (size_t i = range.first; step == STEP_QUANTISE && i < range.end; i++)
        ret_partial->histogram[row_of(arrays->d[i])]++;
}

void step_merge(enum step step, const struct arrays *arrays, const struct partial *partial)
{
    if (step == STEP_PEAK)
        *arrays->peak = fmaxf(*arrays->peak, partial->peak);
    if (step == STEP_QUANTISE) {
        for (int row = 0; row < HISTOGRAM_ROWS; row++)
            arrays->e[row] += partial->histogram[row];
    }
}
