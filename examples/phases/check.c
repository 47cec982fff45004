/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "step.h"

static void *allocate(size_t n, size_t item_bytes)
{
    void *memory = calloc(n, item_bytes);
    if (!memory)
        err(1, "no memory to check the result");
    return memory;
}

static const char *compare(const struct arrays *one, const struct arrays *other)
{
    if (memcmp(one->c, other->c, one->n * sizeof *one->c) != 0)
        return "C";
    if (memcmp(one->d, other->d, one->n * sizeof *one->d) != 0)
        return "D";
    if (memcmp(one->e, other->e, HISTOGRAM_ROWS * sizeof *one->e) != 0)
        return "E";
    return NULL;
}

/* One process computes each step over all samples at once. The result must be the same bit by bit,
 * because every element is computed in the same order of operations, however the samples are
 * divided. */
const char *check_against(struct sound *sound, const struct arrays *shared)
{
    const size_t n = sound->n;
    float peak;
    int32_t histogram[HISTOGRAM_ROWS];
    struct arrays apart = {.n = n,
                           .a = allocate(n, sizeof *apart.a),
                           .b = allocate(n, sizeof *apart.b),
                           .c = allocate(n, sizeof *apart.c),
                           .peak = &peak,
                           .d = allocate(n, sizeof *apart.d),
                           .e = histogram};
    sound_load(sound, apart.a);
    for (enum step step = 0; step < N_STEPS; step++) {
        struct partial partial;
        step_prepare(step, &apart);
        step_run(step, &apart, (struct range){0, n});
        step_count(step, &apart, (struct range){0, n}, &partial);
        step_merge(step, &apart, &partial);
    }
    const char *differs = compare(&apart, shared);
    free(apart.a);
    free(apart.b);
    free(apart.c);
    free(apart.d);
    return differs;
}
