/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/creation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/name.h"
#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/clients/refusal.h"
#include "daemon/clients/tally.h"
#include "daemon/memory/directory.h"
#include "daemon/requests/attach.h"
#include "daemon/requests/declared.h"
#include "daemon/requests/departure.h"
#include "daemon/requests/describe.h"
#include "daemon/requests/grants.h"
#include "daemon/segments/events.h"
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
    events_add_by(SHMVIEW_EVENT_CREATED, s, job->connection ? job->connection->peer.pid : 0)->size =
        s->size;
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
        attach_segment(job->state, job->connection, s, job->access, answer);
    } else {
        answer_with(answer, json_pack("{s:o}", "segment", describe_segment(s)));
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
