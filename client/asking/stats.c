/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: pages of the daemon, put together. */
#include <stdlib.h>
#include <string.h>

#include <shmview/stats.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "client/base/wait.h"
#include "client/link/call.h"
#include "common/base/util.h"
#include "common/wire/wire_stats.h"

/* What public structs borrow their strings from. */
struct page {
    struct reply reply;
    struct page *next;
};

struct segment_entry {
    struct shmview_segment_stats stats;
    const struct shmview_party_stats **list;
    struct shmview_party_stats *parties;
};

struct box {
    struct shmview_stats stats; /* first: it is what the caller has */
    struct shmview_quota_stats quotas[LIMIT_STATS_QUOTAS];
    const struct shmview_quota_stats *quota_list[LIMIT_STATS_QUOTAS];
    struct shmview_refusal_stats refusals[LIMIT_STATS_REFUSALS];
    const struct shmview_refusal_stats *refusal_list[LIMIT_STATS_REFUSALS];
    struct page *pages;
    struct segment_entry **list; /* its own type; stats.segments points to the same */
    size_t n, room;
};

static int64_t known(int64_t number)
{
    return number == WIRE_ABSENT ? -1 : number;
}

static const char *known_text(const char *text)
{
    return text ? text : "";
}

static void box_free(struct box *box)
{
    for (size_t i = 0; i < box->n; i++) {
        free(box->list[i]->list);
        free(box->list[i]->parties);
        free(box->list[i]);
    }
    for (struct page *p = box->pages, *next; p; p = next) {
        next = p->next;
        reply_deinit(&p->reply);
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

static void fill_quotas(struct box *box, const struct wire_instance *w)
{
    for (size_t i = 0; i < w->n_quotas; i++) {
        const struct wire_quota *q = &w->quotas[i];
        box->quotas[i] = (struct shmview_quota_stats){
            .what = q->what,
            .used = q->used,
            .limit = known(q->limit),
            .total_used = known(q->total_used),
            .total_limit = known(q->total_limit),
        };
        box->quota_list[i] = &box->quotas[i];
    }
    box->stats.quotas = box->quota_list;
    box->stats.n_quotas = w->n_quotas;
}

static void fill_refusals(struct box *box, const struct wire_instance *w)
{
    for (size_t i = 0; i < w->n_refusals; i++) {
        const struct wire_refusals *r = &w->refusals[i];
        box->refusals[i] = (struct shmview_refusal_stats){.error = r->error, .count = r->count};
        box->refusal_list[i] = &box->refusals[i];
    }
    box->stats.refusals = box->refusal_list;
    box->stats.n_refusals = w->n_refusals;
}

static void fill_instance(struct shmview_stats *s, const struct wire_instance *w)
{
    s->version = w->version;
    s->started_us = w->started_us;
    s->uptime_us = w->uptime_us;
    s->starts = known(w->starts);
    s->connections = known(w->connections);
    s->n_all_segments = known(w->segments);
    s->attachments = known(w->attachments);
    s->allocated_bytes = known(w->allocated);
    s->removed_bytes = known(w->removed);
    s->total_created = known(w->n_created);
    s->total_attached = known(w->n_attached);
    s->total_died = known(w->n_died);
    s->total_owner_died = known(w->n_owner_died);
    s->total_requests = known(w->n_requests);
    s->total_lost = known(w->n_lost);
    s->total_repaired = known(w->n_repaired);
    s->pid = w->pid;
    s->memory_free = w->memory_free;
    s->memory_limit = w->memory_limit;
    s->max_connections = known(w->max_connections);
}

static void fill_party(struct shmview_party_stats *p, const struct wire_party *w)
{
    *p = (struct shmview_party_stats){
        .attachment = w->attachment,
        .pid = w->pid,
        .uid = known(w->uid),
        .command = known_text(w->command),
        .access = (uint32_t)w->access,
        .holds = (uint32_t)w->holds,
        .waits = (uint32_t)w->waits,
        .slot = known(w->slot),
        .since_us = known(w->since_us),
    };
}

static struct segment_entry *entry_new(const struct wire_segment_stats *w)
{
    struct segment_entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->parties = calloc(w->n_attached + 1, sizeof *e->parties);
    e->list = calloc(w->n_attached + 1, sizeof *e->list);
    if (!e->parties || !e->list) {
        free(e->parties);
        free(e->list);
        free(e);
        return NULL;
    }
    for (size_t i = 0; i < w->n_attached; i++) {
        fill_party(&e->parties[i], &w->attached[i]);
        e->list[i] = &e->parties[i];
    }
    e->stats = (struct shmview_segment_stats){
        .name = w->name,
        .id = w->id,
        .size = w->size,
        .is_named = w->named,
        .has_lock = w->lock,
        .lifetime = (uint32_t)w->lifetime,
        .owner = w->owner,
        .group = w->group,
        .mode = (uint32_t)w->mode,
        .attachments = w->attachments,
        .layouts = w->layouts,
        .created_us = known(w->created_us),
        .resident = known(w->resident),
        .generation = known(w->generation),
        .layout = known_text(w->layout),
        .changes = known(w->changes),
        .owner_deaths = known(w->owner_deaths),
        .parties = e->list,
        .n_parties = w->n_attached,
    };
    return e;
}

static int add_segments(struct box *box, const struct wire_stats *w)
{
    if (box->n + w->n_segments > box->room) {
        size_t room = (box->n + w->n_segments) * 2;
        struct segment_entry **list = realloc(box->list, room * sizeof *list);
        if (!list)
            return -1;
        box->list = list;
        box->room = room;
    }
    for (size_t i = 0; i < w->n_segments; i++) {
        struct segment_entry *e = entry_new(&w->segments[i]);
        if (!e)
            return -1;
        box->list[box->n++] = e;
    }
    return 0;
}

/* Asks once. The wire structs are gone afterwards, what they borrowed from is kept. */
static int ask(struct shmview_connection *c, const struct wire_stats_call *call, struct box *box,
               int64_t *ret_next)
{
    struct wire_fault fault;
    struct wire_stats w;
    struct page *page = calloc(1, sizeof *page);
    int r = page ? connection_call(c, "io.shmview.Stats", wire_stats_call_text(call), &page->reply)
                 : fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (r) {
        free(page);
        return r;
    }
    page->next = box->pages;
    box->pages = page;
    if (wire_read_stats(page->reply.wire.parameters, &w, &fault))
        r = fail_reply(&fault);
    else if (add_segments(box, &w))
        r = fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (r == 0) {
        fill_instance(&box->stats, &w.instance);
        fill_quotas(box, &w.instance);
        fill_refusals(box, &w.instance);
        *ret_next = w.next;
    }
    wire_stats_deinit(&w);
    return r;
}

/* --- The call ------------------------------------------------------------ */

static int ask_all(struct shmview_connection *c, const struct shmview_stats_options *o,
                   struct box *box)
{
    struct wire_stats_call call = {.after = (int64_t)o->after, .n_names = o->n_names};
    size_t limit = o->n_names ? 0 : o->limit;
    int64_t next;
    int r;
    call.names = calloc(o->n_names + 1, sizeof *call.names);
    if (!call.names)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    memcpy(call.names, o->names, o->n_names * sizeof *call.names);
    do {
        size_t left = limit - box->n;
        call.limit = (int64_t)(left < LIMIT_STATS_PAGE ? left : LIMIT_STATS_PAGE);
        r = ask(c, &call, box, &next);
        call.after = next;
    } while (r == 0 && next != WIRE_ABSENT && box->n < limit);
    if (r == 0 && next != WIRE_ABSENT)
        box->stats.next = (uint64_t)next;
    free(call.names);
    return r;
}

int shmview_stats_get(struct shmview_connection *connection,
                      const struct shmview_stats_options *options,
                      const struct shmview_stats **ret_stats)
{
    static const char *const none[] = {NULL};
    struct shmview_stats_options o = {.struct_bytes = sizeof o};
    if (options && options->struct_bytes < sizeof o)
        return fail(SHMVIEW_ERR_INVALID, "struct_bytes of the options is %u, must be %zu",
                    options->struct_bytes, sizeof o);
    if (options)
        o = *options;
    if (!o.names)
        o.names = none;
    if (o.n_names > LIMIT_NAMES || o.after > INT64_MAX)
        return fail(SHMVIEW_ERR_INVALID, "%zu names, the limit is %d; or after is out of range",
                    o.n_names, LIMIT_NAMES);
    struct box *box = calloc(1, sizeof *box);
    if (!box)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int r = ask_all(connection, &o, box);
    if (r) {
        box_free(box);
        return r;
    }
    /* a pointer to an entry is one to its first member */
    box->stats.segments = (const struct shmview_segment_stats *const *)(void *)box->list;
    box->stats.n_segments = box->n;
    *ret_stats = &box->stats;
    return 0;
}
