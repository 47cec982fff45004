/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/stats.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"
#include "common/wire/wire_stats.h"
#include "daemon/base/log.h"
#include "daemon/clients/refusal.h"
#include "daemon/clients/tally.h"
#include "daemon/memory/directory.h"
#include "daemon/segments/look.h"

#define N_TOLD_QUOTAS QUOTA_BUFFERS /* the kinds before it can be configured */

#define TURN_NS 1000000

/* --- A segment ----------------------------------------------------------- */

/* What a reply is made of; strings of parties live here until it is written. */
struct page {
    struct wire_segment_stats *segments;
    size_t n, room;
    struct wire_party *parties;
    char (*commands)[16];
    size_t n_parties;
    int64_t end; /* of the turn */
};

#define PAGE_SEGMENTS 100  /* in one reply */
#define PAGE_PARTIES  1000 /* the same, of all its segments */

static void look_at_party(struct page *page, const struct look *look, bool is_seen,
                          const struct attachment *a, struct wire_party *ret)
{
    struct look_party p = {0};
    if (is_seen && a->slot != SLOT_NONE)
        look_party(look, a, &p);
    memcpy(page->commands[page->n_parties], p.command, sizeof p.command);
    *ret = (struct wire_party){
        .attachment = (int64_t)a->id,
        .pid = a->pid,
        .uid = a->uid,
        .command = p.command[0] ? page->commands[page->n_parties] : NULL,
        .access = a->access,
        .slot = a->slot == SLOT_NONE ? WIRE_ABSENT : a->slot,
        .holds = p.held,
        .waits = p.waits,
        .since_us = p.since_us ? p.since_us : WIRE_ABSENT,
    };
}

/* Those who hold or wait first, then the rest, as far as there is room. */
static void look_at_parties(struct page *page, const struct segment *s, const struct look *look,
                            bool is_seen, struct wire_segment_stats *w)
{
    const struct attachment *a;
    w->attached = &page->parties[page->n_parties];
    for (int pass = 0; s->use && pass < 2; pass++)
        LIST_FOREACH (a, &s->use->attachments, sibling) {
            struct wire_party p;
            if (w->n_attached == LIMIT_STATS_ATTACHED || page->n_parties == PAGE_PARTIES)
                return;
            look_at_party(page, look, is_seen, a, &p);
            if ((p.holds || p.waits) != (pass == 0))
                continue;
            w->attached[w->n_attached++] = p;
            page->n_parties++;
        }
}

static void look_at_object(const struct segment *s, struct wire_segment_stats *w)
{
    struct object object;
    struct statx st;
    segment_object(s, DATA, &object);
    if (statx(directory_fd(), object.name, AT_SYMLINK_NOFOLLOW,
              STATX_BTIME | STATX_BLOCKS | STATX_INO, &st) ||
        st.stx_ino != s->inodes[DATA])
        return;
    w->resident = (int64_t)st.stx_blocks * 512;
    if (st.stx_mask & STATX_BTIME)
        w->created_us = st.stx_btime.tv_sec * 1000000 + st.stx_btime.tv_nsec / 1000;
}

static void look_at_segment(struct page *page, const struct segment *s)
{
    static struct look look;
    struct wire_segment_stats *w = &page->segments[page->n++];
    *w = (struct wire_segment_stats){
        .name = s->name,
        .id = (int64_t)s->id,
        .size = (int64_t)s->size,
        .named = s->named,
        .lock = s->lock,
        .lifetime = s->lifetime,
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
    };
    look_at_object(s, w);
    bool is_seen = look_at_slots(s, s->n_attachments ? s->slots.high : 0, &look) == 0;
    if (is_seen) {
        uint32_t layout = (uint32_t)(look.control.phase >> 32);
        w->generation = (uint32_t)look.control.phase;
        w->changes = look.control.change;
        if (layout > 0 && layout <= s->layouts.n)
            w->layout = s->layouts.list[layout - 1].name;
    }
    if (s->use && s->use->live)
        w->owner_deaths = s->use->live->owner_deaths;
    look_at_parties(page, s, &look, is_seen, w);
}

/* --- The method ---------------------------------------------------------- */

static void fill_page(const struct request *r, const struct wire_stats_call *want,
                      struct page *page, int64_t *ret_next)
{
    const struct registry *registry = &r->state->registry;
    const struct segment *s;
    uint64_t after = (uint64_t)want->after;
    *ret_next = WIRE_ABSENT;
    if (want->n_names) {
        for (size_t i = 0; i < want->n_names; i++)
            if (request_may_see(r, s = registry_find(registry, want->names[i])))
                look_at_segment(page, s);
        return;
    }
    size_t n = want->limit < PAGE_SEGMENTS ? (size_t)want->limit : PAGE_SEGMENTS;
    if (n == 0)
        return;
    for (unsigned i = 1; (s = registry_next(registry, after)); i++) {
        if (page->n == n || (i % 16 == 0 && now_ns() > page->end)) {
            *ret_next = (int64_t)after;
            return;
        }
        after = s->id;
        if (request_may_see(r, s))
            look_at_segment(page, s);
    }
}

static int64_t limit_known(uint64_t limit)
{
    return limit == QUOTA_UNLIMITED ? WIRE_ABSENT : (int64_t)limit;
}

/* Returns how many are in list: of each kind that can be configured. */
static size_t look_at_quotas(const struct state *state, const struct who *who, bool tells_total,
                             struct wire_quota *list)
{
    for (int kind = 0; kind < N_TOLD_QUOTAS; kind++) {
        struct quota_usage u =
            quota_usage(&state->quota, who->uid, who->is_admin, (enum quota_kind)kind);
        list[kind] = (struct wire_quota){
            .what = u.what,
            .used = (int64_t)u.used,
            .limit = limit_known(u.limit),
            .total_used = tells_total ? (int64_t)u.total_used : WIRE_ABSENT,
            .total_limit = tells_total ? limit_known(u.total_limit) : WIRE_ABSENT,
        };
    }
    return N_TOLD_QUOTAS;
}

static struct wire_instance look_at_instance(const struct request *request,
                                             struct wire_refusals *list, struct wire_quota *quotas)
{
    const struct state *state = request->state;
    const struct who *who = &request->who;
    const struct tally *tally = &state->tally;
    bool tells_all = who->is_admin || who->uid == geteuid(); /* how much others have is theirs */
    struct object_space space = object_space();
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t uptime = (now_ns() - tally->started_ns) / 1000;
    struct wire_instance w = {
        .version = SHMVIEW_VERSION,
        .started_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 - uptime,
        .uptime_us = uptime,
        .refusals = list,
        .pid = getpid(),
        .memory_free = (int64_t)(space.free & INT64_MAX),
        .memory_limit = (int64_t)(space.limit & INT64_MAX),
        .quotas = quotas,
    };
    w.n_quotas = look_at_quotas(state, who, tells_all, quotas);
    if (!tells_all) {
        w.starts = w.connections = w.segments = w.attachments = w.allocated = w.removed =
            w.n_created = w.n_attached = w.n_died = w.n_owner_died = w.n_requests = w.n_lost =
                w.n_repaired = w.max_connections = WIRE_ABSENT;
        return w;
    }
    const struct registry *r = &state->registry;
    const uint64_t *counts = r->home.events.counts;
    w.starts = r->home.store ? (int64_t)store_starts(r->home.store) : 1;
    w.connections = tally->n_connections;
    w.max_connections = state->max_connections;
    w.segments = HASH_CNT(by_id, r->by_id);
    w.attachments = r->home.n_attachments;
    w.allocated = (int64_t)r->allocated_bytes;
    w.removed = (int64_t)r->removed_bytes;
    w.n_created = (int64_t)counts[SHMVIEW_EVENT_CREATED];
    w.n_attached = (int64_t)counts[SHMVIEW_EVENT_ATTACHED];
    w.n_died = (int64_t)counts[SHMVIEW_EVENT_DIED];
    w.n_owner_died = (int64_t)counts[SHMVIEW_EVENT_OWNER_DIED];
    w.n_requests = (int64_t)tally->n_requests;
    w.n_lost = (int64_t)counts[SHMVIEW_EVENT_LOST];
    w.n_repaired = (int64_t)r->home.n_repairs;
    for (int error = 1; error < N_REFUSALS; error++)
        if (tally->refusals[error])
            list[w.n_refusals++] = (struct wire_refusals){.error = refusal_name(error),
                                                          .count = (int64_t)tally->refusals[error]};
    return w;
}

void stats_tell(struct request *r, const union wanted *want)
{
    static struct wire_segment_stats segments[PAGE_SEGMENTS];
    static struct wire_party parties[PAGE_PARTIES];
    static char commands[PAGE_PARTIES][16];
    struct wire_refusals list[N_REFUSALS];
    struct wire_quota quotas[N_TOLD_QUOTAS];
    struct page page = {
        .segments = segments, .parties = parties, .commands = commands, .end = now_ns() + TURN_NS};
    struct wire_stats stats = {.instance = look_at_instance(r, list, quotas)};
    fill_page(r, &want->stats, &page, &stats.next);
    free(want->stats.names);
    stats.segments = segments;
    stats.n_segments = page.n;
    size_t n = 0;
    char *text = wire_stats_text(&stats, &n);
    answer_with_text(r->answer, text, n);
}
