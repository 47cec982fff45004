/* SPDX-License-Identifier: Apache-2.0 */
/* shmview_stats_get(): figures of the daemon and its segments.
 *
 * The daemon sends figures in pages of at most LIMIT_STATS_PAGE segments, because it serves nobody
 * else while it collects one. The library requests page after page and joins them to one list.
 * Segments may come and go between two pages. Pages continue after an id, so none is listed twice,
 * and none that stays is missed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/stats.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "client/base/wait.h"
#include "client/link/call.h"
#include "common/base/util.h"
#include "common/wire/wire_stats.h"

/* The size of struct shmview_stats_options in versions that had no member brief. */
#define OPTIONS_FIRST_BYTES offsetof(struct shmview_stats_options, brief)

/* One page: the figures, and the reply or the text from which they borrow strings. */
struct page {
    struct reply reply;
    char *room; /* NULL if the reply has JSON values */
    struct shmview_stats stats;
    struct page *next;
};

/* All figures of one call, freed together. The list points to the segments in the pages. */
struct box {
    struct shmview_stats stats; /* first: the program has its address. Borrows from pages */
    struct page *pages;
    const struct shmview_segment_stats **list; /* of all pages */
    size_t n, room;
};

static void box_free(struct box *box)
{
    for (struct page *p = box->pages, *next; p; p = next) {
        next = p->next;
        wire_stats_deinit(&p->stats);
        reply_deinit(&p->reply);
        free(p->room);
        free(p);
    }
    free(box->list);
    free(box);
}

void shmview_stats_free(const struct shmview_stats *stats)
{
    if (stats)
        box_free((struct box *)(uintptr_t)stats);
}

/* --- One page ------------------------------------------------------------ */

/* Adds the segments of a page to the list, whose room at least doubles. Returns 0 or an error. */
static int add_segments(struct box *box, const struct shmview_stats *page)
{
    size_t n = box->n + page->n_segments;
    if (n > box->room) {
        const struct shmview_segment_stats **list = realloc(box->list, n * 2 * sizeof *list);
        if (!list)
            return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
        box->list = list;
        box->room = n * 2;
    }
    for (size_t i = 0; i < page->n_segments; i++)
        box->list[box->n++] = page->segments[i];
    return 0;
}

/* Reads the reply of a page. Its usual form is scanned, and other JSON is parsed. Returns 0 or an
 * error. */
static int read_page(struct page *page)
{
    struct wire_fault fault;
    CLEANUP_FREE char *text = page->reply.stats;
    size_t n = page->reply.stats_bytes;
    page->reply.stats = NULL;
    page->room = text ? malloc(n + 1) : NULL;
    if (page->room && wire_stats_scan(text, page->room, n + 1, &page->stats))
        return 0;
    if ((text && wire_reply_parse(&page->reply.wire, text, n, &fault)) ||
        wire_read_stats(page->reply.wire.parameters, &page->stats, &fault))
        return fail_reply(&fault);
    return 0;
}

/* Requests one page. The figures of the instance are those of the last page. Returns 0 or an error;
 * the page belongs to the box as soon as it has a reply. */
static int ask(struct shmview_connection *c, const struct wire_stats_call *call, struct box *box)
{
    struct page *page = calloc(1, sizeof *page);
    if (!page)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int r = connection_call(c, "io.shmview.Stats", wire_stats_call_text(call), &page->reply);
    if (r) {
        free(page);
        return r;
    }
    page->next = box->pages;
    box->pages = page;
    r = read_page(page);
    if (r)
        return r;
    box->stats = page->stats;
    return add_segments(box, &page->stats);
}

/* --- The call ------------------------------------------------------------ */

/* Requests page after page, until the last one or until limit is reached. A request with names has
 * one page. Returns 0 or an error. */
static int ask_all(struct shmview_connection *c, const struct shmview_stats_options *o,
                   struct box *box)
{
    struct wire_stats_call call = {
        .names = (const char **)(uintptr_t)o->names,
        .n_names = o->n_names,
        .after = (int64_t)o->after,
        .detail = o->brief ? WIRE_DETAIL_BRIEF : 0,
    };
    size_t limit = o->n_names ? 0 : o->limit;
    int r;
    do {
        size_t left = limit - box->n;
        call.limit = (int64_t)(left < LIMIT_STATS_PAGE ? left : LIMIT_STATS_PAGE);
        r = ask(c, &call, box);
        if (r == 0 && box->stats.next && box->stats.next <= (uint64_t)call.after)
            r = fail(SHMVIEW_ERR_PROTOCOL,
                     "the daemon's reply: next is %" PRIu64 " on a page after %" PRId64,
                     box->stats.next, call.after);
        call.after = (int64_t)box->stats.next;
    } while (r == 0 && box->stats.next && box->n < limit);
    box->stats.segments = box->list;
    box->stats.n_segments = box->n;
    return r;
}

int shmview_stats_get(struct shmview_connection *connection,
                      const struct shmview_stats_options *options,
                      const struct shmview_stats **ret_stats)
{
    struct shmview_stats_options o = {.struct_bytes = sizeof o};
    if (options && options->struct_bytes < OPTIONS_FIRST_BYTES)
        return fail(SHMVIEW_ERR_INVALID, "struct_bytes of the options is %u, must be %zu",
                    options->struct_bytes, sizeof o);
    if (options)
        memcpy(&o, options, options->struct_bytes < sizeof o ? options->struct_bytes : sizeof o);
    if (o.brief > 1 || o.reserved)
        return fail(SHMVIEW_ERR_INVALID, "brief is %u, must be 0 or 1; or reserved is not 0",
                    o.brief);
    if (o.n_names > LIMIT_NAMES || o.after > INT64_MAX)
        return fail(SHMVIEW_ERR_INVALID, "%zu names, the limit is %d; or after is out of range",
                    o.n_names, LIMIT_NAMES);
    for (size_t i = 0; i < o.n_names; i++)
        if (!o.names[i])
            return fail(SHMVIEW_ERR_INVALID, "names[%zu] is NULL", i);
    struct box *box = calloc(1, sizeof *box);
    if (!box)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int r = ask_all(connection, &o, box);
    if (r) {
        box_free(box);
        return r;
    }
    *ret_stats = &box->stats;
    return 0;
}
