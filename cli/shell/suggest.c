/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/suggest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <shmview/stats.h>

#define PREFIX_LEAST 2 /* a single letter begins too many names */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Returns the distance of Damerau and Levenshtein between a and b, in the variant in which no
 * character changes twice: it needs only three rows of the table. Both are shorter than
 * SUGGEST_BYTES. */
static size_t distance(const char *a, const char *b)
{
    size_t table[3][SUGGEST_BYTES], n = strlen(b);
    size_t *before = table[0], *above = table[1], *row = table[2];
    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 0; a[i]; i++) {
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            row[k + 1] = least(above[k] + !is_same(a[i], b[k]), least(above[k + 1], row[k]) + 1);
            if (i && k && is_same(a[i], b[k - 1]) && is_same(a[i - 1], b[k]))
                row[k + 1] = least(row[k + 1], before[k - 1] + 1);
        }
    }
    return row[n];
}

/* Inserts name into the sorted list. Drops the last name if the list is full. */
static void insert(struct suggest *s, const char *name)
{
    size_t at = s->n;
    while (at > 0 && strcmp(name, s->names[at - 1]) < 0)
        at--;
    if (at == SUGGEST_MOST || (at > 0 && strcmp(name, s->names[at - 1]) == 0))
        return;
    s->n += s->n < SUGGEST_MOST;
    memmove(s->names[at + 1], s->names[at], (s->n - at - 1) * SUGGEST_BYTES);
    snprintf(s->names[at], SUGGEST_BYTES, "%s", name);
}

void suggest_offer(struct suggest *s, const char *name)
{
    size_t typed = strlen(s->typed), known = strlen(name), limit = least((typed + 2) / 4, 3);
    size_t apart = typed < known ? known - typed : typed - known;
    if (typed >= SUGGEST_BYTES || known >= SUGGEST_BYTES || strcmp(s->typed, name) == 0)
        return;
    size_t d = limit + 1;
    if (typed >= PREFIX_LEAST && strncasecmp(s->typed, name, typed) == 0)
        d = least(apart, 1);
    else if (apart <= limit)
        d = distance(s->typed, name);
    if (d > limit || (s->n && d > s->distance))
        return;
    s->n = d < s->distance ? 0 : s->n;
    s->distance = d;
    insert(s, name);
}

void suggest_print(const struct suggest *s)
{
    for (size_t i = 0; i < s->n; i++)
        fprintf(stderr, "%s'%s'%s",
                i == 0         ? "Did you mean "
                : i + 1 < s->n ? ", "
                               : " or ",
                s->names[i], i + 1 < s->n ? "" : "?\n");
}

void each_segment_name(struct context *c, void *arg, void (*visit)(void *arg, const char *name))
{
    const struct shmview_stats_options all = {
        .struct_bytes = sizeof all, .limit = SHMVIEW_STATS_ALL, .brief = 1};
    const struct shmview_stats *stats;
    if (shmview_stats_get(c->connection, &all, &stats))
        return;
    for (size_t i = 0; i < stats->n_segments; i++)
        if (stats->segments[i]->is_named)
            visit(arg, stats->segments[i]->name);
    shmview_stats_free(stats);
}

static void offer_to(void *arg, const char *name)
{
    suggest_offer(arg, name);
}

void suggest_segments(struct context *c, const char *typed)
{
    struct suggest s = {.typed = typed};
    each_segment_name(c, &s, offer_to);
    suggest_print(&s);
}
