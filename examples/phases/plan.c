/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <string.h>

#define LINE_BYTES 64u

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct plan plan_make(size_t n, int n_parts)
{
    const uint64_t floats = n * sizeof(float);
    const uint64_t shorts = n * sizeof(int16_t);
    const uint64_t rows = HISTOGRAM_ROWS * sizeof(int32_t);
    struct plan plan = {.n = (int64_t)n, .n_parts = n_parts};

    plan.a = 0;
    plan.d = plan.a;
    plan.b = plan.a + round_up(floats);
    plan.e = plan.b;
    plan.c = plan.b + round_up(larger(floats, rows)); /* E is longer than B if the sound is short */
    plan.peak = plan.c + round_up(floats);
    plan.parts = plan.peak + round_up(sizeof(float));
    plan.bytes = plan.parts + (uint64_t)n_parts;
    plan.apart_bytes = 3 * floats + sizeof(float) + shorts + rows;
    return plan;
}

static struct shmview_view_spec array_spec(const char *name, const char *format, uint64_t offset,
                                           const int64_t *length)
{
    return (struct shmview_view_spec){
        .name = name, .format = format, .offset = offset, .ndim = length ? 1 : 0, .shape = length};
}

int plan_define(const struct plan *plan, struct shmview_segment *segment)
{
    static const int64_t rows = HISTOGRAM_ROWS;
    const struct shmview_view_spec floats[] = {
        array_spec("A", "float32", plan->a, &plan->n),
        array_spec("B", "float32", plan->b, &plan->n),
        array_spec("C", "float32", plan->c, &plan->n),
        array_spec("peak", "float32", plan->peak, NULL),
        array_spec("parts", "uint8", plan->parts, &plan->n_parts),
    };
    const struct shmview_view_spec ints[] = {
        array_spec("C", "float32", plan->c, &plan->n),
        array_spec("D", "int16", plan->d, &plan->n),
        array_spec("E", "int32", plan->e, &rows),
        array_spec("parts", "uint8", plan->parts, &plan->n_parts),
    };
    int result = shmview_define(segment, "float", floats, sizeof floats / sizeof *floats);
    if (result < 0)
        return result;
    return shmview_define(segment, "int", ints, sizeof ints / sizeof *ints);
}

int plan_open(struct shmview_segment *segment, const char *layout, struct arrays *arrays)
{
    struct shmview_view a, b, c, d, e, peak, parts;
    int result;
    if ((result = shmview_view_open(segment, layout, "C", &c)) < 0 ||
        (result = shmview_view_open(segment, layout, "parts", &parts)) < 0)
        return result;
    arrays->n = (size_t)c.shape[0];
    arrays->c = SHMVIEW_DATA(float, &c);
    arrays->n_parts = (size_t)parts.shape[0];
    arrays->parts = SHMVIEW_DATA(_Atomic unsigned char, &parts);
    if (strcmp(layout, "int") == 0) {
        if ((result = shmview_view_open(segment, layout, "D", &d)) < 0 ||
            (result = shmview_view_open(segment, layout, "E", &e)) < 0)
            return result;
        arrays->d = SHMVIEW_DATA(int16_t, &d);
        arrays->e = SHMVIEW_DATA(int32_t, &e);
        return 0;
    }
    if ((result = shmview_view_open(segment, layout, "A", &a)) < 0 ||
        (result = shmview_view_open(segment, layout, "B", &b)) < 0 ||
        (result = shmview_view_open(segment, layout, "peak", &peak)) < 0)
        return result;
    arrays->a = SHMVIEW_DATA(float, &a);
    arrays->b = SHMVIEW_DATA(float, &b);
    arrays->peak = SHMVIEW_DATA(float, &peak);
    return 0;
}
