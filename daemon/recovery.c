/* SPDX-License-Identifier: Apache-2.0 */
/* In an order such that a daemon that dies in the middle can begin again: records go last,
 * and nothing that is done twice does harm. */
#include "daemon/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/events.h"
#include "daemon/grants.h"
#include "daemon/log.h"
#include "daemon/segment_restore.h"

struct recovery {
    struct state *state;
    struct store_segment *segments;
    struct store_attachment *attachments;
    size_t n_segments, n_attachments, capacity;
    struct attachments dead; /* of processes that are no more */
    unsigned n_lost, n_dead;
    int error;
};

/* --- Reading the store --------------------------------------------------- */

static void *grow(struct recovery *r, void *array, size_t n, size_t bytes)
{
    if (n < r->capacity)
        return array;
    r->capacity = r->capacity ? r->capacity * 2 : 64;
    void *p = realloc(array, r->capacity * bytes);
    if (!p) {
        r->error = -ENOMEM;
        r->capacity = n;
        return array;
    }
    return p;
}

static void take_segment(void *arg, uint64_t id, const struct store_segment *record)
{
    struct recovery *r = arg;
    r->segments = grow(r, r->segments, r->n_segments, sizeof *r->segments);
    if (r->error)
        return;
    struct store_segment unfit = {.id = id}; /* no name: it does not fit */
    r->segments[r->n_segments++] = record ? *record : unfit;
}

static void take_attachment(void *arg, uint64_t id, const struct store_attachment *record)
{
    struct recovery *r = arg;
    r->attachments = grow(r, r->attachments, r->n_attachments, sizeof *r->attachments);
    if (r->error)
        return;
    struct store_attachment unfit = {.id = id}; /* of no segment */
    r->attachments[r->n_attachments++] = record ? *record : unfit;
}

/* --- Segments ------------------------------------------------------------ */

struct layouts_of {
    struct segment *segment;
    const char *fault;
};

static void take_layout(void *arg, uint32_t index, const char *text)
{
    struct layouts_of *of = arg;
    struct wire_fault fault;
    struct wire_layout *list = NULL;
    size_t n = 0;
    if (of->fault)
        return;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (index != of->segment->layouts.n || wire_read_layouts(json, "layouts", &list, &n, &fault) ||
        n != 1 || layouts_add(&of->segment->layouts, &list[0]) < 0)
        of->fault = "a layout";
    wire_layouts_free(list, n);
    json_decref(json);
}

static void lose(struct recovery *r, const struct store_segment *record, const char *what,
                 int error)
{
    const char *why = error == -ESTALE ? "not what was created" : strerror(-error);
    struct log_event event = {.kind = LOG_SET_ASIDE, .segment = record->name, .reason = why};
    log_event(LOG_WARNING, &event,
              "segment '%s' (id %" PRIu64 ", %" PRIu64 " bytes) is lost: %s: %s", record->name,
              record->id, record->size, what, why);
    r->n_lost++;
}

static void restore_segment(struct recovery *r, const struct store_segment *record)
{
    struct registry *registry = &r->state->registry;
    const char *why = "its record";
    struct layouts_of layouts = {0};
    if (!record->name[0]) {
        lose(r, record, why, -ESTALE);
        store_delete_segment(registry->home.store, record->id);
        return;
    }
    struct segment *s = registry_restore(registry, record);
    if (!s) {
        int error = -errno;
        lose(r, record, why, error);
        if (error == -EEXIST) /* there is another of that name or id */
            store_delete_segment(registry->home.store, record->id);
        return;
    }
    if (!s->named)
        segment_rename_data(s); /* it may still have the name that the segment has lost */
    int error = segment_restore(s, &why);
    if (error) {
        lose(r, record, why, error);
        registry_remove(registry, s);
        return;
    }
    grants_restore(&r->state->quota, s);
    layouts.segment = s;
    store_each_layout(registry->home.store, s->id, take_layout, &layouts);
    if (layouts.fault)
        log_event(
            LOG_WARNING,
            &(struct log_event){.kind = LOG_SET_ASIDE, .segment = s->name, .reason = "layout"},
            "segment '%s': %s does not fit: it and those after it are lost", s->name,
            layouts.fault);
}

/* --- Attachments --------------------------------------------------------- */

static void restore_attachment(struct recovery *r, const struct store_attachment *record)
{
    struct registry *registry = &r->state->registry;
    struct segment *s = registry_find_id(registry, record->segment);
    if (!s ||
        (record->slot != UINT32_MAX && !segment_claim_slot(s, record->slot, record->generation))) {
        store_delete_attachment(registry->home.store, record->id); /* its end was announced */
        return;
    }
    struct survivor *who = survivor_find(r->state, &record->holder);
    if (!who && errno != ESRCH)
        log_error("process %u cannot be watched: %s", record->holder.pid, strerror(errno));
    struct attachment *a = attachment_restore(who ? &who->attachments : &r->dead, s, record);
    if (!a) {
        r->error = -ENOMEM;
        return;
    }
    a->payer = quota_restore(&r->state->quota, record->uid, QUOTA_ATTACHMENTS, 1);
    r->n_dead += !who;
}

/* Gives a segment of lifetime "creator" to the one it goes with. */
static bool find_creator(struct recovery *r, struct segment *s)
{
    struct survivor *who = survivor_find(r->state, &s->holder);
    if (!who)
        return false;
    s->has_creator = true;
    LIST_INSERT_HEAD(&who->created, s, created);
    return true;
}

static void settle(struct recovery *r)
{
    struct registry *registry = &r->state->registry;
    struct segment *s, *next;
    struct attachment *a;
    while ((a = LIST_FIRST(&r->dead)))
        attachment_died(registry, a);
    HASH_ITER (by_id, registry->by_id, s, next) {
        segment_restored(s);
        if (s->lifetime == SHMVIEW_CREATOR && s->named && !find_creator(r, s))
            registry_remove(registry, s);
        else
            registry_release(registry, s);
    }
}

/* --- Orphans ------------------------------------------------------------- */

static bool is_ours(void *arg, const char *name, ino_t inode)
{
    const struct registry *registry = arg;
    const char *rest = name + strlen("shmview.") + strlen(registry->home.instance);
    const struct segment *s = NULL;
    if (strcmp(rest, "+daemon") == 0) /* the instance's lock */
        return true;
    char segment_name[LIMIT_NAME_BYTES + 1];
    if (*rest == '.') {
        /* what follows a "~" is a suffix */
        snprintf(segment_name, sizeof segment_name, "%.*s", (int)strcspn(rest + 1, "~"), rest + 1);
        s = registry_find(registry, segment_name);
    } else if (*rest == '+') {
        s = registry_find_id(registry, strtoull(rest + 1, NULL, 10));
    } else {
        return true; /* of an instance whose name begins with ours */
    }
    for (int part = 0; s && part < N_SEGMENT_PARTS; part++)
        if (s->inodes[part] == inode)
            return true;
    return false;
}

static void sweep(struct registry *registry)
{
    char prefix[80];
    snprintf(prefix, sizeof prefix, "shmview.%s", registry->home.instance);
    unsigned n = object_sweep(prefix, is_ours, registry);
    if (n)
        log_warning("removed %u objects that belong to no segment", n);
}

static void tell(const struct recovery *r)
{
    struct event *e = events_add(EVENT_RECOVERED, NULL);
    e->segments = HASH_CNT(by_id, r->state->registry.by_id);
    e->attachments = (uint32_t)(r->n_attachments - r->n_dead);
    e->deaths = r->n_dead;
    e->lost = r->n_lost;
}

int recovery_run(struct state *state)
{
    struct store *store = state->registry.home.store;
    struct recovery r = {.state = state};
    LIST_INIT(&r.dead);
    state->registry.last_id = store_last_id(store);
    events_init(store_starts(store) << 32);
    attachment_ids_above(store_starts(store) << 32);
    r.error = store_each_segment(store, take_segment, &r);
    for (size_t i = 0; r.error == 0 && i < r.n_segments; i++)
        restore_segment(&r, &r.segments[i]);
    r.capacity = 0;
    if (r.error == 0)
        r.error = store_each_attachment(store, take_attachment, &r);
    for (size_t i = 0; r.error == 0 && i < r.n_attachments; i++)
        restore_attachment(&r, &r.attachments[i]);
    if (r.error == 0) {
        settle(&r);
        sweep(&state->registry);
        if (store_starts(store) > 1)
            tell(&r);
        if (r.n_segments)
            log_event(LOG_INFO, &(struct log_event){.kind = LOG_TAKE_OVER},
                      "took over %u segments; %u were lost, %u of %zu attachments had died",
                      HASH_CNT(by_id, state->registry.by_id), r.n_lost, r.n_dead, r.n_attachments);
    }
    free(r.segments);
    free(r.attachments);
    return r.error;
}
