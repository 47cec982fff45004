/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/stats.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "common/wire/wire_stats.h"
#include "daemon/base/log.h"
#include "daemon/base/slice.h"
#include "daemon/clients/refusal.h"
#include "daemon/clients/tally.h"
#include "daemon/requests/describe.h"
#include "daemon/segments/control_peek.h"

#define N_TOLD_QUOTAS QUOTA_BUFFERS /* reported: the kinds that the configuration can limit */

#define SLICE_NS       250000
#define SPACE_HOLDS_NS 100000000 /* for the pages of a list after its first one */

/* --- A segment ----------------------------------------------------------- */

/* The segments of one reply and their attachments ("parties"), until the text is written. The
 * arrays are static variables of stats_tell(), because they are too large for the stack. */
struct page {
    struct shmview_segment_stats *segments;
    const struct shmview_segment_stats **segment_list;
    size_t n; /* segments */
    struct shmview_party_stats *parties;
    const struct shmview_party_stats **party_list;
    char (*commands)[16]; /* of the parties, which point to it */
    size_t n_parties;
    bool is_brief; /* without what takes a system call for each segment */
    int64_t end;   /* of the turn, CLOCK_MONOTONIC */
};

#define PAGE_SEGMENTS 100  /* in one reply */
#define PAGE_PARTIES  1000 /* in one reply, of all its segments together */

/* Describes one attachment. peek is a copy of the control object, if is_seen. */
static void add_party(struct page *page, const struct control_peek *peek, bool is_seen,
                      const struct attachment *a, struct shmview_party_stats *ret)
{
    struct peek_party p = {0};
    if (is_seen && a->slot != SLOT_NONE)
        peek_party(peek, a, &p);
    memcpy(page->commands[page->n_parties], p.command, sizeof p.command);
    *ret = (struct shmview_party_stats){
        .attachment = (int64_t)a->id,
        .pid = a->pid,
        .uid = a->uid,
        .command = page->commands[page->n_parties],
        .access = (uint32_t)a->access,
        .slot = a->slot == SLOT_NONE ? WIRE_ABSENT : a->slot,
        .holds = (uint32_t)p.held,
        .waits = (uint32_t)p.waits,
        .since_us = p.since_us ? p.since_us : WIRE_ABSENT,
    };
}

/* Adds the attachments of a segment, as far as there is room. Those that hold the lock or wait for
 * it come first, because people look for these when a lock is stuck. */
static void add_parties(struct page *page, const struct segment *s, const struct control_peek *peek,
                        bool is_seen, struct shmview_segment_stats *w)
{
    const struct attachment *a;
    w->parties = &page->party_list[page->n_parties];
    for (int pass = 0; s->use && pass < 2; pass++)
        LIST_FOREACH (a, &s->use->attachments, sibling) {
            struct shmview_party_stats p;
            if (w->n_parties == LIMIT_STATS_ATTACHED || page->n_parties == PAGE_PARTIES)
                return;
            add_party(page, peek, is_seen, a, &p);
            if ((p.holds || p.waits) != (pass == 0))
                continue;
            page->parties[page->n_parties] = p;
            page->party_list[page->n_parties] = &page->parties[page->n_parties];
            page->n_parties++;
            w->n_parties++;
        }
}

/* Adds the memory and the time of creation of the data object. They stay unknown if another file
 * has its name. */
static void add_object(const struct segment *s, struct shmview_segment_stats *w)
{
    struct object object;
    struct statx st;
    segment_object(s, DATA, &object);
    if (object_statx(&object, STATX_BTIME | STATX_BLOCKS, &st))
        return;
    w->resident = (int64_t)st.stx_blocks * 512;
    if (st.stx_mask & STATX_BTIME)
        w->created_us = st.stx_btime.tv_sec * 1000000 + st.stx_btime.tv_nsec / 1000;
}

/* Adds one segment to the page. Figures from the control object are what clients wrote there. */
static void add_segment(struct page *page, const struct segment *s)
{
    static struct control_peek peek;
    struct shmview_segment_stats *w = &page->segments[page->n];
    page->segment_list[page->n++] = w;
    *w = (struct shmview_segment_stats){
        .name = s->name,
        .id = (int64_t)s->id,
        .size = (int64_t)s->size,
        .is_named = s->named,
        .has_lock = s->lock,
        .lifetime = s->lifetime,
        DESCRIBE_MEMORY(s),
        .owner = s->access->uid,
        .group = s->access->gid,
        .mode = s->access->mode,
        .attachments = s->n_attachments,
        .layouts = (int64_t)s->layouts.n,
        .created_us = WIRE_ABSENT,
        .resident = WIRE_ABSENT,
        .generation = WIRE_ABSENT,
        .changes = WIRE_ABSENT,
        .owner_deaths = WIRE_ABSENT,
        .label = segment_label(s),
    };
    if (!page->is_brief)
        add_object(s, w);
    /* without attachments nobody holds the lock */
    bool is_seen = (s->n_attachments || !page->is_brief) &&
                   control_peek_slots(s, s->n_attachments ? s->slots.high : 0, &peek) == 0;
    if (is_seen) {
        uint32_t layout = (uint32_t)(peek.control.phase >> 32);
        w->generation = (uint32_t)peek.control.phase;
        w->changes = peek.control.change;
        if (layout > 0 && layout <= s->layouts.n)
            w->layout = s->layouts.list[layout - 1].name;
    }
    if (s->use && s->use->live)
        w->owner_deaths = s->use->live->owner_deaths;
    add_parties(page, s, &peek, is_seen, w);
}

/* --- The method ---------------------------------------------------------- */

/* Adds the segments that the client names; or, if it names none, those with an id above want->after
 * until the page is full or the time is over. Leaves out segments that the user may not see.
 * Returns the id after which the next page begins, or WIRE_ABSENT after the last one. */
static uint64_t fill_page(const struct request *r, const struct wire_stats_call *want,
                          struct page *page)
{
    const struct registry *registry = &r->state->registry;
    const struct segment *s;
    uint64_t after = (uint64_t)want->after;
    const uint64_t no_more = (uint64_t)WIRE_ABSENT;
    if (want->n_names) {
        for (size_t i = 0; i < want->n_names; i++)
            if (request_may_see(r, s = registry_find(registry, want->names[i])))
                add_segment(page, s);
        return no_more;
    }
    size_t n = want->limit < PAGE_SEGMENTS ? (size_t)want->limit : PAGE_SEGMENTS;
    if (n == 0)
        return no_more;
    for (unsigned i = 1; (s = registry_next(registry, after)); i++) {
        if (page->n == n || (i % 8 == 0 && now_ns() > page->end))
            return after;
        after = s->id;
        if (request_may_see(r, s))
            add_segment(page, s);
    }
    return no_more;
}

/* Converts a limit for the reply, where an unlimited one is absent. */
static int64_t limit_known(uint64_t limit)
{
    return limit == QUOTA_UNLIMITED ? WIRE_ABSENT : (int64_t)limit;
}

/* Memory for the lists in the figures of the instance. */
struct instance_lists {
    struct shmview_quota_stats quotas[N_TOLD_QUOTAS];
    const struct shmview_quota_stats *quota_list[N_TOLD_QUOTAS];
    struct shmview_refusal_stats refusals[N_REFUSALS];
    const struct shmview_refusal_stats *refusal_list[N_REFUSALS];
};

/* Fills in the quotas of the user, one of each kind that can be configured. The usage of all users
 * together is reported only if tells_total. Returns their number. */
static size_t list_quotas(const struct state *state, const struct who *who, bool tells_total,
                          struct instance_lists *room)
{
    for (int kind = 0; kind < N_TOLD_QUOTAS; kind++) {
        struct quota_usage u =
            quota_usage(&state->quota, who->uid, who->is_admin, (enum quota_kind)kind);
        room->quota_list[kind] = &room->quotas[kind];
        room->quotas[kind] = (struct shmview_quota_stats){
            .what = u.what,
            .used = (int64_t)u.used,
            .limit = limit_known(u.limit),
            .total_used = tells_total ? (int64_t)u.total_used : WIRE_ABSENT,
            .total_limit = tells_total ? limit_known(u.total_limit) : WIRE_ABSENT,
        };
    }
    return N_TOLD_QUOTAS;
}

/* Returns the space for new segments. A page that continues a list has that of a page before it, up
 * to SPACE_HOLDS_NS old: reading files of the kernel for each page would take as long as the page.
 */
static struct object_space space_for(bool continues)
{
    static struct object_space seen;
    static int64_t seen_ns;
    int64_t now = now_ns();
    if (!continues || !seen_ns || now - seen_ns > SPACE_HOLDS_NS) {
        seen = object_space(OBJECT_FILE);
        seen_ns = now;
    }
    return seen;
}

/* Returns the figures of the instance; its lists are in room. */
static struct shmview_stats describe_instance(const struct request *request, bool continues,
                                              struct instance_lists *room)
{
    const struct state *state = request->state;
    const struct who *who = &request->who;
    const struct tally *tally = &state->tally;
    /* what other users have is reported only to administrators and to the daemon's own user */
    bool tells_all = who->is_admin || who->uid == geteuid();
    struct object_space space = space_for(continues);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t uptime = (now_ns() - tally->started_ns) / 1000;
    struct shmview_stats w = {
        .version = SHMVIEW_VERSION,
        .started_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 - uptime,
        .uptime_us = uptime,
        .refusals = room->refusal_list,
        .pid = getpid(),
        .memory_free = (int64_t)(space.free & INT64_MAX),
        .memory_limit = (int64_t)(space.limit & INT64_MAX),
        .quotas = room->quota_list,
    };
    w.n_quotas = list_quotas(state, who, tells_all, room);
    if (!tells_all) {
        w.starts = w.connections = w.n_all_segments = w.attachments = w.allocated_bytes =
            w.removed_bytes = w.total_created = w.total_attached = w.total_died =
                w.total_owner_died = w.total_requests = w.total_lost = w.total_repaired =
                    w.max_connections = w.longest_turn_us = WIRE_ABSENT;
        return w;
    }
    const struct registry *r = &state->registry;
    const uint64_t *counts = r->home.events.counts;
    w.starts = r->home.store ? (int64_t)store_starts(r->home.store) : 1;
    w.connections = tally->n_connections;
    w.max_connections = state->max_connections;
    w.longest_turn_us = (int64_t)(state->meter.longest_ns / 1000);
    w.n_all_segments = registry_count(r);
    w.attachments = r->home.n_attachments;
    w.allocated_bytes = (int64_t)r->allocated_bytes;
    w.removed_bytes = (int64_t)r->removed_bytes;
    w.total_created = (int64_t)counts[SHMVIEW_EVENT_CREATED];
    w.total_attached = (int64_t)counts[SHMVIEW_EVENT_ATTACHED];
    w.total_died = (int64_t)counts[SHMVIEW_EVENT_DIED];
    w.total_owner_died = (int64_t)counts[SHMVIEW_EVENT_OWNER_DIED];
    w.total_requests = (int64_t)tally->n_requests;
    w.total_lost = (int64_t)counts[SHMVIEW_EVENT_LOST];
    w.total_repaired = (int64_t)r->home.n_repairs;
    for (int error = 1; error < N_REFUSALS; error++)
        if (tally->refusals[error]) {
            struct shmview_refusal_stats *refusal = &room->refusals[w.n_refusals];
            *refusal = (struct shmview_refusal_stats){.error = refusal_name(error),
                                                      .count = (int64_t)tally->refusals[error]};
            room->refusal_list[w.n_refusals++] = refusal;
        }
    return w;
}

void stats_tell(struct request *r, const union wanted *want)
{
    static struct shmview_segment_stats segments[PAGE_SEGMENTS];
    static const struct shmview_segment_stats *segment_list[PAGE_SEGMENTS];
    static struct shmview_party_stats parties[PAGE_PARTIES];
    static const struct shmview_party_stats *party_list[PAGE_PARTIES];
    static char commands[PAGE_PARTIES][16];
    struct instance_lists room;
    struct page page = {
        .segments = segments,
        .segment_list = segment_list,
        .parties = parties,
        .party_list = party_list,
        .commands = commands,
        .is_brief = want->stats.detail == WIRE_DETAIL_BRIEF,
        .end = slice_end(SLICE_NS),
    };
    struct shmview_stats stats = describe_instance(r, want->stats.after > 0, &room);
    stats.next = fill_page(r, &want->stats, &page);
    free(want->stats.names);
    stats.segments = segment_list;
    stats.n_segments = page.n;
    size_t n = 0;
    char *text = wire_stats_text(&stats, &n);
    answer_with_text(r->answer, text, n);
}
