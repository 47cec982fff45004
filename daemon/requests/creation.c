/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/creation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/name.h"
#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/clients/refusal.h"
#include "daemon/clients/tally.h"
#include "daemon/memory/directory.h"
#include "daemon/requests/declared.h"
#include "daemon/requests/departure.h"
#include "daemon/requests/grants.h"
#include "daemon/segments/events.h"
#include "daemon/segments/look.h"
#include "daemon/segments/use.h"

/* Committed on the loop: some 50 us, a few requests' worth. */
#define SMALL_BYTES ((uint64_t)128 << 10)

struct job {
    struct task task;
    struct state *state;
    struct connection *connection;         /* NULL: gone, or nobody */
    const struct config_segment *declared; /* NULL: a client's */
    struct segment *segment;
    int64_t access;
    atomic_bool cancel;
    uint64_t committed; /* bytes */
    int result;
    struct object_space space;
};

/* --- Attaching ----------------------------------------------------------- */

/* room is what ret_grant borrows. */
static struct wire_segment tell_segment(const struct segment *s, struct wire_acl_entry *room,
                                        struct wire_grant *ret_grant)
{
    access_tell(s->access, room, ret_grant);
    return (struct wire_segment){
        .name = s->name,
        .id = (int64_t)s->id,
        .size = (int64_t)s->size,
        .owner = ret_grant->owner,
        .group = ret_grant->group,
        .mode = ret_grant->mode,
        .attachments = s->n_attachments,
        .lifetime = s->lifetime,
        .lock = s->lock,
    };
}

json_t *creation_describe(const struct segment *s)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    struct wire_segment told = tell_segment(s, room, &grant);
    return wire_write_segment(&told, grant.acl, grant.n_acl);
}

void creation_list(const struct segment *s, struct json_text *text)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    struct wire_segment told = tell_segment(s, room, &grant);
    wire_add_segment(text, &told, grant.acl, grant.n_acl);
}

void creation_describe_all(const struct segment *s, struct answer *answer)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    size_t n = 0;
    struct wire_text layouts = layouts_text(&s->layouts);
    struct wire_segment told = tell_segment(s, room, &grant);
    char *text = wire_described_text(&told, grant.acl, grant.n_acl, &layouts, &n);
    answer_with_text(answer, text, n);
}

static void answer_attached(const struct segment *segment, const struct wire_attachment *attachment,
                            struct answer *answer)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    size_t n = 0;
    struct wire_segment told = tell_segment(segment, room, &grant);
    struct wire_text layouts = layouts_text(&segment->layouts);
    char *text = wire_attached_text(&told, grant.acl, grant.n_acl, attachment, &layouts, &n);
    answer_with_text(answer, text, n);
}

/* Of the client that is at work; NULL: the daemon itself. */
static struct event *tell(enum wire_event_kind kind, const struct segment *segment,
                          const struct connection *connection)
{
    struct event *e = events_add(kind, segment);
    if (e->wanted_by && connection)
        look_command(connection->peer.pid, e->command);
    return e;
}

/* Of the last slots each user gets his share; the daemon's own user may have all. */
static bool has_slot_for(const struct segment *segment, int64_t access, uid_t uid)
{
    uint32_t used = segment->slots.n_used;
    const struct attachment *a;
    uint64_t his = 0;
    if (!segment->lock || access == SHMVIEW_PEEK || used == SHMVIEW_SLOTS_MAX || uid == 0 ||
        uid == geteuid() || quota_in_share(UINT64_MAX, used, SHMVIEW_SLOTS_MAX))
        return true;
    LIST_FOREACH (a, &segment->use->attachments, sibling)
        his += a->uid == uid && a->slot != WIRE_ABSENT;
    return quota_in_share(his, used, SHMVIEW_SLOTS_MAX);
}

void creation_attach(struct state *state, struct connection *connection, struct segment *segment,
                     int64_t access, struct answer *answer)
{
    struct wire_attachment got;
    struct quota_user *payer;
    if (attachments_full(&connection->attachments)) {
        refuse(answer, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", LIMIT_ATTACHMENTS),
               "this connection has %d attachments, which is the limit", LIMIT_ATTACHMENTS);
        return;
    }
    if (!has_slot_for(segment, access, connection->peer.uid)) {
        refuse(answer, SHMVIEW_ERR_NO_SLOT, json_pack("{s:i}", "limit", SHMVIEW_SLOTS_MAX),
               "segment '%s' has %u attachments of %d; the last ones are for users that have fewer "
               "than are left",
               segment->name, segment->slots.n_used, SHMVIEW_SLOTS_MAX);
        return;
    }
    if (!grants_attach(state, connection, &payer, answer))
        return;
    answer->fds_borrowed = true;
    int r = attachment_begin(&connection->attachments, segment, access, connection->peer.pid, &got,
                             &answer->fds);
    if (r)
        quota_refund(payer, QUOTA_ATTACHMENTS, 1);
    if (r == -ENOSPC) {
        refuse(answer, SHMVIEW_ERR_NO_SLOT, json_pack("{s:i}", "limit", SHMVIEW_SLOTS_MAX),
               "segment '%s' has %d attachments, which is the limit", segment->name,
               SHMVIEW_SLOTS_MAX);
        return;
    }
    if (r) {
        refuse_system(answer, "a segment cannot be attached", -r);
        return;
    }
    struct attachment *a = attachment_find(&connection->attachments, (uint64_t)got.id);
    a->uid = connection->peer.uid;
    a->payer = payer;
    r = attachment_keep(a, &connection->holder);
    if (r) {
        answer->fds.n = 0;
        attachment_cancel(a);
        refuse_system(answer, "an attachment cannot be kept", -r);
        return;
    }
    answer->attachment = (uint64_t)got.id;
    answer_attached(segment, &got, answer);
    if (answer->error) { /* nobody would know of it */
        answer->fds.n = 0;
        attachment_cancel(attachment_find(&connection->attachments, (uint64_t)got.id));
        return;
    }
    struct event *e = tell(EVENT_ATTACHED, segment, connection);
    e->attachment = a->id;
    e->access = (uint8_t)access;
    e->slot = a->slot == WIRE_ABSENT ? UINT32_MAX : (uint32_t)a->slot;
}

/* --- Creating ------------------------------------------------------------ */

static bool allocate(struct task *task)
{
    struct job *job = CONTAINER_OF(task, struct job, task);
    const atomic_bool *cancel = job->declared ? &job->state->declared.cancel : &job->cancel;
    job->result = segment_allocate_some(job->segment, cancel, &job->committed, &job->space);
    return job->result > 0;
}

static void refuse_allocation(const struct job *job, struct answer *answer)
{
    const struct segment *s = job->segment;
    if (job->result == -ENOSPC) {
        uint64_t n_free = object_count_free(), n_needed = s->lock ? N_SEGMENT_PARTS : 1;
        json_t *facts =
            json_pack("{s:I, s:I, s:I}", "asked", (json_int_t)s->size, "free",
                      (json_int_t)job->space.free, "limit", (json_int_t)job->space.limit);
        if (n_free < n_needed)
            refuse(answer, SHMVIEW_ERR_NO_SPACE, facts,
                   "segment '%s' needs %" PRIu64 " inodes of /dev/shm; %" PRIu64 " are free",
                   s->name, n_needed, n_free);
        else
            refuse(answer, SHMVIEW_ERR_NO_SPACE, facts,
                   "segment '%s' asks for %" PRIu64 " bytes; %" PRIu64 " are free, %s %" PRIu64,
                   s->name, s->size, job->space.free,
                   job->space.of_group ? "the daemon's control group may have" : "/dev/shm holds",
                   job->space.limit);
    } else if (job->result == -EEXIST) {
        refuse(answer, SHMVIEW_ERR_EXISTS, json_pack("{s:s}", "name", s->name),
               "%s has an object under the name of segment '%s' that no segment owns",
               directory_path(), s->name);
    } else {
        refuse_system(answer, "a segment cannot be allocated", -job->result);
    }
}

/* Makes the segment known. Returns whether it stays. */
static bool finish(struct job *job, struct answer *answer)
{
    struct segment *s = job->segment;
    if (job->result) {
        refuse_allocation(job, answer);
        return false;
    }
    s->allocated = true;
    job->state->registry.allocated_bytes += s->size;
    tell(EVENT_CREATED, s, job->connection)->size = s->size;
    s->has_creator = s->lifetime == SHMVIEW_CREATOR;
    if (s->has_creator) {
        s->holder = job->connection->holder;
        LIST_INSERT_HEAD(&job->connection->created, s, created);
    }
    int r = segment_keep(s);
    if (r) {
        refuse_system(answer, "a segment cannot be kept", -r);
        return false;
    }
    if (job->access) {
        creation_attach(job->state, job->connection, s, job->access, answer);
    } else {
        answer_with(answer, json_pack("{s:o}", "segment", creation_describe(s)));
    }
    answer->created = s->id;
    return !answer->error;
}

static void finish_declared(struct job *job, bool stays, struct answer *answer)
{
    const struct config_segment *want = job->declared;
    const char *reason = json_string_value(json_object_get(answer->parameters, "reason"));
    if (stays)
        declared_add_layouts(job->segment, want);
    else if (answer->error)
        log_error("segment '%s', declared at %s:%u, cannot be created: %s", want->name, want->file,
                  want->line, reason ? reason : answer->error);
    json_decref(answer->parameters);
}

/* Makes the segment known, or removes it. */
static void settle(struct job *job, struct answer *answer)
{
    struct segment *s = job->segment;
    bool stays =
        (job->connection || job->declared) && job->result != -ECANCELED && finish(job, answer);
    if (job->declared)
        finish_declared(job, stays, answer);
    if (!stays)
        registry_remove(&job->state->registry, s);
    else if (!job->access)
        use_leave(s->use);
}

static void allocated(struct task *task)
{
    CLEANUP_FREE struct job *job = CONTAINER_OF(task, struct job, task);
    struct connection *c = job->connection;
    struct state *state = job->state;
    struct answer answer = {0};
    state->n_jobs--;
    if (c)
        events_by(c->peer.pid, c->peer.uid);
    settle(job, &answer);
    if (c) {
        c->job = NULL;
        tally_note(c, &answer);
        events_by(0, UINT32_MAX);
        connection_answer(c, &answer);
    }
    if (job->declared)
        declared_done(state);
    state->job_done(state);
}

void creation_cancel(struct connection *connection)
{
    struct job *job = connection->job;
    if (!job)
        return;
    atomic_store(&job->cancel, true);
    job->connection = NULL;
    connection->job = NULL;
    if (!task_take_back(&job->task))
        return; /* its thread notices */
    job->result = -ECANCELED;
    if (job->committed)
        allocate(&job->task); /* which gives back what it has */
    job->state->n_jobs--;
    settle(job, &(struct answer){0});
    free(job);
}

static bool check_create(struct wire_create *create, struct answer *answer)
{
    struct wire_fault fault = {0};
    if (!name_is_valid(create->name, LIMIT_NAME_BYTES)) {
        snprintf(fault.parameter, sizeof fault.parameter, "name");
        snprintf(fault.reason, sizeof fault.reason,
                 "must be 1 to %d of A-Z a-z 0-9 . _ -, not starting with a dot", LIMIT_NAME_BYTES);
    } else if (create->lifetime == SHMVIEW_ATTACHED && !create->access) {
        snprintf(fault.parameter, sizeof fault.parameter, "lifetime");
        snprintf(fault.reason, sizeof fault.reason, "\"attached\" needs an access to attach with");
    }
    if (fault.reason[0]) {
        refuse_parameter(answer, &fault);
        return false;
    }
    if (!create->lifetime)
        create->lifetime = create->access ? SHMVIEW_ATTACHED : SHMVIEW_MANUAL;
    return true;
}

/* connection NULL: it is declared, with that access. */
static struct job *job_new(struct state *state, struct connection *connection,
                           const struct wire_create *create, const struct access *access,
                           struct answer *answer)
{
    departure_settle(state, registry_find(&state->registry, create->name));
    struct segment *s = registry_reserve(&state->registry, create->name);
    if (!s && errno == EEXIST) {
        refuse(answer, SHMVIEW_ERR_EXISTS, json_pack("{s:s}", "name", create->name),
               "a segment '%s' exists already", create->name);
        return NULL;
    }
    struct job *job = s ? calloc(1, sizeof *job) : NULL;
    if (!job) {
        refuse_system(answer, "a segment cannot be created", ENOMEM);
        if (s)
            registry_remove(&state->registry, s);
        return NULL;
    }
    s->size = (uint64_t)create->size;
    if (!(connection ? grants_create(state, connection, create, s, answer)
                     : grants_declare(state, s, access, answer))) {
        free(job);
        registry_remove(&state->registry, s);
        return NULL;
    }
    s->lifetime = (uint8_t)create->lifetime;
    s->lock = create->lock;
    job->state = state;
    job->connection = connection;
    job->segment = s;
    job->access = create->access;
    return job;
}

static void job_start(struct job *job)
{
    job->state->n_jobs++;
    job->task.loop = job->state->loop;
    job->task.user = &job->segment->payer->tasks;
    job->task.step = allocate;
    job->task.done = allocated;
    task_add(&job->task);
}

/* What is small takes less time than telling a thread of it. Returns whether it is done. */
static bool create_now(struct job *job, struct answer *answer)
{
    if (!job->access || job->segment->size > SMALL_BYTES)
        return false;
    job->result = segment_allocate_now(job->segment);
    if (job->result == -EAGAIN)
        return false;
    settle(job, answer);
    free(job);
    return true;
}

void creation_start(struct state *state, struct connection *connection, const json_t *parameters,
                    struct answer *answer)
{
    struct wire_fault fault;
    struct wire_create create;
    if (wire_read_create(parameters, &create, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    struct job *job = NULL;
    /* first whether he may at all: else names could be tried */
    if (grants_may_create(state, connection, answer) && check_create(&create, answer))
        job = job_new(state, connection, &create, NULL, answer);
    free(create.grant.acl);
    if (!job || create_now(job, answer))
        return;
    connection->job = job;
    answer->pending = true;
    job_start(job);
}

void creation_declare(struct state *state, const struct config_segment *want)
{
    struct answer answer = {0};
    struct wire_create create = {
        .name = want->name,
        .size = (int64_t)want->size,
        .lifetime = want->lifetime,
        .lock = want->lock,
    };
    struct job *job = job_new(state, NULL, &create, &want->access, &answer);
    if (!job) {
        json_decref(answer.parameters); /* short of memory, and said */
        return;
    }
    job->declared = want;
    state->declared.n_pending++;
    job_start(job);
}
