/* SPDX-License-Identifier: Apache-2.0 */
#include "collective.h"

#include <string.h>

#include "text.h"
#include "verdict.h"

int collective_check_view(const struct shmview_mpi *job, const struct shmview_view *view,
                          const char *what, bool is_written)
{
    if (!view || view->segment != job->segment)
        return text_fail(-SHMVIEW_ERR_INVALID, "rank %d: %s is no view of segment '%s'", job->rank,
                         what, shmview_name(job->segment));
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return text_fail(-SHMVIEW_ERR_INVALID, "rank %d: %s has suboffsets", job->rank, what);
    if (is_written && view->flags & SHMVIEW_VIEW_READ_ONLY)
        return text_fail(-SHMVIEW_ERR_INVALID, "rank %d: %s is read-only", job->rank, what);
    return 0;
}

int collective_block(const struct shmview_mpi *job, const struct shmview_view *view, int i,
                     struct shmview_view *ret_block)
{
    if (view->ndim == 0 || view->shape[0] % job->n_ranks)
        return text_fail(-SHMVIEW_ERR_INVALID,
                         "rank %d: a view of %td rows has no %d blocks of equal length", job->rank,
                         view->ndim ? view->shape[0] : (ptrdiff_t)1, job->n_ranks);
    const int64_t length = view->shape[0] / job->n_ranks;
    int result = shmview_view_slice(view, 0, i * length, (i + 1) * length, 1, ret_block);
    return result < 0 ? text_core(result, "a block of a view") : 0;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* What all ranks must share, as a number. */
static uint64_t summary(const struct collective *c)
{
    uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), c->name, strlen(c->name) + 1);
    hash = mix(hash, &c->root, sizeof c->root);
    hash = mix(hash, &c->operation, sizeof c->operation);
    if (c->phase)
        hash = mix(hash, c->phase, strlen(c->phase) + 1);
    if (!c->block)
        return hash;
    hash = mix(hash, c->block->format, strlen(c->block->format) + 1);
    hash = mix(hash, &c->block->ndim, sizeof c->block->ndim);
    return mix(hash, c->block->shape, c->block->ndim * sizeof c->block->shape[0]);
}

static void write_view(const struct shmview_mpi *job, const struct shmview_view *view,
                       struct control_view *ret)
{
    ret->is_there = view != NULL;
    if (!view)
        return;
    ret->offset = (uint64_t)(view->data - (unsigned char *)shmview_data(job->segment));
    ret->ndim = view->ndim;
    for (uint32_t d = 0; d < view->ndim; d++) {
        ret->shape[d] = view->shape[d];
        ret->strides[d] = view->strides[d];
    }
    strncpy(ret->format, view->format, sizeof ret->format - 1);
}

static int read_view(struct shmview_mpi *job, const struct control_view *written,
                     struct shmview_view *ret)
{
    const struct shmview_view_spec spec = {.format = written->format,
                                           .offset = written->offset,
                                           .ndim = written->ndim,
                                           .shape = written->shape,
                                           .strides = written->strides};
    if (!written->is_there)
        return text_fail(-SHMVIEW_ERR_INVALID, "a rank of this node has passed no view");
    int result = shmview_view_make(job->segment, &spec, ret);
    return result < 0 ? text_core(result, "a view of another rank") : 0;
}

int collective_from(struct shmview_mpi *job, int member, struct shmview_view *ret_view)
{
    return read_view(job, &control_of(job, member)->from, ret_view);
}

int collective_to(struct shmview_mpi *job, int member, struct shmview_view *ret_view)
{
    return read_view(job, &control_of(job, member)->to, ret_view);
}

static bool is_same_view(const struct control_view *a, const struct control_view *b)
{
    return a->is_there == b->is_there && a->offset == b->offset && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, a->ndim * sizeof a->shape[0]) == 0 &&
           memcmp(a->strides, b->strides, a->ndim * sizeof a->strides[0]) == 0 &&
           strcmp(a->format, b->format) == 0;
}

/* Compares the arguments of the members of this node. */
static int compare_members(struct shmview_mpi *job, const struct collective *c)
{
    for (int i = 1; i < job->n_members; i++) {
        const struct control_record *record = control_of(job, i);
        const char *what = record->value != control_of(job, 0)->value ? "makes another call"
                           : c->shares_to && !is_same_view(&record->to, &control_of(job, 0)->to)
                               ? "passes another view"
                               : NULL;
        if (what)
            return text_fail(-SHMVIEW_ERR_INVALID, "%s: rank %d %s than rank %d of its node",
                             c->name, job_ranks(job, job->node_index)[i], what, job->rank);
    }
    return 0;
}

/* The agreement of the leaders about the status and the value of their nodes. Returns the error of
 * a node, or 0. If *ret_broken is set, status is the error of this node, and is returned. */
static int agree(struct shmview_mpi *job, const struct collective *c, int status, uint64_t value,
                 int *ret_broken, struct verdict *ret_agreed)
{
    int result = verdict_take(job->leaders, status, value, c->name, c->deadline_ns, ret_agreed);
    if (*ret_broken)
        return status;
    if (result < 0) {
        /* An error of arguments, after which the job could go on, is not the reason. */
        *ret_broken = 1;
        job->failed_rank = -1;
        return result;
    }
    /* The error of another node is not about a rank of this one. */
    if (ret_agreed->status != status)
        job->failed_rank = -1;
    *ret_broken = ret_agreed->is_missing;
    return ret_agreed->status;
}

/* The leader's work of the first meeting. */
static int compare_and_lock(struct shmview_mpi *job, int status, void *arg, int *ret_broken)
{
    struct collective *c = arg;
    struct verdict agreed = {0};
    if (status == 0)
        status = compare_members(job, c);
    int result = agree(job, c, status, control_of(job, 0)->value, ret_broken, &agreed);
    if (result < 0)
        return result;
    if (!agreed.is_equal)
        return text_fail(
            -SHMVIEW_ERR_INVALID,
            "%s: the nodes do not pass the same root, phase, operation, shape and format", c->name);
    result = c->receives ? shmview_lock_until(job->segment, c->deadline_ns) : 0;
    c->is_locked = c->receives && result >= 0;
    c->was_dirty = result == SHMVIEW_OWNER_DIED;
    if (result < 0)
        text_core(result, "the lock of the segment");
    /* Nobody may send before every node is ready to receive. */
    const int has_gaps = c->to && !shmview_view_is_contiguous(c->to, 'C');
    const int failed = verdict_take(job->leaders, result < 0 ? result : has_gaps, 0, c->name,
                                    c->deadline_ns, &agreed);
    c->keeps_shape = agreed.highest > 0;
    if (failed == 0 && agreed.status == 0)
        return 0;
    if (c->is_locked)
        c->was_dirty ? shmview_unlock_not_repaired(job->segment) : shmview_unlock(job->segment);
    c->is_locked = false;
    /* A wait for a lock ends at the deadline, when not every node may learn of it. */
    *ret_broken = 1;
    return failed < 0 ? failed : agreed.status;
}

static bool has_phase(const struct shmview_mpi *job, const char *phase)
{
    for (const char *name = job->phases; *name; name += strlen(name) + 1)
        if (strcmp(name, phase) == 0)
            return true;
    return false;
}

int collective_begin(struct shmview_mpi *job, struct collective *c, int status)
{
    if (job->is_broken)
        return text_fail(-SHMVIEW_ERR_LOST, "%s: an earlier call of this job has failed", c->name);
    c->deadline_ns = shmview_deadline(job->timeout_ns);
    job->failed_rank = -1;
    job->is_failing = false;
    if (status == 0 && (c->root < -1 || c->root >= job->n_ranks))
        status = text_fail(-SHMVIEW_ERR_INVALID, "%s: there is no rank %d", c->name, c->root);
    if (status == 0 && c->phase && !has_phase(job, c->phase))
        status = text_fail(-SHMVIEW_ERR_INVALID, "%s: the job was opened without a layout '%s'",
                           c->name, c->phase);
    write_view(job, status == 0 ? c->from : NULL, &control_mine(job)->from);
    write_view(job, status == 0 ? c->to : NULL, &control_mine(job)->to);
    const uint64_t value = status == 0 ? summary(c) : 0;
    const int result = control_meet(job, status, value, compare_and_lock, c, c->deadline_ns);
    if (!job->is_broken)
        job->failed_rank = -1;
    return result;
}

static int pass(struct shmview_mpi *job, int status, void *arg, int *ret_broken)
{
    (void)job, (void)arg, (void)ret_broken;
    return status;
}

int collective_gather(struct shmview_mpi *job, struct collective *c, int status)
{
    if (job->is_broken)
        return status;
    return control_meet(job, status, 0, pass, NULL, c->deadline_ns);
}

static int compare_status(struct shmview_mpi *job, int status, void *arg, int *ret_broken)
{
    struct verdict agreed = {0};
    return agree(job, arg, status, 0, ret_broken, &agreed);
}

int collective_agree(struct shmview_mpi *job, struct collective *c, int status)
{
    if (job->is_broken)
        return status;
    return control_meet(job, status, 0, compare_status, c, c->deadline_ns);
}

/* The leader's work of the last meeting. */
static int publish(struct shmview_mpi *job, int status, void *arg, int *ret_broken)
{
    struct collective *c = arg;
    if (!c->is_locked) {
        *ret_broken = status < 0;
        return status;
    }
    if (status == 0 && !c->is_workspace) {
        status = c->phase ? shmview_switch(job->segment, c->phase) : shmview_notify(job->segment);
        if (status < 0)
            text_core(status, "the phase after a collective");
    }
    if (status == 0 && !c->was_dirty)
        status = shmview_unlock(job->segment);
    else
        shmview_unlock_not_repaired(job->segment);
    c->is_locked = false;
    *ret_broken = status < 0;
    return status;
}

int collective_end(struct shmview_mpi *job, struct collective *c, int status)
{
    /* Without a meeting: a member is missing, or none can rely on the others. */
    if (job->is_broken && c->is_locked)
        shmview_unlock_not_repaired(job->segment);
    if (job->is_broken)
        return status;
    return control_meet(job, status, 0, publish, c, c->deadline_ns);
}
