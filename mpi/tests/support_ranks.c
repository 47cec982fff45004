/* SPDX-License-Identifier: Apache-2.0 */
#include "support_ranks.h"

#include <sched.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int me, n;
static MPI_Request request;

void ranks_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
}

int ranks_end(void)
{
    MPI_Finalize();
    return 0;
}

int ranks_me(void)
{
    return me;
}

int ranks_n(void)
{
    return n;
}

MPI_Request *ranks_request(void)
{
    return &request;
}

void ranks_wait(void)
{
    for (int is_done = 0; !is_done;) {
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        sched_yield();
    }
}

void ranks_barrier(void)
{
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    ranks_wait();
}

_Noreturn void ranks_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: rank %d: %s\n", file, line, me, what);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void ranks_expect(const char *file, int line, const char *call, int result, int wanted)
{
    if (result == wanted)
        return;
    char text[2048];
    snprintf(text, sizeof text, "%s returned %d (%s), not %d: %s; %s", call, result,
             shmview_strerror(result), wanted, shmview_mpi_error_text(), shmview_error_text());
    ranks_failed(file, line, text);
}
