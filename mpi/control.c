/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <shmview/family.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "text.h"

/* Members wait longer than the leader, so that they get its reason. */
#define GRACE_NS 2000000000

/* A wait looks for dead processes after so many naps of 0.1 s, and at once at its beginning. */
#define LOOK_AFTER 1

uint64_t control_bytes(int n_members)
{
    return sizeof(struct control) + (uint64_t)n_members * sizeof(struct control_record);
}

void control_init(struct control *control, int n_members)
{
    control->version = CONTROL_VERSION;
    control->n_members = (uint32_t)n_members;
    control->magic = CONTROL_MAGIC;
}

int control_check(const struct control *control, uint64_t bytes, int n_members)
{
    if (bytes >= control_bytes(n_members) && control->magic == CONTROL_MAGIC &&
        control->version == CONTROL_VERSION && control->n_members == (uint32_t)n_members)
        return 0;
    return text_fail(-SHMVIEW_ERR_LAYOUT_VERSION,
                     "the control area of this node is from another version of shmview");
}

struct control_record *control_mine(struct shmview_mpi *job)
{
    return &job->control->records[job->member];
}

const struct control_record *control_of(const struct shmview_mpi *job, int member)
{
    return &job->control->records[member];
}

int control_enter(struct shmview_mpi *job)
{
    int result = shmview_process_name(&control_mine(job)->process);
    return result < 0 ? text_core(result, "the name of this process") : 0;
}

/* A failure of the meeting itself, after which nobody can rely on the words of the area. */
static int fail(struct shmview_mpi *job, int member, int error, const char *what)
{
    const int rank = job_ranks(job, job->node_index)[member];
    job->is_broken = true;
    job->failed_rank = rank;
    return text_fail(error, "rank %d on this node %s", rank, what);
}

/* Sleeps until the word may have another value than seen. */
static int nap(const _Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    int result = shmview_word_wait((const uint32_t *)word, seen, deadline_ns);
    if (result == -SHMVIEW_ERR_TIMED_OUT)
        return 0; /* the caller looks at the deadline */
    return result < 0 ? text_core(result, "a wait for the members of this node") : 0;
}

static struct control_result *result_of(const struct shmview_mpi *job)
{
    return &job->control->results[job->epoch & 1];
}

/* A member that is dead and has not arrived, or one that has not arrived, or -1. */
static int find_absent(const struct shmview_mpi *job, int *ret_is_dead)
{
    int absent = -1;
    for (int i = 0; i < job->n_members; i++) {
        const struct control_record *record = control_of(job, i);
        if (__atomic_load_n(&record->met, __ATOMIC_ACQUIRE) == job->epoch)
            continue;
        absent = i;
        if (shmview_process_has_ended(record->process)) {
            *ret_is_dead = 1;
            return i;
        }
    }
    /* A record is marked just before the arrival is counted: a process may have died in between. */
    for (int i = 0; i < job->n_members && absent < 0; i++)
        if (shmview_process_has_ended(control_of(job, i)->process)) {
            *ret_is_dead = 1;
            return i;
        }
    return absent;
}

int control_look(struct shmview_mpi *job)
{
    for (int i = 0; i < job->n_members; i++)
        if (shmview_process_has_ended(control_of(job, i)->process))
            return fail(job, i, -SHMVIEW_ERR_PEER, "has died");
    return 0;
}

static int await_members(struct shmview_mpi *job, int64_t deadline_ns)
{
    struct control *control = job->control;
    const uint32_t wanted = job->epoch * (uint32_t)job->n_members;
    for (;;) {
        const uint32_t arrived = atomic_load(&control->arrived);
        if (arrived == wanted)
            return 0;
        int is_dead = 0;
        const int absent = find_absent(job, &is_dead);
        if (is_dead)
            return fail(job, absent, -SHMVIEW_ERR_PEER, "has died");
        const bool is_late = shmview_deadline(0) >= deadline_ns;
        if (is_late && absent >= 0)
            return fail(job, absent, -SHMVIEW_ERR_TIMED_OUT,
                        "did not make the call before the deadline");
        if (is_late)
            return text_fail(-SHMVIEW_ERR_TIMED_OUT,
                             "a rank on this node was stopped while it made the call");
        int result = nap(&control->arrived, arrived, deadline_ns);
        if (result < 0)
            return result;
    }
}

/* Whether a rank that has this error reports the failure of another one. */
static bool is_about_another(int error)
{
    return error == -SHMVIEW_ERR_PEER || error == -SHMVIEW_ERR_TIMED_OUT;
}

/* The first error of a member, or its greatest outcome. Its text is stored, and its rank if that
 * has failed. */
static int read_records(struct shmview_mpi *job)
{
    int outcome = 0;
    for (int i = 0; i < job->n_members; i++) {
        const struct control_record *record = control_of(job, i);
        if (record->status < 0) {
            if (!job->is_failing && !is_about_another(record->status))
                job->failed_rank = job_ranks(job, job->node_index)[i];
            return text_fail(record->status, "%.*s", (int)sizeof record->text - 1, record->text);
        }
        if (record->status > outcome)
            outcome = record->status;
    }
    return outcome;
}

/* Writes the result, and wakes the members. */
static void release(struct shmview_mpi *job, int status)
{
    struct control *control = job->control;
    struct control_result *result = result_of(job);
    result->status = status;
    result->rank = job->failed_rank;
    result->broken = job->is_broken;
    snprintf(result->text, sizeof result->text, "%s", status < 0 ? text_last() : "");
    atomic_store(&control->released, job->epoch);
    shmview_word_wake((const uint32_t *)&control->released, 0);
}

static int lead(struct shmview_mpi *job, control_work *work, void *arg, int64_t deadline_ns)
{
    int broken = 0;
    int status = await_members(job, deadline_ns);
    if (status < 0) {
        /* The work is to inform other nodes, which may be late. It may replace the text. */
        broken = 1;
        job->is_broken = true;
        release(job, status);
        work(job, status, arg, &broken);
        return text_fail(status, "%s", result_of(job)->text);
    }
    status = work(job, read_records(job), arg, &broken);
    job->is_broken |= broken != 0;
    release(job, status);
    return status;
}

/* Asks the lock of the segment for the death of the leader. The next owner learns of it again. */
static int describe_death(struct shmview_mpi *job)
{
    struct shmview_death death;
    struct shmview_phase phase;
    const int rank = job_ranks(job, job->node_index)[0];
    job->is_broken = true;
    job->failed_rank = rank;
    int result = shmview_lock_until(job->segment, shmview_deadline(GRACE_NS));
    if (result < 0)
        return text_fail(-SHMVIEW_ERR_PEER, "rank %d, the leader of this node, has died", rank);
    if (result == SHMVIEW_OWNER_DIED && shmview_owner_died(job->segment, &death) == 0 &&
        shmview_phase_read(job->segment, &phase) == 0) {
        result = text_fail(-SHMVIEW_ERR_PEER,
                           "rank %d, the leader of this node, has died while process %u held '%s' "
                           "in phase %u '%s'; its bytes may be half written",
                           rank, death.pid, shmview_name(job->segment), death.phase, phase.name);
        shmview_unlock_not_repaired(job->segment);
        return result;
    }
    shmview_unlock(job->segment);
    return text_fail(-SHMVIEW_ERR_PEER,
                     "rank %d, the leader of this node, has died; it did not hold '%s'", rank,
                     shmview_name(job->segment));
}

static int follow(struct shmview_mpi *job, int64_t deadline_ns)
{
    struct control *control = job->control;
    if (deadline_ns < SHMVIEW_FOREVER - GRACE_NS)
        deadline_ns += GRACE_NS;
    for (int naps = 0;; naps++) {
        const uint32_t released = atomic_load(&control->released);
        if (released == job->epoch)
            break;
        const int64_t now = shmview_deadline(0);
        if (naps >= LOOK_AFTER && shmview_process_has_ended(control->records[0].process) &&
            atomic_load(&control->released) != job->epoch)
            return describe_death(job);
        if (now >= deadline_ns)
            return fail(job, 0, -SHMVIEW_ERR_TIMED_OUT, "did not end the call before the deadline");
        int result = nap(&control->released, released, deadline_ns);
        if (result < 0) {
            job->is_broken = true;
            return result;
        }
    }
    const struct control_result *ended = result_of(job);
    job->is_broken |= ended->broken != 0;
    job->failed_rank = ended->rank;
    if (ended->status < 0)
        return text_fail(ended->status, "%.*s", (int)sizeof ended->text - 1, ended->text);
    return ended->status;
}

int control_meet(struct shmview_mpi *job, int status, uint64_t value, control_work *work, void *arg,
                 int64_t deadline_ns)
{
    struct control *control = job->control;
    struct control_record *mine = control_mine(job);
    job->epoch++;
    mine->status = status;
    mine->value = value;
    snprintf(mine->text, sizeof mine->text, "%s", status < 0 ? text_last() : "");
    __atomic_store_n(&mine->met, job->epoch, __ATOMIC_RELEASE);
    const uint32_t arrived = atomic_fetch_add(&control->arrived, 1) + 1;
    if (job->member != 0 && arrived == job->epoch * (uint32_t)job->n_members)
        shmview_word_wake((const uint32_t *)&control->arrived, 1);
    int result = job->member == 0 ? lead(job, work, arg, deadline_ns) : follow(job, deadline_ns);
    job->is_failing = result < 0;
    return result;
}
