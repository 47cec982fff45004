/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <sched.h>
#include <shmview/mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text.h"

/* A wait polls so often before it sleeps between the polls. */
#define N_POLLS 1000
#define NAP_NS  20000

int verdict_wait(MPI_Request *request, const char *doing, int64_t deadline_ns)
{
    for (unsigned n = 0;; n++) {
        int is_done = 0;
        int result = text_check(MPI_Test(request, &is_done, MPI_STATUS_IGNORE), doing);
        if (result < 0 || is_done)
            return result;
        if (shmview_deadline(0) >= deadline_ns)
            return text_fail(-SHMVIEW_ERR_TIMED_OUT,
                             "%s: the deadline passed before every rank came", doing);
        if (n < N_POLLS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

/* The memory of an exchange. After a failure MPI may still use it, so it is not freed. The numbers
 * are signed, because the least of unsigned numbers is a wrong one in MPICH 4.0. */
struct exchange {
    int64_t mine[5], all[5];
    char text[SHMVIEW_MPI_TEXT_BYTES];
};

static int run(MPI_Comm comm, struct exchange *e, int rank, const char *doing, int64_t deadline_ns,
               struct verdict *ret_result)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int result =
        text_check(MPI_Iallreduce(e->mine, e->all, 5, MPI_INT64_T, MPI_MIN, comm, &request), doing);
    if (result == 0)
        result = verdict_wait(&request, doing, deadline_ns);
    if (result < 0)
        return result;
    /* The least status is in the high half, and the rank that has it in the low one. */
    ret_result->status = (int)(e->all[0] >> 32);
    ret_result->rank = (int)(e->all[0] & 0x7fffffff);
    ret_result->is_equal = e->all[1] == ~e->all[2];
    ret_result->highest = (int)-e->all[3];
    ret_result->is_missing = e->all[4] != 0;
    if (ret_result->status == 0)
        return 0;
    result = text_check(
        MPI_Ibcast(e->text, sizeof e->text, MPI_CHAR, ret_result->rank, comm, &request), doing);
    if (result == 0)
        result = verdict_wait(&request, doing, deadline_ns);
    if (result == 0 && rank != ret_result->rank) {
        e->text[sizeof e->text - 1] = '\0';
        text_fail(ret_result->status, "%s", e->text);
    }
    return result;
}

int verdict_take(MPI_Comm comm, int status, uint64_t value, const char *doing, int64_t deadline_ns,
                 struct verdict *ret_result)
{
    struct exchange *e = calloc(1, sizeof *e);
    int rank = 0;
    if (!e)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "%s: no memory to agree", doing);
    MPI_Comm_rank(comm, &rank);
    strncpy(e->text, text_last(), sizeof e->text - 1);
    const int error = status < 0 ? status : 0;
    e->mine[0] = error * (INT64_C(1) << 32) + rank;
    e->mine[1] = (int64_t)value;
    e->mine[2] = ~(int64_t)value;
    e->mine[3] = -(int64_t)(status > 0 ? status : 0);
    e->mine[4] = -(int64_t)(status == -SHMVIEW_ERR_PEER || status == -SHMVIEW_ERR_TIMED_OUT);
    struct verdict result = {0};
    const int failed = run(comm, e, rank, doing, deadline_ns, &result);
    if (failed < 0)
        return failed;
    free(e);
    *ret_result = result;
    return 0;
}

int verdict_of_link(struct shmview_mpi_link *link, int status, uint64_t value, const char *doing,
                    int64_t deadline_ns)
{
    struct verdict agreed = {0};
    if (link->is_broken)
        return text_fail(-SHMVIEW_ERR_LOST, "an earlier message of this link has failed");
    if (status < 0)
        text_fail(status, "rank %d: %.400s", link->me, text_last());
    int result = verdict_take(link->forward, status, value, doing, deadline_ns, &agreed);
    if (result < 0) {
        link->is_broken = true;
        return result;
    }
    if (agreed.status < 0)
        return agreed.status;
    return agreed.is_equal ? agreed.highest
                           : text_fail(-SHMVIEW_ERR_CONVERSION,
                                       "%s: the ranks do not describe the same array", doing);
}

int verdict_copy(MPI_Comm comm, void *bytes, size_t n, int root, int64_t deadline_ns)
{
    static const char doing[] = "a message to the ranks";
    MPI_Request request = MPI_REQUEST_NULL;
    char *copy = calloc(1, n);
    if (!copy)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a message to the ranks");
    memcpy(copy, bytes, n);
    int result = text_check(MPI_Ibcast(copy, (int)n, MPI_BYTE, root, comm, &request), doing);
    if (result == 0)
        result = verdict_wait(&request, doing, deadline_ns);
    if (result == 0) {
        memcpy(bytes, copy, n);
        free(copy);
    }
    return result;
}
