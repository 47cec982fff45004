/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of segments: create, attach, detach, and what a forked child must do to use one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/error.h"
#include "client/segment/access.h"
#include "client/segment/export.h"
#include "client/segment/own.h"
#include "common/base/name.h"
#include "common/base/util.h"

/* The sizes of struct shmview_create_options in versions that had no member access, label, or
 * placement. */
#define OPTIONS_FIRST_BYTES  offsetof(struct shmview_create_options, access)
#define OPTIONS_SECOND_BYTES offsetof(struct shmview_create_options, label)
#define OPTIONS_THIRD_BYTES  offsetof(struct shmview_create_options, placement)

#define CREATE_FLAGS (SHMVIEW_NO_LOCK | SHMVIEW_POPULATE | SHMVIEW_OWN_MEMORY)

int fail_no_lock(const struct shmview_segment *segment)
{
    if (!segment->connection)
        return fail(SHMVIEW_ERR_NO_LOCK, "foreign memory has no lock");
    return fail(SHMVIEW_ERR_NO_LOCK, "segment '%s' %s", segment->name,
                segment->access == SHMVIEW_PEEK ? "is attached with access peek, which has no lock"
                                                : "was created without a lock");
}

_Static_assert(offsetof(struct shmview_segment, lock) == 0, "as lock_of() has it");

/* Makes a lock usable by this process; lock_enter() calls it if the epoch does not match. The lock
 * is the first member of the segment, so its address is the segment's. */
static int prepare_lock(struct lock *l)
{
    struct shmview_segment *segment = (struct shmview_segment *)(void *)l;
    thread_check_process();
    int r = segment_step_in(segment);
    if (r)
        return r;
    return l->control ? lock_sign(l) : fail_no_lock(segment);
}

static void report_wait(const struct lock *l, uint32_t holder)
{
    connection_report_wait(l->connection, l->attachment, holder);
}

/* --- The handle ---------------------------------------------------------- */

/* Aligned to 64, so that the first members of the lock share one cache line. */
struct shmview_segment *segment_new(struct shmview_connection *connection)
{
    struct shmview_segment *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    if (!s) {
        set_error_text("out of memory");
        return NULL;
    }
    memset(s, 0, sizeof *s);
    s->connection = connection;
    s->change_fd = -1;
    atomic_store(&s->lock.process, process_epoch());
    atomic_store(&s->lock.epoch, NO_LOCK_EPOCH);
    s->lock.connection = connection;
    s->lock.name = s->name;
    s->lock.prepare = prepare_lock;
    s->lock.report_wait = report_wait;
    return s;
}

/* Frees everything except the mappings and the handle itself. */
static void segment_deinit(struct shmview_segment *s)
{
    change_close(s);
    known_deinit(&s->known);
    formats_deinit(&s->formats);
}

static void segment_free(struct shmview_segment *s)
{
    if (s->mapping)
        mappings_release(s->mapping, s->stays_mapped, false);
    segment_deinit(s);
    free(s);
}

/* --- Attaching ----------------------------------------------------------- */

/* Reads the reply to Create or Attach; strings are borrowed from it. The usual reply was read
 * without JSON values already. Returns 0 or an error. */
static int read_attached(const struct reply *reply, struct shmview_description *ret_segment,
                         struct wire_attachment *ret_attachment)
{
    struct wire_fault fault;
    const json_t *p = reply->wire.parameters;
    if (reply->is_attached) {
        *ret_segment = reply->segment;
        *ret_attachment = reply->attachment;
        return 0;
    }
    if (wire_read_attachment(p, "attachment", ret_attachment, &fault))
        *ret_attachment = (struct wire_attachment){0};
    else if (wire_read_segment(p, "segment", ret_segment, &fault) == 0)
        return 0;
    return fail_reply(&fault);
}

/* Fills a new handle from the reply, and takes the text of the layouts from it. If there was no
 * memory for the text, the layouts are requested later. Returns 0 or an error. */
static int take_attachment(struct shmview_segment *s, struct reply *reply,
                           struct wire_attachment *a)
{
    struct shmview_description told;
    int r = read_attached(reply, &told, a);
    s->lock.attachment = a->id;
    if (r)
        return r;
    s->id = (uint64_t)told.id;
    s->size = (uint64_t)told.size;
    s->access = (int)a->access;
    s->is_sealed = told.backing == SHMVIEW_BACKING_SEALED;
    /* Otherwise this is the last attachment, and the segment ends with it; or it would keep another
     * process from freezing the segment. */
    s->stays_mapped = (told.lifetime == SHMVIEW_MANUAL || told.attachments > 1) &&
                      !(s->is_sealed && s->access == SHMVIEW_WRITE);
    placement_take(s, &told);
    s->known.text =
        reply->is_attached ? reply->layouts : wire_attached_layouts(reply->wire.parameters);
    reply->layouts = NULL;
    snprintf(s->name, sizeof s->name, "%s", told.name);
    return 0;
}

/* Marks the lock lost if the daemon does not have the attachment any longer. Between the reply and
 * the entry in the list of locks, another thread may have connected again, and the daemon may have
 * forgotten the attachment. The claim could not mark a handle that was not on the list yet. */
static void check_held(struct shmview_segment *s)
{
    if (s->lock.control && !connection_holds(s->connection, s->lock.attachment))
        lock_lose(&s->lock);
}

void segment_undo(struct shmview_connection *connection, const char *name)
{
    char text[ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", shmview_error_text());
    shmview_remove(connection, name);
    set_error_text("%s", text);
}

int segment_take(struct shmview_segment *s, struct reply *reply, unsigned flags,
                 const char *created)
{
    struct wire_attachment a;
    int r = take_attachment(s, reply, &a);
    if (r == 0)
        r = segment_map(s, &a, &reply->fds, flags);
    if (r) {
        if (created)
            segment_undo(s->connection, created);
        if (reply->held)
            connection_detach(s->connection, reply->held);
        segment_free(s);
        return r;
    }
    connection_count(s->connection, 1);
    lock_enlist(&s->lock);
    check_held(s);
    return 0;
}

/* Makes a handle from the reply to Create or Attach, like segment_take(). r is the result of the
 * call; after an error there is no reply. s is a new handle, which is freed after an error. Returns
 * 0 or an error. */
static int take_reply(struct shmview_segment *s, int r, struct reply *reply, unsigned flags,
                      const char *created, struct shmview_segment **ret_segment)
{
    if (r) {
        free(s);
        return r;
    }
    r = segment_take(s, reply, flags, created);
    reply_deinit(reply);
    if (r == 0)
        *ret_segment = s;
    return r;
}

/* Sends a Create or Attach, and makes a handle from the reply. call is the text of the request; it
 * is new, and stolen. created is the name for a Create, otherwise NULL. Returns 0 or an error. */
static int attach_with(struct shmview_connection *connection, char *call, unsigned flags,
                       const char *created, struct shmview_segment **ret_segment)
{
    struct reply reply;
    NOT_CANCELLED;
    struct shmview_segment *s = segment_new(connection);
    if (!s) {
        free(call);
        return -SHMVIEW_ERR_NO_MEMORY;
    }
    const char *method = created ? "io.shmview.Create" : "io.shmview.Attach";
    int r = connection_call(connection, method, call, &reply);
    return take_reply(s, r, &reply, flags, created, ret_segment);
}

int segment_create(struct shmview_connection *connection, const struct wire_create *create,
                   unsigned flags, struct shmview_segment **ret_segment)
{
    struct reply reply;
    if (create->memory != WIRE_MEMORY_CLIENT || !connection)
        return attach_with(connection, wire_create_text(create), flags, create->name, ret_segment);
    NOT_CANCELLED;
    struct shmview_segment *s = segment_new(connection);
    if (!s)
        return -SHMVIEW_ERR_NO_MEMORY;
    int r = own_create(connection, create, &reply);
    return take_reply(s, r, &reply, flags, create->name, ret_segment);
}

int segment_read_options(const struct shmview_create_options *options, struct wire_create *ret,
                         unsigned *ret_flags)
{
    struct shmview_create_options o = {0};
    if (options && options->struct_bytes != sizeof o &&
        options->struct_bytes != OPTIONS_FIRST_BYTES &&
        options->struct_bytes != OPTIONS_SECOND_BYTES &&
        options->struct_bytes != OPTIONS_THIRD_BYTES)
        return fail(SHMVIEW_ERR_INVALID, "create options of %u bytes; this library knows %zu",
                    options->struct_bytes, sizeof o);
    if (options)
        memcpy(&o, options, options->struct_bytes);
    if (o.lifetime > SHMVIEW_CREATOR || o.flags & ~CREATE_FLAGS ||
        o.backing > SHMVIEW_BACKING_SEALED)
        return fail(SHMVIEW_ERR_INVALID, "create options: lifetime %u, flags 0x%x, backing %u",
                    o.lifetime, o.flags, o.backing);
    if (o.label && !label_is_valid(o.label))
        return fail(SHMVIEW_ERR_INVALID,
                    "create options: a label has 1 to %d bytes of UTF-8 without control characters",
                    LIMIT_LABEL_BYTES);
    bool own = o.flags & SHMVIEW_OWN_MEMORY;
    if (own && o.backing == SHMVIEW_BACKING_FILE)
        return fail(SHMVIEW_ERR_INVALID,
                    "create options: backing file; memory of this process is always sealed");
    *ret_flags = o.flags;
    *ret = (struct wire_create){
        .access = SHMVIEW_WRITE,
        .lifetime = o.lifetime,
        .lock = !(o.flags & SHMVIEW_NO_LOCK),
        .label = o.label,
        .backing = o.backing,
        .memory = own ? WIRE_MEMORY_CLIENT : 0,
        .populate = o.flags & SHMVIEW_POPULATE,
    };
    int r = placement_read(o.placement, ret);
    if (r)
        return r;
    if (own && (ret->huge || ret->numa))
        return fail(
            SHMVIEW_ERR_INVALID,
            "create options: a placement; memory of this process is placed by this process");
    return access_grant(o.access, &ret->grant);
}

int segment_name_create(struct wire_create *create, const char *name, uint64_t size)
{
    int r = check_segment_name(name);
    if (r)
        return r;
    if (size == 0 || size > INT64_MAX)
        return fail(SHMVIEW_ERR_INVALID, "a size of %" PRIu64 " bytes for '%s'", size, name);
    create->name = name;
    create->size = (int64_t)size;
    return 0;
}

int shmview_create(struct shmview_connection *connection, const char *name, uint64_t size,
                   const struct shmview_create_options *options,
                   struct shmview_segment **ret_segment)
{
    struct wire_create create;
    unsigned flags = 0;
    int r = segment_read_options(options, &create, &flags);
    if (r)
        return r;
    r = segment_name_create(&create, name, size);
    if (r == 0)
        r = segment_create(connection, &create, flags, ret_segment);
    free(create.grant.acl);
    return r;
}

int shmview_attach(struct shmview_connection *connection, const char *name, int access,
                   unsigned flags, struct shmview_segment **ret_segment)
{
    int r = check_segment_name(name);
    if (r)
        return r;
    if (!wire_access_name(access) || flags & ~SHMVIEW_POPULATE)
        return fail(SHMVIEW_ERR_INVALID, "access %d, flags 0x%x", access, flags);
    struct wire_attach attach = {.name = name, .access = access, .id = WIRE_ABSENT};
    return attach_with(connection, wire_attach_text(&attach), flags, NULL, ret_segment);
}

int shmview_remove(struct shmview_connection *connection, const char *name)
{
    struct reply reply;
    int r = check_segment_name(name);
    if (r)
        return r;
    r = connection_call(connection, "io.shmview.Remove", wire_remove_text(name), &reply);
    if (r == 0)
        reply_deinit(&reply);
    return r;
}

int shmview_entrust(struct shmview_segment *segment, uint32_t pid)
{
    struct reply reply;
    if (!segment->connection)
        return fail(SHMVIEW_ERR_INVALID, "'%s' is no segment of a daemon", segment->name);
    if (pid == 0 || pid > INT32_MAX)
        return fail(SHMVIEW_ERR_INVALID, "%u is no process", pid);
    const struct wire_entrust entrust = {segment->name, pid};
    int r = connection_call(segment->connection, "io.shmview.Entrust", wire_entrust_text(&entrust),
                            &reply);
    if (r == 0)
        reply_deinit(&reply);
    return r;
}

/* --- Detaching ----------------------------------------------------------- */

void segment_close(struct shmview_segment *segment)
{
    NOT_CANCELLED;
    void (*release)(void *) = segment->release;
    void *arg = segment->release_arg;
    bool mine = lock_is_of_this_process(&segment->lock);
    /* A thread that shares the lock looks at the handle once more when the thread exits. Therefore
     * the handle and the mappings of its lock stay, and they show that the slot is not ours any
     * longer. If the lock was lost, it is only known that some process has shared it. */
    bool stays = mine && lock_may_be_shared(&segment->lock);
    if (segment->connection && !stays)
        lock_delist(&segment->lock);
    if (segment->connection && mine) /* a child must not end the attachment of its ancestor */
        connection_detach(segment->connection, segment->lock.attachment);
    if (segment->connection)
        connection_count(segment->connection, -1);
    if (stays && segment->mapping)
        mappings_release(segment->mapping, false, true);
    if (stays)
        segment_deinit(segment);
    else
        segment_free(segment);
    if (release)
        release(arg);
}

int segment_check_idle(struct shmview_segment *segment)
{
    uint32_t n = atomic_load(&segment->n_buffers) & ~DETACH_LATER;
    if (n)
        return fail(SHMVIEW_ERR_BUSY, "%u buffers of '%s' are still out", n,
                    segment->connection ? segment->name : "foreign memory");
    if (lock_is_of_this_process(&segment->lock) && lock_is_held(&segment->lock))
        return fail(SHMVIEW_ERR_BUSY, "a thread of this process holds the lock of '%s'",
                    segment->name);
    return 0;
}

int shmview_detach(struct shmview_segment *segment)
{
    int r = segment ? segment_check_idle(segment) : 0;
    if (segment && r == 0)
        segment_close(segment);
    return r;
}

int shmview_detach_later(struct shmview_segment *segment)
{
    if (!segment)
        return 0;
    NOT_CANCELLED;
    if (lock_is_of_this_process(&segment->lock))
        lock_give_up(&segment->lock);
    if (atomic_fetch_or(&segment->n_buffers, DETACH_LATER) == 0)
        segment_close(segment);
    return 0;
}

/* --- Buffers ------------------------------------------------------------- */

int segment_hold(struct shmview_segment *segment)
{
    uint32_t n = atomic_load(&segment->n_buffers);
    do {
        if (n & DETACH_LATER)
            return fail(SHMVIEW_ERR_INVALID, "the segment was detached");
        if (n == DETACH_LATER - 1)
            return fail(SHMVIEW_ERR_NO_MEMORY, "%u buffers are out already", n);
    } while (!atomic_compare_exchange_weak(&segment->n_buffers, &n, n + 1));
    return 0;
}

bool segment_drop(struct shmview_segment *segment)
{
    return atomic_fetch_sub(&segment->n_buffers, 1) == (DETACH_LATER | 1);
}

/* --- Fork ---------------------------------------------------------------- */

/* Attaches the segment again in a forked child. The child has inherited the mappings and keeps
 * them; only the slot must be its own, because a shared slot could not show the death of one
 * process. Returns 0 or an error. */
static int attach_again(struct shmview_segment *s, uint32_t epoch)
{
    struct reply reply;
    struct shmview_description told;
    struct wire_attachment a;
    struct wire_attach attach = {.name = s->name, .access = s->access, .id = (int64_t)s->id};
    int r = connection_call(s->connection, "io.shmview.Attach", wire_attach_text(&attach), &reply);
    if (r)
        return r;
    r = read_attached(&reply, &told, &a);
    if (r == 0)
        r = segment_check_attachment(&a, &reply.fds);
    if (r == 0 && (a.slot != WIRE_ABSENT) != (s->lock.control != NULL))
        r = fail(SHMVIEW_ERR_PROTOCOL, "the daemon gave %s slot", s->lock.control ? "no" : "a");
    if (r && reply.held)
        connection_detach(s->connection, reply.held);
    if (r == 0) {
        s->lock.attachment = a.id;
        segment_note_frozen(s, &a, &reply.fds);
        change_close(s); /* the ancestor's */
        pthread_mutex_lock(&process->locks);
        if (s->lock.control)
            lock_take_slot(&s->lock, (uint32_t)a.slot, (uint32_t)a.generation,
                           atomic_load((_Atomic uint32_t *)&s->lock.control->lock));
        atomic_store_explicit(&s->lock.process, epoch, memory_order_release);
        pthread_mutex_unlock(&process->locks);
        check_held(s);
    }
    reply_deinit(&reply);
    return r;
}

/* process->steps lets one thread of the child attach while the others wait for it. A function of
 * shmview_on_wait() that runs while this thread waits for the daemon is refused, because it could
 * wait for itself. */
int segment_step_in(struct shmview_segment *segment)
{
    uint32_t epoch = process_epoch();
    int r = 0;
    NOT_CANCELLED;
    if (!segment->connection ||
        atomic_load_explicit(&segment->lock.process, memory_order_acquire) == epoch)
        return 0;
    if (wait_is_asking())
        return fail(SHMVIEW_ERR_DEADLOCK,
                    "'%s' is not attached by this process yet, and this thread waits for the "
                    "daemon already",
                    segment->name);
    r = wait_for_mutex(&process->steps);
    if (r)
        return r;
    if (atomic_load_explicit(&segment->lock.process, memory_order_relaxed) != epoch)
        r = attach_again(segment, epoch);
    pthread_mutex_unlock(&process->steps);
    return r;
}

/* --- Facts --------------------------------------------------------------- */

const char *shmview_name(const struct shmview_segment *segment)
{
    return segment->name;
}

uint64_t shmview_size(const struct shmview_segment *segment)
{
    return segment->size;
}

int shmview_access(const struct shmview_segment *segment)
{
    return segment->access;
}

void *shmview_data(const struct shmview_segment *segment)
{
    return segment->data;
}
