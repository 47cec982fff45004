/* SPDX-License-Identifier: Apache-2.0 */
/* Figures, rows and their order. */
#include "cli/top/top.h"

#include <fnmatch.h>
#include <string.h>

#define NAME_LEAST 8

const char *const top_key_names[] = {"name",    "size",    "resident", "attached", "held",
                                     "waiting", "changes", "deaths",   "age",      NULL};

void top_deinit(struct top *t)
{
    shmview_stats_free(t->now);
    shmview_stats_free(t->before);
    free(t->rows);
}

/* --- Figures ------------------------------------------------------------- */

/* Returns the earlier figures of a segment, or NULL. The daemon lists segments in the order of
 * their ids. */
static const struct shmview_segment_stats *find_before(const struct top *t, int64_t id)
{
    size_t low = 0, high = t->before ? t->before->n_segments : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct shmview_segment_stats *s = t->before->segments[middle];
        if (s->id == id)
            return s;
        if (s->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Returns the changes per second, or -1 if there is no earlier figure. */
static double changes_of(const struct top *t, const struct shmview_segment_stats *s)
{
    const struct shmview_segment_stats *before = find_before(t, s->id);
    if (!before || before->changes < 0 || s->changes < 0 || t->now_us <= t->before_us)
        return -1;
    uint32_t n = (uint32_t)s->changes - (uint32_t)before->changes; /* the counter wraps */
    return (double)n * 1e6 / (double)(t->now_us - t->before_us);
}

/* Raises *longest to the time since which a party holds or waits. */
static void note_longest(const struct top *t, const struct shmview_party_stats *p, int64_t *longest)
{
    int64_t us = p->since_us > 0 ? t->now_us - p->since_us : -1;
    if (us > *longest)
        *longest = us;
}

static struct top_row make_row(const struct top *t, const struct shmview_segment_stats *s)
{
    struct top_row row = {
        .segment = s, .held_us = -1, .waited_us = -1, .changes = changes_of(t, s)};
    for (size_t i = 0; i < s->n_parties; i++) {
        const struct shmview_party_stats *p = s->parties[i];
        if (p->waits) {
            row.n_waiters++;
            note_longest(t, p, &row.waited_us);
        } else if (p->holds) {
            if (row.n_holders++ == 0)
                row.holder = p;
            note_longest(t, p, &row.held_us);
        }
    }
    return row;
}

/* Whether the segment's name fits the filter. */
static bool fits(const struct top *t, const struct shmview_segment_stats *s)
{
    if (!t->filter[0])
        return true;
    return strpbrk(t->filter, "*?[") ? fnmatch(t->filter, s->name, 0) == 0
                                     : strstr(s->name, t->filter) != NULL;
}

/* --- Order --------------------------------------------------------------- */

/* Returns the number by which a row is sorted, the greatest first; 0 for names, which are compared
 * as texts. */
static double weight(const struct top_row *row, enum top_key key)
{
    switch (key) {
    case TOP_SIZE:
        return (double)row->segment->size;
    case TOP_RESIDENT:
        return (double)row->segment->resident;
    case TOP_ATTACHED:
        return (double)row->segment->attachments;
    case TOP_HELD: /* a lock whose time is not known (-1) still sorts before a free one */
        return row->n_holders ? (double)row->held_us + 2 : 0;
    case TOP_WAITING:
        return (double)row->n_waiters;
    case TOP_CHANGES:
        return row->changes;
    case TOP_DEATHS:
        return (double)row->segment->owner_deaths;
    case TOP_AGE:
        return -(double)row->segment->created_us;
    default:
        return 0;
    }
}

/* Compares two rows for qsort_r(). Equal rows are ordered by name and id, so that they do not
 * change places between two updates. */
static int compare(const void *a, const void *b, void *arg)
{
    const struct top_row *one = a, *other = b;
    const struct top *t = arg;
    double x = weight(one, t->key), y = weight(other, t->key);
    int r = x > y ? -1 : x < y;
    if (r == 0)
        r = strcmp(one->segment->name, other->segment->name);
    if (r == 0) /* a removed segment keeps its name, which a new one may have */
        r = one->segment->id < other->segment->id ? -1 : 1;
    return t->is_reversed ? -r : r;
}

int top_arrange(struct top *t)
{
    size_t n = t->now ? t->now->n_segments : 0;
    struct top_row *rows = realloc(t->rows, (n + 1) * sizeof *rows);
    if (!rows)
        return -1;
    t->rows = rows;
    t->n_rows = 0;
    t->name_width = NAME_LEAST;
    for (size_t i = 0; i < n; i++)
        if (fits(t, t->now->segments[i])) {
            int width = (int)strlen(t->now->segments[i]->name);
            rows[t->n_rows++] = make_row(t, t->now->segments[i]);
            t->name_width = width > t->name_width ? width : t->name_width;
        }
    if (t->name_width > t->name_most)
        t->name_width = t->name_most;
    qsort_r(rows, t->n_rows, sizeof *rows, compare, t);
    return 0;
}

int top_update(struct top *t, const struct shmview_stats *stats, int64_t now_us)
{
    shmview_stats_free(t->before);
    t->before = t->now;
    t->before_us = t->now_us;
    t->now = stats;
    t->now_us = now_us;
    return top_arrange(t);
}

size_t top_find(const struct top *t, int64_t id)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->rows[i].segment->id == id)
            return i;
    return SIZE_MAX;
}
