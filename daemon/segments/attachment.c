/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that is killed in the middle of one of these functions must not lose an attachment.
 * Therefore an attachment gets its slot before its record, and loses the slot before the record is
 * deleted. A slot without a record is announced as dead by the next daemon. A record whose slot is
 * dead is deleted by the next daemon. */
#include "daemon/segments/attachment.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <shmview/freeze.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/rights/quota.h"
#include "daemon/segments/control_peek.h"
#include "daemon/segments/events.h"
#include "daemon/segments/frozen.h"
#include "daemon/segments/phases.h"
#include "daemon/segments/ringing.h"
#include "daemon/segments/stream_peek.h"

static void insert(struct attachments *list, struct attachment *a)
{
    a->of = list;
    LIST_INSERT_HEAD(list, a, link);
    list->n++;
}

/* Sets all members of *a from the record, and adds it to its lists. */
static void fill(struct attachment *a, struct attachments *list, struct segment *segment,
                 const struct store_attachment *record, struct quota_user *payer)
{
    *a = (struct attachment){
        .id = record->id,
        .segment = segment,
        .access = record->access,
        .slot = record->slot,
        .generation = record->generation,
        .pid = (pid_t)record->holder.pid,
        .uid = record->uid,
        .holder = record->holder,
        .payer = payer,
        .watch = {-1, -1},
    };
    insert(list, a);
    table_add(&segment->home->attachments, &a->by_id, table_hash_number(a->id));
    LIST_INSERT_HEAD(&segment->use->attachments, a, sibling);
    segment->home->n_attachments++;
}

int attachment_new(struct attachments *list, struct segment *segment, int64_t access,
                   const struct store_holder *holder, struct quota_user *payer,
                   struct attachment **ret, struct segment_grip *ret_grip)
{
    struct segment_grip grip;
    struct attachment *a = malloc(sizeof *a);
    phases_note(segment); /* before the client can switch, so that its first switch is noticed */
    int r = a ? segment_attach(segment, access, &grip) : -ENOMEM;
    if (r) {
        free(a);
        quota_refund(payer, QUOTA_ATTACHMENTS, 1);
        return r;
    }
    struct store_attachment record = {
        .id = ++segment->home->last_attachment,
        .segment = segment->id,
        .holder = *holder,
        .access = (uint32_t)access,
        .slot = grip.slot,
        .generation = grip.generation,
        .uid = holder->uid,
    };
    fill(a, list, segment, &record, payer);
    r = store_put_attachment(segment->home->store, &record);
    if (r) {
        attachment_cancel(a);
        return r;
    }
    *ret = a;
    *ret_grip = grip;
    return 0;
}

struct attachment *attachment_restore(struct attachments *list, struct segment *segment,
                                      const struct store_attachment *record,
                                      struct quota_user *payer)
{
    struct attachment *a = malloc(sizeof *a);
    if (!a || segment_restore_attachment(segment)) {
        free(a);
        quota_refund(payer, QUOTA_ATTACHMENTS, 1);
        return NULL;
    }
    fill(a, list, segment, record, payer);
    /* the earlier daemon ended before the client, which has frozen the segment, could report it */
    if (a->access == SHMVIEW_WRITE && segment_frozen(segment) == SHMVIEW_FROZEN_ALL)
        attachment_become_reader(a);
    return a;
}

void attachment_become_reader(struct attachment *attachment)
{
    struct attachment *a = attachment;
    struct store_attachment record = {
        .id = a->id,
        .segment = a->segment->id,
        .holder = a->holder,
        .access = SHMVIEW_READ,
        .slot = a->slot,
        .generation = a->generation,
        .uid = a->uid,
    };
    int r = store_put_attachment(a->segment->home->store, &record);
    if (r)
        log_error("the access of an attachment to '%s' cannot be recorded: %s", a->segment->name,
                  strerror(-r));
    a->access = SHMVIEW_READ;
}

/* --- Watching ------------------------------------------------------------ */

/* Ends watching. Does not publish the new number of watchers, because the caller may be about to
 * free the segment. */
static void unwatch(struct attachment *attachment)
{
    if (attachment->watch[0] < 0)
        return;
    LIST_REMOVE(attachment, watcher);
    close_fdp(&attachment->watch[0]);
    close_fdp(&attachment->watch[1]);
    if (--attachment->segment->use->n_watches == 0)
        ringing_cancel(attachment->segment->use);
    quota_refund(attachment->payer, QUOTA_WATCHES, 1);
    attachment->segment->home->n_watches--;
}

/* A client that has not read the last ring will see this change too. Which clients those are, one
 * poll() of the clients' ends finds out for all of them. */
void attachment_ring(const struct segment *segment)
{
    static const uint64_t one = 1;
    struct pollfd ends[LIMIT_WATCHES];
    int to[LIMIT_WATCHES];
    nfds_t n = 0;
    const struct attachment *a;
    LIST_FOREACH (a, &segment->use->watchers, watcher) {
        ends[n] = (struct pollfd){.fd = a->watch[0], .events = POLLIN};
        to[n++] = a->watch[1];
    }
    if (n)
        poll(ends, n, 0); /* if it fails, all revents are still 0, and all clients are rung */
    for (nfds_t i = 0; i < n; i++)
        if (!(ends[i].revents & POLLIN))
            send(to[i], &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Whether the attachment may watch. A user gets a share of the last watches of the segment and of
 * the daemon (quota_in_share()). Root and the daemon's own user may take all watches of one
 * segment, but have only their share of those of the daemon. */
static bool may_watch(const struct attachment *attachment)
{
    const struct segment_use *use = attachment->segment->use;
    const struct segment_home *home = attachment->segment->home;
    const struct attachment *a;
    uint64_t his = 0, of_all = attachment->payer ? attachment->payer->used[QUOTA_WATCHES] : 0;
    bool is_trusted = attachment->uid == 0 || attachment->uid == geteuid();
    LIST_FOREACH (a, &use->watchers, watcher)
        his += !is_trusted && a->uid == attachment->uid;
    return use->n_watches < LIMIT_WATCHES &&
           quota_in_share(of_all, home->n_watches, home->max_watches) &&
           (is_trusted || quota_in_share(his, use->n_watches, LIMIT_WATCHES));
}

int attachment_watch(struct attachment *attachment, int *ret_fd)
{
    struct segment *s = attachment->segment;
    if (attachment->slot == SLOT_NONE)
        return -ENOLCK;
    if (attachment->watch[0] < 0) {
        if (!may_watch(attachment))
            return -EDQUOT;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, attachment->watch)) {
            attachment->watch[0] = attachment->watch[1] = -1;
            return -errno;
        }
        /* The client can send nothing here, in particular no descriptor, which unwatch() would then
         * close: the last close may block for as long as the client likes (stray.h). */
        shutdown(attachment->watch[1], SHUT_RD);
        LIST_INSERT_HEAD(&s->use->watchers, attachment, watcher);
        s->use->n_watches++;
        s->home->n_watches++;
        if (attachment->payer) /* may_watch() has compared with the limits */
            quota_restore(attachment->payer->quota, attachment->payer->uid, QUOTA_WATCHES, 1);
        segment_watches_changed(s);
    }
    *ret_fd = attachment->watch[0];
    return 0;
}

/* --- The end ------------------------------------------------------------- */

/* Takes the attachment out of the list of its client or departure. */
static void take_out(struct attachment *a)
{
    LIST_REMOVE(a, link);
    if (a->of)
        a->of->n--;
}

/* Takes the attachment out of the table and its lists, except that of watchers. */
static void forget(struct attachment *a)
{
    struct segment_home *home = a->segment->home;
    if (a->segment->use->freezer == a)
        a->segment->use->freezer = NULL;
    table_remove(&home->attachments, &a->by_id);
    take_out(a);
    LIST_REMOVE(a, sibling);
    home->n_attachments--;
}

void attachment_abandon(struct attachment *attachment)
{
    forget(attachment);
    unwatch(attachment);
    segment_abandon_attachment(attachment->segment);
    quota_refund(attachment->payer, QUOTA_ATTACHMENTS, 1);
    free(attachment);
}

void attachment_cancel(struct attachment *attachment)
{
    struct segment *s = attachment->segment;
    forget(attachment);
    if (attachment->watch[0] >= 0) {
        unwatch(attachment);
        segment_watches_changed(s);
    }
    /* the client may have died after it made a change and before it rang for it */
    attachment_ring(s);
    segment_detach(s, attachment->slot);
    /* After the slot: if the daemon dies before this, the next one finds the slot dead and deletes
     * the record. */
    int r = store_delete_attachment(s->home->store, attachment->id);
    if (r)
        log_error("the record of an attachment to '%s' cannot be deleted: %s", s->name,
                  strerror(-r));
    quota_refund(attachment->payer, QUOTA_ATTACHMENTS, 1);
    free(attachment);
}

static struct actor client_of(const struct attachment *a)
{
    return (struct actor){.pid = a->pid, .uid = a->uid};
}

void attachment_end(struct registry *registry, struct attachment *attachment)
{
    struct segment *s = attachment->segment;
    struct actor by = client_of(attachment);
    attachment_cancel(attachment);
    registry_release(registry, s, by);
}

/* Adds an event about the end of an attachment. */
static struct event *tell_end(enum shmview_event_kind kind, const struct attachment *a,
                              const struct peek_party *party)
{
    struct event *e = events_add(&a->segment->home->events, kind, a->segment, client_of(a));
    e->attachment = a->id;
    e->access = (uint8_t)a->access;
    e->slot = a->slot;
    e->held = (uint8_t)party->held;
    memcpy(e->command, party->command, sizeof e->command);
    return e;
}

/* Adds the event `detached`. */
static void announce_detached(const struct attachment *attachment)
{
    if (attachment->announced) /* the process died after it had asked for this */
        return;
    phases_note(attachment->segment);
    struct event *e = tell_end(SHMVIEW_EVENT_DETACHED, attachment, &(struct peek_party){0});
    stream_peek_event(attachment->segment, e);
}

void attachment_retract(struct attachment *attachment)
{
    announce_detached(attachment);
    attachment_cancel(attachment);
}

void attachment_detached(struct registry *registry, struct attachment *attachment)
{
    announce_detached(attachment);
    attachment_end(registry, attachment);
}

/* Adds the events for the death of a client, and logs a death inside the lock. party is what the
 * client held, and stream what it did with a stream. */
static void tell_death(const struct attachment *attachment, const struct peek_party *party,
                       const struct stream_peek *stream)
{
    const struct segment *s = attachment->segment;
    stream_peek_note(stream, tell_end(SHMVIEW_EVENT_DIED, attachment, party));
    if (!party->inside)
        return;
    stream_peek_note(stream, tell_end(SHMVIEW_EVENT_OWNER_DIED, attachment, party));
    log_event(LOG_NOTICE,
              &(struct log_event){.kind = LOG_OWNER_DIED,
                                  .segment = s->name,
                                  .has_uid = true,
                                  .uid = attachment->uid,
                                  .pid = attachment->pid},
              "segment '%s': pid %d (%s) died while it held the lock", s->name, attachment->pid,
              party->command);
}

void attachment_announce(struct attachment *attachment)
{
    static struct control_peek seen; /* 130 KB: too large for the stack */
    struct peek_party party = {0};
    struct stream_peek stream = {0};
    struct segment *s = attachment->segment;
    if (attachment->announced)
        return;
    /* Look before the slot is marked as dead, because another client may take the lock, or write
     * the stream, after that. */
    if (attachment->slot == SLOT_NONE) {
        stream_peek(s, &stream);
    } else if (control_peek_slot(attachment, &seen) == 0) {
        peek_party(&seen, attachment, &party);
        stream_peek_party(attachment, &seen, &stream);
    }
    /* This also holds for a client that unlocked with "not repaired" and holds nothing now. The
     * next owner will ask which client it was, and by then another one may have the slot. */
    if (party.left_inside)
        segment_note_owner(s, attachment->generation << SHMVIEW_SLOT_BITS | attachment->slot,
                           attachment->pid, party.command);
    if (party.inside && !attachment->unclaimed)
        segment_owner_died(s);
    phases_note(s); /* before the next owner can switch */
    /* Waiters need nothing of what comes after the mark, and it takes longer. */
    if (attachment->slot != SLOT_NONE) {
        segment_give_slot(s, attachment->slot);
        attachment_ring(s);
    }
    if (attachment->unclaimed)
        tell_end(SHMVIEW_EVENT_DETACHED, attachment, &(struct peek_party){0});
    else
        tell_death(attachment, &party, &stream);
    attachment->announced = true;
    attachment->slot = SLOT_NONE;
}

void attachments_announce_first(const struct attachments *list)
{
    struct attachment *a = LIST_FIRST(list);
    for (unsigned n = 0; a && n < ANNOUNCED_FIRST; n++, a = LIST_NEXT(a, link))
        attachment_announce(a);
}

void attachment_died(struct registry *registry, struct attachment *attachment)
{
    attachment_announce(attachment);
    attachment_end(registry, attachment);
}

/* --- Finding ------------------------------------------------------------- */

void attachment_move(struct attachments *to, struct attachment *attachment)
{
    take_out(attachment);
    insert(to, attachment);
}

struct attachment *attachment_find(const struct attachments *list, uint64_t id)
{
    const struct attachment *any = LIST_FIRST(list); /* which leads to the table of all */
    struct table_link *l =
        any ? table_first(&any->segment->home->attachments, table_hash_number(id)) : NULL;
    for (; l; l = table_next(l)) {
        struct attachment *a = CONTAINER_OF(l, struct attachment, by_id);
        if (a->id == id)
            return a->of == list ? a : NULL;
    }
    return NULL;
}

const struct attachment *attachment_of_holder(const struct segment *segment, uint64_t id)
{
    const struct attachment *a;
    if (!segment->use || id > SHMVIEW_LOCK_OWNER)
        return NULL;
    LIST_FOREACH (a, &segment->use->attachments, sibling)
        if (a->slot == (id & SHMVIEW_SLOT_MASK) && a->generation == id >> SHMVIEW_SLOT_BITS)
            return a;
    return NULL;
}

struct attachment *attachment_find_writer(const struct attachments *list,
                                          const struct segment *segment)
{
    struct attachment *a;
    LIST_FOREACH (a, list, link)
        if (a->segment == segment && a->access == SHMVIEW_WRITE)
            return a;
    return NULL;
}
