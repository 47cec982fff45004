/* SPDX-License-Identifier: Apache-2.0 */
/* All steps can be repeated without harm, and a record is deleted only after everything that it
 * describes is gone. So a daemon that dies in the middle of recovery loses nothing: the next one
 * begins again.
 *
 *   memory of sealed segments -> segments -> attachments -> creators
 *   -> deaths are announced -> unused segments and objects
 *
 * The order matters: a death may end a segment, so it is announced only when all attachments of all
 * segments are known. */
#include "daemon/recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/util.h"
#include "common/json/json_read.h"
#include "daemon/base/log.h"
#include "daemon/clients/instance.h"
#include "daemon/memory/salvage.h"
#include "daemon/memory/sealed.h"
#include "daemon/segments/charge.h"
#include "daemon/segments/events.h"
#include "daemon/segments/segment_repair.h"
#include "daemon/segments/segment_restore.h"
#include "daemon/segments/use.h"

/* Records are copied before they are used, because the store must not be changed while its records
 * are visited. */
struct recovery {
    struct state *state;
    struct store_segment *segments;
    struct store_attachment *attachments;
    /* of the two arrays; capacity is that of the one that is being filled */
    size_t n_segments, n_attachments, capacity;
    struct attachments dead; /* of processes that have ended */
    unsigned n_lost, n_dead; /* segments, attachments */
    int error;               /* 0, or why this daemon cannot start */
};

/* --- Reading the store --------------------------------------------------- */

/* Whether an error means that the object is not the one that was created, and never will be. After
 * any other error a later attempt may succeed: then nothing is given up, and this daemon does not
 * start. */
static bool is_unfit(int error)
{
    static const int unfit[] = {ESTALE, ENOENT, EACCES,  EPERM, ELOOP,
                                ENXIO,  EISDIR, ENOTDIR, EEXIST};
    for (size_t i = 0; i < ARRAY_LEN(unfit); i++)
        if (error == -unfit[i])
            return true;
    return false;
}

/* Makes room for one more element of an array with n. On failure sets r->error. */
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
    struct store_segment unfit = {.id = id}; /* no name marks a bad record */
    r->segments[r->n_segments++] = record ? *record : unfit;
}

static void take_attachment(void *arg, uint64_t id, const struct store_attachment *record)
{
    struct recovery *r = arg;
    uint64_t *last = &r->state->registry.home.last_attachment;
    if (*last < id) /* the clock was set back, or an earlier daemon has given out very many */
        *last = id;
    r->attachments = grow(r, r->attachments, r->n_attachments, sizeof *r->attachments);
    if (r->error)
        return;
    struct store_attachment unfit = {.id = id}; /* no segment has the id 0 */
    r->attachments[r->n_attachments++] = record ? *record : unfit;
}

/* Reads all records. On failure sets r->error. */
static void read_store(struct recovery *r, struct store *store)
{
    int error = store_each_segment(store, take_segment, r);
    r->capacity = 0;
    if (r->error == 0)
        r->error = error;
    if (r->error == 0)
        error = store_each_attachment(store, take_attachment, r);
    if (r->error == 0)
        r->error = error;
}

/* --- Memory that nobody has kept ------------------------------------------ */

/* Notes the objects of sealed segments that are not there. Returns 0 or -ENOMEM. */
static int find_missing(const struct recovery *r, struct salvage *salvage)
{
    int error = 0;
    for (size_t i = 0; i < r->n_segments; i++) {
        const struct store_segment *s = &r->segments[i];
        for (int part = 0; s->flags & STORE_SEALED && part < N_SEGMENT_PARTS && !error; part++)
            if (s->inode[part] && !sealed_has((ino_t)s->inode[part]))
                error = salvage_want(salvage, s->device, s->inode[part]);
    }
    return error;
}

/* Looks for missing memory at the clients that were attached to any segment, because a client may
 * still have a descriptor of it. */
static void salvage_missing(struct recovery *r)
{
    struct salvage salvage = {0};
    r->error = find_missing(r, &salvage);
    for (size_t i = 0; salvage.n_inodes && i < r->n_attachments && r->error == 0; i++)
        r->error = salvage_ask(&salvage, r->attachments[i].holder.pid);
    if (r->error == 0)
        r->error = salvage_run(&salvage);
    salvage_deinit(&salvage);
    if (r->error)
        log_error("the memory of sealed segments cannot be taken from clients now: %s",
                  strerror(-r->error));
}

/* --- Segments ------------------------------------------------------------ */

/* The layouts of one segment while they are read. */
struct layouts_of {
    struct segment *segment;
    const char *fault;
    int error;
};

static int add_layout(struct layouts *layouts, const struct wire_layout *layout)
{
    size_t n;
    CLEANUP_FREE char *text = wire_layout_text(layout, &n);
    return text ? layouts_add(layouts, layout->name, text, n) : -ENOMEM;
}

/* Adds one layout. Indices must have no gaps, because the control object refers to layouts by
 * index: after a bad one all later ones are dropped, too. */
static void take_layout(void *arg, uint32_t index, const char *text)
{
    struct layouts_of *of = arg;
    struct wire_fault fault;
    struct wire_layout layout = {0};
    if (of->fault || of->error)
        return;
    errno = 0;
    json_t *json = json_read(text, strlen(text), true, &fault);
    if (index != of->segment->layouts.n || index >= LIMIT_LAYOUTS || !json ||
        wire_read_layout(json, &layout, &fault) || add_layout(&of->segment->layouts, &layout) < 0)
        of->fault = "a layout";
    if (of->fault && errno == ENOMEM)
        of->error = -ENOMEM;
    free(layout.views);
    json_decref(json);
}

/* Logs and counts a segment that is lost. */
static void lose(struct recovery *r, const struct store_segment *record, const char *what,
                 int error)
{
    bool ended = error == -ENOENT && record->flags & STORE_SEALED;
    const char *why = error == -ESTALE ? "not what was created"
                      : ended          ? "its sealed memory was not kept"
                                       : strerror(-error);
    struct log_event event = {.kind = LOG_SET_ASIDE, .segment = record->name, .reason = why};
    log_event(LOG_WARNING, &event,
              "segment '%s' (id %" PRIu64 ", %" PRIu64 " bytes) is lost: %s: %s", record->name,
              record->id, record->size, what, why);
    r->n_lost++;
}

/* Ends the attachments of a segment that is lost, if its liveness object is not. */
static void end_lost(const struct segment *segment)
{
    struct object object;
    segment_object(segment, LIVENESS, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDWR);
    if (fd >= 0)
        use_end_unknown(fd);
}

/* Logs a failure that may pass: the segment is not given up, and this daemon does not start. */
static void fail(struct recovery *r, const struct store_segment *record, const char *what,
                 int error)
{
    log_error("segment '%s' (id %" PRIu64 ") cannot be taken over now: %s: %s", record->name,
              record->id, what, strerror(-error));
    r->error = error;
}

/* Takes over one segment: its objects, its layouts, and the charge of its owner. */
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
    /* Ids grow, and a name is given again only after a removal. So the earlier segment was removed,
     * and that could not be recorded. */
    struct segment *before =
        record->flags & STORE_NAMED ? registry_find(registry, record->name) : NULL;
    if (before && before->id < record->id)
        registry_unname(registry, before);
    struct segment *s = registry_restore(registry, record);
    if (!s && errno == EEXIST) { /* another record has that name or id */
        lose(r, record, why, -EEXIST);
        store_delete_segment(registry->home.store, record->id);
        return;
    }
    if (!s) {
        fail(r, record, why, -errno);
        return;
    }
    /* the segment has lost its name, but the daemon may have died before it renamed the data */
    int error = s->named ? 0 : segment_rename_data(s);
    if (error == 0 || is_unfit(error))
        error = segment_restore(s, &why);
    if (is_unfit(error)) {
        lose(r, record, why, error);
        end_lost(s);
        registry_remove(registry, s, ACTOR_NONE);
        return;
    }
    if (error == 0) {
        why = "its layouts";
        layouts.segment = s;
        error = store_each_layout(registry->home.store, s->id, take_layout, &layouts);
    }
    if (error == 0)
        error = layouts.error;
    if (error == 0)
        segment_repair(s); /* a failure is ignored: each attach, and a timer, tries again */
    if (error == 0) {
        why = "its owner's quota";
        error = charge_restore(&r->state->quota, s);
    }
    if (error)
        fail(r, record, why, error);
    else if (layouts.fault)
        log_event(
            LOG_WARNING,
            &(struct log_event){.kind = LOG_SET_ASIDE, .segment = s->name, .reason = "layout"},
            "segment '%s': %s is not valid: it and the layouts after it are lost", s->name,
            layouts.fault);
}

/* --- Attachments --------------------------------------------------------- */

/* Returns the client that is the holder, watched from now on, or NULL if its process has ended. If
 * that cannot be decided, returns NULL with *ret_error: a living client that was treated as dead
 * would lose its lock while it writes. */
static struct client *find_holder(struct recovery *r, const struct store_holder *holder,
                                  int *ret_error)
{
    struct client *who = client_find_survivor(&r->state->clients, holder);
    *ret_error = who || errno == ESRCH ? 0 : -errno;
    if (*ret_error)
        log_error("process %u cannot be watched: %s", holder->pid, strerror(-*ret_error));
    return who;
}

/* Takes over one attachment: to its client, or to the list of dead ones. */
static void restore_attachment(struct recovery *r, const struct store_attachment *record)
{
    struct registry *registry = &r->state->registry;
    struct segment *s = registry_find_id(registry, record->segment);
    int error = s ? 0 : -ESTALE;
    if (s && record->slot != UINT32_MAX)
        error = segment_claim_slot(s, record->slot, record->generation);
    if (is_unfit(error)) {
        store_delete_attachment(registry->home.store, record->id); /* its end was announced */
        return;
    }
    struct client *who = error ? NULL : find_holder(r, &record->holder, &error);
    struct quota_user *payer =
        error ? NULL : quota_restore(&r->state->quota, record->uid, QUOTA_ATTACHMENTS, 1);
    if (!payer || !attachment_restore(who ? &who->attachments : &r->dead, s, record, payer)) {
        r->error = error ? error : -ENOMEM;
        log_error("attachment %" PRIu64 " to '%s' cannot be taken over now: %s", record->id,
                  s->name, strerror(-r->error));
    }
    r->n_dead += !who;
}

/* Links segments of lifetime "creator" to the client with which they end. */
static void find_creators(struct recovery *r)
{
    const struct registry *registry = &r->state->registry;
    for (struct segment *s = registry_next(registry, 0); s; s = registry_next(registry, s->id)) {
        if (r->error || s->lifetime != SHMVIEW_CREATOR || !s->named)
            continue;
        struct client *who = find_holder(r, &s->holder, &r->error);
        if (!who)
            continue;
        s->has_creator = true;
        LIST_INSERT_HEAD(&who->created, s, created);
    }
}

/* Goes on where a daemon died while it removed all segments. Their clients may have died since, so
 * this comes before their deaths are announced. */
static void complete_end(struct registry *registry)
{
    uint64_t id = 0;
    for (struct segment *s; (s = registry_next(registry, id));) {
        id = s->id; /* s may be freed */
        if (segment_has_ended(s)) {
            segment_end_attachments(s);
            registry_remove(registry, s, ACTOR_NONE);
        }
    }
}

/* Announces deaths, and removes segments that nothing keeps any longer. */
static void settle(struct recovery *r)
{
    struct registry *registry = &r->state->registry;
    struct attachment *a;
    complete_end(registry);
    while ((a = LIST_FIRST(&r->dead)))
        attachment_died(registry, a);
    uint64_t id = 0;
    for (struct segment *s; (s = registry_next(registry, id));) {
        id = s->id; /* s may be freed */
        segment_restored(s);
        if (s->lifetime == SHMVIEW_CREATOR && s->named && !s->has_creator)
            registry_remove(registry, s, ACTOR_NONE);
        else
            registry_release(registry, s, ACTOR_NONE);
    }
}

/* --- Orphans ------------------------------------------------------------- */

/* Whether an object in the instance's directory belongs to a segment. The inode must agree, too:
 * another file may have the name. */
static bool is_ours(void *arg, const char *name, ino_t inode)
{
    const struct registry *registry = arg;
    if (strcmp(name, INSTANCE_LOCK_OBJECT) == 0)
        return true;
    const struct segment *s = name[0] == '+'
                                  ? registry_find_id(registry, strtoull(name + 1, NULL, 10))
                                  : registry_find(registry, name);
    for (int part = 0; s && part < N_SEGMENT_PARTS; part++)
        if (s->inodes[part] == inode)
            return true;
    return false;
}

/* Clients may still have the segment, if the registry was damaged. */
static void end_unknown(int dir, const char *name)
{
    const char *kind = strrchr(name, '.');
    if (name[0] != '+' || !kind || strcmp(kind, ".liveness") != 0)
        return;
    /* O_NONBLOCK: a lease of a client would delay the start */
    CLEANUP_FD int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        use_end_unknown(fd);
}

static void sweep(struct registry *registry)
{
    for (struct segment *s = registry_next(registry, 0); s; s = registry_next(registry, s->id))
        for (int part = 0; s->sealed && part < N_SEGMENT_PARTS; part++)
            sealed_claim((ino_t)s->inodes[part]);
    unsigned n = object_sweep(is_ours, end_unknown, registry);
    n += sealed_drop_unclaimed(use_end_unknown);
    while (sealed_settle() == SEALED_MORE)
        ; /* a new keeper gets what clients still had */
    if (n)
        log_warning("removed %u objects that belong to no segment", n);
}

/* Adds the event of a restart, for monitors. */
static void tell(const struct recovery *r)
{
    struct event *e =
        events_add(&r->state->registry.home.events, SHMVIEW_EVENT_RECOVERED, NULL, ACTOR_NONE);
    e->segments = registry_count(&r->state->registry);
    e->attachments = (uint32_t)(r->n_attachments - r->n_dead);
    e->deaths = r->n_dead;
    e->lost = r->n_lost;
}

/* Sets the ids from which this daemon counts. Clients keep ids after a daemon whose registry is
 * gone, as after SIGINT, and must not find a later segment or attachment by one of them. So ids
 * begin with the time in microseconds, because no daemon gives one in each of them. */
static void begin_ids(struct registry *registry)
{
    const struct store *store = registry->home.store;
    uint64_t last = store_last_id(store), starts = store_starts(store) << 32;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    registry->last_id = last ? last : now;
    registry->home.last_attachment = starts > now ? starts : now;
    events_init(&registry->home.events, registry->home.last_attachment);
}

int recovery_run(struct state *state)
{
    struct segment_home *home = &state->registry.home;
    struct store *store = home->store;
    struct recovery r = {.state = state};
    LIST_INIT(&r.dead);
    begin_ids(&state->registry);
    r.error = sealed_recover();
    if (r.error)
        log_error("the memory of sealed segments cannot be taken over now: %s", strerror(-r.error));
    if (r.error == 0)
        read_store(&r, store);
    if (r.error == 0)
        salvage_missing(&r);
    for (size_t i = 0; r.error == 0 && i < r.n_segments; i++)
        restore_segment(&r, &r.segments[i]);
    for (size_t i = 0; r.error == 0 && i < r.n_attachments; i++)
        restore_attachment(&r, &r.attachments[i]);
    if (r.error == 0)
        find_creators(&r);
    if (r.error == 0) {
        settle(&r);
        sweep(&state->registry);
        presence_sweep(&state->clients.presence, client_is_known, &state->clients);
        if (store_starts(store) > 1)
            tell(&r);
        if (r.n_segments)
            log_event(LOG_INFO, &(struct log_event){.kind = LOG_TAKE_OVER},
                      "took over %u segments; %u were lost, %u of %zu attachments had died",
                      registry_count(&state->registry), r.n_lost, r.n_dead, r.n_attachments);
    }
    struct attachment *a;
    while ((a = LIST_FIRST(&r.dead))) /* only after an error; settle() has emptied the list */
        attachment_abandon(a);
    free(r.segments);
    free(r.attachments);
    return r.error;
}
