/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/creation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/name.h"
#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/clients/handover.h"
#include "daemon/clients/refusal.h"
#include "daemon/clients/tally.h"
#include "daemon/memory/directory.h"
#include "daemon/memory/discard.h"
#include "daemon/memory/placement.h"
#include "daemon/memory/sealed.h"
#include "daemon/requests/attach.h"
#include "daemon/requests/declared.h"
#include "daemon/requests/departure.h"
#include "daemon/requests/describe.h"
#include "daemon/requests/own_memory.h"
#include "daemon/requests/permit.h"
#include "daemon/segments/events.h"
#include "daemon/segments/ready.h"

/* The largest segment that the loop allocates. That takes some 50 us, as long as a few requests. */
#define SMALL_BYTES ((uint64_t)128 << 10)

/* One creation in progress. allocated() frees it, or creation_cancel(), or create_now(). While the
 * task runs a step, its thread uses segment, committed, result and space, and the loop must not
 * touch them. */
struct job {
    struct task task;
    struct request request;                /* connection is NULL after it was closed */
    const struct config_segment *declared; /* NULL: a client creates the segment */
    struct segment *segment;
    int64_t access;            /* enum shmview_access to attach for; 0: do not attach */
    atomic_bool cancel;        /* set on the loop, read on the thread */
    uint64_t committed;        /* bytes of the data so far */
    int result;                /* enum allocation, or -errno */
    struct object_space space; /* valid if result is -ENOSPC */
};

/* Allocates one step, on a thread. All declared segments have one flag to cancel them, because they
 * are only canceled together, when the daemon exits. */
static bool allocate(struct task *task)
{
    struct job *job = CONTAINER_OF(task, struct job, task);
    const atomic_bool *cancel = job->declared ? &job->request.state->declared.cancel : &job->cancel;
    job->result = segment_allocate_some(job->segment, cancel, &job->committed, &job->space);
    return job->result == ALLOCATED_PART;
}

/* Refuses because no descriptors are left for the objects of a sealed segment. */
static void refuse_descriptors(const struct job *job)
{
    const struct segment *s = job->segment;
    const struct sealed_room room = sealed_room();
    refuse(job->request.answer, SHMVIEW_ERR_LIMIT,
           json_pack("{s:I}", "limit", (json_int_t)room.most),
           "sealed segment '%s' needs %d descriptors of the daemon; %u are left of %u for sealed "
           "segments, which follow from its RLIMIT_NOFILE",
           s->name, s->lock ? N_SEGMENT_PARTS : 1, room.free, room.most);
}

/* Refuses with the reason of a failed allocation and its figures. */
static void refuse_allocation(const struct job *job)
{
    struct answer *answer = job->request.answer;
    const struct segment *s = job->segment;
    if (job->result == -EOPNOTSUPP) {
        refuse(answer, SHMVIEW_ERR_NO_SPACE,
               json_pack("{s:I, s:I, s:I}", "asked", (json_int_t)s->size, "free", (json_int_t)0,
                         "limit", (json_int_t)0),
               "segment '%s' requires huge pages: %s", s->name,
               placement_missing_text(s->placement->missing));
    } else if (job->result == -ENOSPC) {
        uint64_t n_free = s->sealed ? UINT64_MAX : object_count_free();
        uint64_t n_needed = s->lock ? N_SEGMENT_PARTS : 1;
        json_t *facts =
            json_pack("{s:I, s:I, s:I}", "asked", (json_int_t)s->size, "free",
                      (json_int_t)job->space.free, "limit", (json_int_t)job->space.limit);
        if (s->own)
            refuse(answer, SHMVIEW_ERR_NO_SPACE, facts,
                   "the lock of segment '%s' needs memory of the daemon; %" PRIu64
                   " bytes are free",
                   s->name, job->space.free);
        else if (n_free < n_needed)
            refuse(answer, SHMVIEW_ERR_NO_SPACE, facts,
                   "segment '%s' needs %" PRIu64 " inodes of /dev/shm; %" PRIu64 " are free",
                   s->name, n_needed, n_free);
        else
            refuse(answer, SHMVIEW_ERR_NO_SPACE, facts,
                   "segment '%s' asks for %" PRIu64 " bytes; %" PRIu64 " are free, %s %" PRIu64,
                   s->name, s->size, job->space.free,
                   job->space.of_group ? "the daemon's control group may have"
                   : s->sealed         ? "memory and swap hold"
                                       : "/dev/shm holds",
                   job->space.limit);
    } else if (job->result == -EMFILE && s->sealed) {
        refuse_descriptors(job);
    } else if (job->result == -EEXIST) {
        refuse(answer, SHMVIEW_ERR_EXISTS, json_pack("{s:s}", "name", s->name),
               "%s has an object under the name of segment '%s' that no segment owns",
               directory_path(), s->name);
    } else {
        refuse_system(answer, "a segment cannot be allocated", -job->result);
    }
}

/* Adds the event. Only a declared stream is known here, because a client makes a stream of a
 * segment that it has created. */
static void tell_created(const struct job *job)
{
    const struct segment *s = job->segment;
    const struct config_segment *want = job->declared;
    struct event *e = events_add_with_command(&s->home->events, SHMVIEW_EVENT_CREATED, s,
                                              connection_actor(job->request.connection));
    e->size = s->size;
    if (want && want->is_stream && s->lock) {
        e->stream = (uint8_t)want->stream.mode;
        e->stream_slots = (uint16_t)want->stream.n_slots;
    }
}

/* Makes the segment known after its allocation: adds the event, writes the record, and fills in the
 * reply. The record is written before the reply is sent, so that no client uses a segment that the
 * next daemon does not know. Returns whether the segment stays. */
static bool finish(struct job *job)
{
    const struct request *r = &job->request;
    struct connection *c = r->connection;
    struct segment *s = job->segment;
    if (job->result) {
        refuse_allocation(job);
        return false;
    }
    s->allocated = true;
    r->state->registry.allocated_bytes += s->size;
    tell_created(job);
    s->has_creator = s->lifetime == SHMVIEW_CREATOR;
    if (s->has_creator) {
        s->holder = c->holder;
        LIST_INSERT_HEAD(&c->created, s, created);
    }
    int error = segment_keep(s);
    if (error) {
        refuse_system(r->answer, "a segment cannot be recorded", -error);
        return false;
    }
    if (job->access)
        attach_segment(r, s, job->access);
    else
        describe_segment(s, r->answer);
    r->answer->created = s->id;
    return !r->answer->error;
}

/* Completes a declared segment, or logs why the segment was not created. */
static void finish_declared(const struct job *job, bool stays)
{
    const struct config_segment *want = job->declared;
    const struct answer *answer = job->request.answer;
    if (stays)
        declared_complete(job->segment, want);
    else if (answer->error)
        log_error("segment '%s', declared at %s:%u, cannot be created: %s", want->name, want->file,
                  want->line, answer->reason ? answer->reason : refusal_name(answer->error));
}

/* Ends a creation on the loop: makes the segment known, or removes what there is of it. */
static void settle(struct job *job, struct answer *answer)
{
    struct segment *s = job->segment;
    job->request.answer = answer;
    bool stays =
        (job->request.connection || job->declared) && job->result != -ECANCELED && finish(job);
    if (job->declared)
        finish_declared(job, stays);
    if (!stays)
        registry_remove(&job->request.state->registry, s,
                        connection_actor(job->request.connection));
    else if (!job->access)
        use_abandon(s->use);
}

/* Runs on the loop after the last step: ends the creation and sends the reply. */
static void allocated(struct task *task)
{
    CLEANUP_FREE struct job *job = CONTAINER_OF(task, struct job, task);
    struct connection *c = job->request.connection;
    struct state *state = job->request.state;
    struct answer answer = {0};
    state->n_jobs--;
    settle(job, &answer);
    if (c) {
        c->job = NULL;
        tally_note(c, &answer);
        connection_answer(c, &answer);
    }
    answer_deinit(&answer);
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
    job->request.connection = NULL;
    connection->job = NULL;
    if (!task_take_back(&job->task))
        return; /* a step is running: its thread reads cancel, and allocated() frees the job */
    job->result = -ECANCELED;
    if (job->committed)
        allocate(&job->task); /* finds cancel set at once, and removes the objects */
    job->request.state->n_jobs--;
    settle(job, &(struct answer){0});
    free(job);
}

/* Checks what the decoder of the parameters cannot check, by itself or by the configuration, and
 * sets the default of the lifetime. Returns false after refusing the request. */
static bool check_create(struct wire_create *create, const struct config *config,
                         struct answer *answer)
{
    struct wire_fault fault = {0};
    if (!name_is_valid(create->name, LIMIT_NAME_BYTES))
        wire_fault_fill(&fault, "name",
                        "must be 1 to %d of A-Z a-z 0-9 . _ -, not starting with a dot",
                        LIMIT_NAME_BYTES);
    else if (create->label && create->label[0] && !label_is_valid(create->label))
        wire_fault_fill(&fault, "label",
                        "must be at most %d bytes of UTF-8 without control characters",
                        LIMIT_LABEL_BYTES);
    else if (create->lifetime == SHMVIEW_ATTACHED && !create->access)
        wire_fault_fill(&fault, "lifetime", "\"attached\" needs an access to attach with");
    else if (create->backing == SHMVIEW_BACKING_FILE && config->only_sealed)
        wire_fault_fill(&fault, "backing",
                        "is file; the configuration of this daemon allows only sealed segments");
    else if (create->memory == WIRE_MEMORY_CLIENT && (create->huge || create->numa))
        wire_fault_fill(&fault, create->huge ? "huge" : "numa",
                        "has no effect on memory that the client has made");
    else if (create->numa == SHMVIEW_NUMA_NODE && create->node == WIRE_ABSENT)
        wire_fault_fill(&fault, "node", "is missing: numa is \"node\"");
    else if (create->node != WIRE_ABSENT && !placement_has_node((uint32_t)create->node))
        wire_fault_fill(&fault, "node", "is %" PRId64 ", of which this machine has no memory",
                        create->node);
    if (fault.reason[0]) {
        refuse_parameter(answer, &fault);
        return false;
    }
    if (!create->lifetime)
        create->lifetime = create->access ? SHMVIEW_ATTACHED : SHMVIEW_MANUAL;
    return true;
}

/* Gives the new segment the placement that the request wants, if any. Returns 0 or -ENOMEM. */
static int want_placement(struct segment *s, const struct wire_create *create)
{
    if (!create->huge && !create->numa)
        return 0;
    struct placement *p = s->placement = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->huge = (uint8_t)create->huge;
    p->numa = (uint8_t)create->numa;
    p->node = create->node == WIRE_ABSENT ? 0 : (uint32_t)create->node;
    return 0;
}

/* Reserves the name, applies policy and quotas, and returns a new job; or returns NULL after
 * refusing the request, with nothing reserved. declared is NULL for the request of a client. */
static struct job *job_new(const struct request *request, const struct wire_create *create,
                           const struct config_segment *declared)
{
    struct registry *registry = &request->state->registry;
    /* a dead client's segment of that name may be waiting for its removal */
    departure_settle(request->state, registry_find(registry, create->name));
    struct segment *s =
        registry_reserve_labelled(registry, create->name, create->label ? create->label : "");
    if (!s && errno == EEXIST) {
        refuse(request->answer, SHMVIEW_ERR_EXISTS, json_pack("{s:s}", "name", create->name),
               "a segment '%s' exists already", create->name);
        return NULL;
    }
    struct job *job = s && want_placement(s, create) == 0 ? calloc(1, sizeof *job) : NULL;
    if (!job) {
        refuse_system(request->answer, "a segment cannot be created", ENOMEM);
        if (s)
            registry_remove(registry, s, ACTOR_NONE);
        return NULL;
    }
    s->size = (uint64_t)create->size;
    s->populate = create->populate;
    if (!(declared ? permit_declare(request, &declared->access, s)
                   : permit_create(request, create, s))) {
        free(job);
        registry_remove(registry, s, ACTOR_NONE);
        return NULL;
    }
    s->lifetime = (uint8_t)create->lifetime;
    s->lock = create->lock;
    s->sealed = (create->backing ? create->backing : request->state->config->default_backing) ==
                SHMVIEW_BACKING_SEALED;
    job->request = *request;
    job->declared = declared;
    job->segment = s;
    job->access = create->access;
    return job;
}

/* Gives the segment of a new job the memory of the client, and takes over fd. Frees the job after a
 * refusal. Returns the job, or NULL. */
static struct job *job_take_data(struct job *job, int fd, const struct stat *st)
{
    struct segment *s = job->segment;
    s->sealed = true;
    job->result = segment_take_data(s, fd, st, job->request.who.uid);
    if (job->result == 0)
        return job;
    refuse_allocation(job);
    registry_remove(&job->request.state->registry, s, ACTOR_NONE);
    free(job);
    return NULL;
}

/* Hands the job to the thread pool, where users take turns (task.h). */
static void job_start(struct job *job)
{
    job->request.state->n_jobs++;
    job->task.loop = job->request.state->loop;
    job->task.user = &job->segment->payer->tasks;
    job->task.step = allocate;
    job->task.done = allocated;
    task_add(&job->task);
}

/* Creates a segment on the loop, if it is small or has its data already. Returns false if a thread
 * must do it: because the segment is large or has a placement, because the client does not attach
 * it, or because memory must be waited for. */
static bool create_now(struct job *job, struct answer *answer)
{
    struct segment *s = job->segment;
    if (!job->access || s->placement)
        return false;
    ready_give(s);
    if (s->size > SMALL_BYTES && !s->inodes[DATA])
        return false;
    job->result = segment_allocate_now(job->segment);
    if (job->result == -EAGAIN)
        return false;
    if (job->result == -ENOSPC)
        job->space = object_space(OBJECT_SEALED); /* the only kind that is not tried again */
    settle(job, answer);
    free(job);
    return true;
}

void creation_start(struct request *request, const union wanted *want)
{
    struct wire_create create = want->create;
    struct job *job = NULL;
    struct stat st = {0};
    bool is_own = create.memory == WIRE_MEMORY_CLIENT;
    int data = -1;
    /* Check first whether the client may create at all. Otherwise it could find out by trying which
     * names are taken. */
    bool may = permit_may_create(request) &&
               check_create(&create, request->state->config, request->answer);
    if (may && is_own)
        may = (data = own_memory_take(request, &create, &st)) >= 0;
    else if (is_own)
        handover_close(request->connection);
    if (may)
        job = job_new(request, &create, NULL);
    free(create.grant.acl);
    if (job && is_own)
        job = job_take_data(job, data, &st);
    else if (data >= 0)
        discard(data, (uint64_t)st.st_size);
    if (!job || create_now(job, request->answer))
        return;
    request->connection->job = job;
    request->answer->pending = true;
    job_start(job);
}

void creation_declare(struct state *state, const struct config_segment *want)
{
    struct answer answer = {0};
    const struct request request = {.state = state, .answer = &answer};
    if (want->node != WIRE_ABSENT && !placement_has_node((uint32_t)want->node)) {
        log_error("segment '%s', declared at %s:%u, cannot be created: this machine has no memory "
                  "of node %" PRId64,
                  want->name, want->file, want->line, want->node);
        return;
    }
    const struct wire_create create = {
        .name = want->name,
        .size = (int64_t)want->size,
        .lifetime = want->lifetime,
        .lock = want->lock,
        .label = want->label,
        .backing = want->backing,
        .huge = want->huge,
        .numa = want->numa,
        .node = want->node,
    };
    struct job *job = job_new(&request, &create, want);
    answer_deinit(&answer); /* only a lack of memory can be in it, which is logged */
    if (!job)
        return;
    state->declared.n_pending++;
    job_start(job);
}
