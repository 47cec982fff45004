/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <sched.h>
#include <shmview/mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text.h"

/* Polls of a request between looks at the clock. */
#define POLLS 64

int verdict_wait(MPI_Request *request, const char *doing, int64_t deadline_ns)
{
    for (;;) {
        for (int i = 0; i < POLLS; i++) {
            int is_done = 0;
            int result = text_check(MPI_Test(request, &is_done, MPI_STATUS_IGNORE), doing);
            if (result < 0 || is_done)
                return result;
            sched_yield();
        }
        if (shmview_deadline(0) >= deadline_ns)
            return text_fail(-SHMVIEW_ERR_TIMED_OUT,
                             "%s: the deadline passed before every rank came", doing);
    }
}

/* The memory of an exchange. If it does not end in time, MPI keeps it. */
struct exchange {
    int64_t mine[4], all[4];
    char text[SHMVIEW_MPI_TEXT_BYTES];
};

static int run(MPI_Comm comm, struct exchange *e, int rank, int64_t deadline_ns,
               struct verdict *ret_result)
{
    static const char doing[] = "a comparison of the ranks";
    MPI_Request request = MPI_REQUEST_NULL;
    int result =
        text_check(MPI_Iallreduce(e->mine, e->all, 4, MPI_INT64_T, MPI_MIN, comm, &request), doing);
    if (result == 0)
        result = verdict_wait(&request, doing, deadline_ns);
    if (result < 0)
        return result;
    /* The least status is in the high half, and the rank that has it in the low one. */
    ret_result->status = (int)(e->all[0] >> 32);
    ret_result->rank = (int)(e->all[0] & 0x7fffffff);
    ret_result->is_equal = e->all[1] == ~e->all[2];
    ret_result->highest = (int)-e->all[3];
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

int verdict_take(MPI_Comm comm, int status, uint64_t value, int64_t deadline_ns,
                 struct verdict *ret_result)
{
    struct exchange *e = calloc(1, sizeof *e);
    int rank = 0;
    if (!e)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a comparison of the ranks");
    MPI_Comm_rank(comm, &rank);
    strncpy(e->text, text_last(), sizeof e->text - 1);
    const int error = status < 0 ? status : 0;
    e->mine[0] = error * (INT64_C(1) << 32) + rank;
    e->mine[1] = (int64_t)value;
    e->mine[2] = ~(int64_t)value;
    e->mine[3] = -(int64_t)(status > 0 ? status : 0);
    struct verdict result = {0};
    const int failed = run(comm, e, rank, deadline_ns, &result);
    if (failed != -SHMVIEW_ERR_TIMED_OUT)
        free(e);
    if (failed == 0)
        *ret_result = result;
    return failed;
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
    if (result == 0)
        memcpy(bytes, copy, n);
    if (result != -SHMVIEW_ERR_TIMED_OUT)
        free(copy);
    return result;
}
