/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/by_id.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GAPS_LEAST 64 /* a list with fewer is not closed up */

_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "an id and one bit fit");

static bool is_gap(uintptr_t entry)
{
    return entry & 1;
}

static uint64_t id_at(const struct by_id *ids, size_t i)
{
    uintptr_t entry = ids->list[i];
    return is_gap(entry) ? entry >> 1 : ((const struct segment *)entry)->id;
}

/* Returns the index of the first entry whose id is at least `id`; n if there is none. */
static size_t index_of(const struct by_id *ids, uint64_t id)
{
    size_t low = 0, high = ids->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (id_at(ids, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int reserve(struct by_id *ids)
{
    if (ids->n < ids->capacity)
        return 0;
    size_t capacity = ids->capacity + ids->capacity / 8 + GAPS_LEAST;
    uintptr_t *list = realloc(ids->list, capacity * sizeof *list);
    if (!list)
        return -ENOMEM;
    ids->list = list;
    ids->capacity = capacity;
    return 0;
}

int by_id_add(struct by_id *ids, struct segment *segment)
{
    int r = reserve(ids);
    if (r)
        return r;
    size_t i = index_of(ids, segment->id); /* nearly always the end */
    memmove(ids->list + i + 1, ids->list + i, (ids->n - i) * sizeof *ids->list);
    ids->list[i] = (uintptr_t)segment;
    ids->n++;
    return 0;
}

static void close_up(struct by_id *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++)
        if (!is_gap(ids->list[i]))
            ids->list[n++] = ids->list[i];
    ids->n = n;
    ids->n_gaps = 0;
}

void by_id_remove(struct by_id *ids, const struct segment *segment)
{
    ids->list[index_of(ids, segment->id)] = (uintptr_t)segment->id << 1 | 1;
    ids->n_gaps++;
    if (by_id_count(ids) == 0) {
        free(ids->list);
        *ids = (struct by_id){0};
    } else if (ids->n_gaps >= GAPS_LEAST && ids->n_gaps > ids->n / 2) {
        close_up(ids);
    }
}

struct segment *by_id_find(const struct by_id *ids, uint64_t id)
{
    size_t i = index_of(ids, id);
    if (i == ids->n || is_gap(ids->list[i]) || id_at(ids, i) != id)
        return NULL;
    return (struct segment *)ids->list[i];
}

struct segment *by_id_next(const struct by_id *ids, uint64_t id)
{
    size_t i = id == UINT64_MAX ? ids->n : index_of(ids, id + 1);
    while (i < ids->n && is_gap(ids->list[i]))
        i++;
    return i < ids->n ? (struct segment *)ids->list[i] : NULL;
}
