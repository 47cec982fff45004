/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <err.h>

/* Computes the common result again from the parts that are done. A part in PART_COUNTING may be in
 * the old result wholly, partly or not at all, so it is done again. */
static void repair(const char *who, enum step step, struct shmview_segment *segment,
                   const struct arrays *arrays)
{
    struct shmview_death death;
    size_t n_done = 0;
    shmview_owner_died(segment, &death);
    step_prepare(step, arrays);
    for (size_t i = 0; i < arrays->n_parts; i++) {
        struct partial partial;
        if (arrays->parts[i] == PART_COUNTING)
            arrays->parts[i] = PART_TO_DO;
        if (arrays->parts[i] != PART_DONE)
            continue;
        step_count(step, arrays, parts_range(arrays, i), &partial);
        step_merge(step, arrays, &partial);
        n_done++;
    }
    warnx("%s: '%s' (process %u) died while it held the lock: the result is counted again from "
          "the %zu parts that are done",
          who, death.command, death.pid, n_done);
}

void parts_lock(const char *who, enum step step, struct shmview_segment *segment,
                const struct arrays *arrays)
{
    int result = shmview_lock(segment);
    if (result < 0)
        errx(1, "%s: lock: %s", who, shmview_error_text());
    if (result == SHMVIEW_OWNER_DIED)
        repair(who, step, segment, arrays); /* shmview_unlock() then marks it as repaired */
}

void parts_assign(const struct arrays *arrays, int n_workers)
{
    for (size_t i = 0; i < arrays->n_parts; i++)
        if (arrays->parts[i] != PART_DONE)
            arrays->parts[i] = (unsigned char)(i < (size_t)n_workers ? PART_TAKEN + i : PART_TO_DO);
}

size_t parts_left(const struct arrays *arrays)
{
    size_t n_left = 0;
    for (size_t i = 0; i < arrays->n_parts; i++)
        n_left += arrays->parts[i] != PART_DONE;
    return n_left;
}

void parts_give_up(const struct arrays *arrays, int worker)
{
    for (size_t i = 0; i < arrays->n_parts; i++)
        if (arrays->parts[i] == PART_TAKEN + worker)
            arrays->parts[i] = PART_TO_DO;
}

size_t parts_take(const struct arrays *arrays, int worker)
{
    size_t part = 0;
    while (part < arrays->n_parts && arrays->parts[part] != PART_TO_DO)
        part++;
    if (part < arrays->n_parts)
        arrays->parts[part] = (unsigned char)(PART_TAKEN + worker);
    return part;
}

struct range parts_range(const struct arrays *arrays, size_t part)
{
    const size_t n = arrays->n, n_parts = arrays->n_parts;
    return (struct range){n * part / n_parts, n * (part + 1) / n_parts};
}
