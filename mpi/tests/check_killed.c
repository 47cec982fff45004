/* SPDX-License-Identifier: Apache-2.0 */
/* run: killed.sh. A rank is killed at a step of a collective.
 *
 *     check_killed RANK STEP bcast|allreduce    kills the rank at its step-th call of the functions
 *                                               below in the second collective
 *     check_killed after                        looks at what is left, and removes it
 *
 * Steps are calls of libshmview and MPI: the program has functions of their names, which the
 * dynamic linker prefers. The kill comes before the call if the step is even, and after it if it is
 * odd. */
#include <dlfcn.h>
#include <mpi.h>
#include <shmview/family.h>
#include <shmview/mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_ranks.h"

#define N INT64_C(200000)

static int steps_left = -1; /* -1: none is killed */

static void step(int parity)
{
    if (steps_left < 0 || steps_left % 2 != parity)
        return;
    if (steps_left <= 1)
        raise(SIGKILL);
}

/* A function of the library that is a step. */
#define STEP(type, name, parameters, arguments)                                                    \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        if (!real)                                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        step(0);                                                                                   \
        const type result = real arguments;                                                        \
        step(1);                                                                                   \
        if (steps_left > 1)                                                                        \
            steps_left -= 2;                                                                       \
        return result;                                                                             \
    }
STEP(int, shmview_lock_until, (struct shmview_segment * s, int64_t deadline), (s, deadline))
STEP(int, shmview_switch, (struct shmview_segment * s, const char *layout), (s, layout))
STEP(int, shmview_unlock, (struct shmview_segment * s), (s))
STEP(int, shmview_word_wake, (const uint32_t *word, int n), (word, n))
STEP(int, shmview_word_wait, (const uint32_t *word, uint32_t value, int64_t deadline),
     (word, value, deadline))
STEP(int, MPI_Irecv,
     (void *bytes, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
      MPI_Request *request),
     (bytes, n, type, from, tag, comm, request))
STEP(int, MPI_Isend,
     (const void *bytes, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
      MPI_Request *request),
     (bytes, n, type, to, tag, comm, request))
STEP(int, MPI_Reduce_local, (const void *in, void *inout, int n, MPI_Datatype type, MPI_Op op),
     (in, inout, n, type, op))

static struct shmview_mpi *job;

static int open_job(void)
{
    static const int64_t shape[] = {N};
    static const struct shmview_view_spec view = {
        .name = "numbers", .format = "int32", .ndim = 1, .shape = shape};
    static const struct shmview_mpi_layout layouts[] = {
        {.name = "first", .views = &view, .n_views = 1},
        {.name = "second", .views = &view, .n_views = 1}};
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .lifetime = SHMVIEW_MANUAL,
                                          .size = 4 * N * (1 + (uint64_t)ranks_n()),
                                          .timeout_ns = 8000000000,
                                          .layouts = layouts,
                                          .n_layouts = 2};
    return shmview_mpi_open(MPI_COMM_WORLD, NULL, "killed", &spec, &job);
}

static int run(const char *which, const struct shmview_view *from, const struct shmview_view *to,
               int value, const char *phase)
{
    ranks_barrier();
    const int is_bcast = strcmp(which, "bcast") == 0;
    if (!is_bcast)
        OK(shmview_fill_int64(from, value));
    else if (ranks_me() == 0)
        OK(shmview_fill_int64(to, value));
    ranks_barrier();
    return is_bcast ? shmview_mpi_bcast(job, to, 0, phase)
                    : shmview_mpi_allreduce(job, from, to, MPI_MAX, phase);
}

static int kill_one(int rank, int at, const char *which)
{
    struct shmview_view from, to;
    CHECK(open_job() >= 0);
    struct shmview_segment *segment = shmview_mpi_segment(job);
    OK(shmview_view_cast(segment, "int32", 0, 4 * N, &to));
    OK(shmview_view_cast(segment, "int32", 4 * N * (1 + (uint64_t)ranks_me()), 4 * N, &from));
    OK(run(which, &from, &to, 1, "first"));
    if (ranks_me() == rank)
        steps_left = at;
    const int result = run(which, &from, &to, 2, "second");
    fprintf(stderr, "rank %d: %d %s\n", ranks_me(), result,
            result < 0 ? shmview_mpi_error_text() : "");
    /* The others of the job may wait for the rank that is dead. */
    if (result < 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return ranks_end();
}

/* Each node has the first result, or the second one, or its lock reports an owner that has died
 * inside. */
static int look(void)
{
    struct shmview_view to;
    struct shmview_phase phase;
    CHECK(open_job() >= 0);
    struct shmview_segment *segment = shmview_mpi_segment(job);
    OK(shmview_view_cast(segment, "int32", 0, 4 * N, &to));
    OK(shmview_phase_get(segment, &phase));
    if (shmview_mpi_is_leader(job)) {
        const int taken = shmview_lock(segment);
        struct shmview_summary summary;
        OK(shmview_summarize(&to, &summary));
        const int wanted = strcmp(phase.name, "second") == 0 ? 2 : 1;
        CHECK(strcmp(phase.name, "second") == 0 || strcmp(phase.name, "first") == 0);
        const int is_whole = summary.min_int64 == wanted && summary.max_int64 == wanted;
        /* The root's own bytes are those that its program has stored. */
        CHECK(is_whole || taken == SHMVIEW_OWNER_DIED || ranks_me() == 0);
        fprintf(stderr, "node %d: phase %s, %s%s\n", shmview_mpi_node(job, ranks_me()), phase.name,
                is_whole ? "whole" : "not whole", taken == 1 ? ", the owner died" : "");
        OK(shmview_unlock(segment));
    }
    ranks_barrier();
    struct shmview_connection *connection;
    const int is_leader = shmview_mpi_is_leader(job);
    OK(shmview_connect(NULL, 0, &connection));
    OK(shmview_mpi_close(job));
    if (is_leader)
        OK(shmview_remove(connection, "killed"));
    OK(shmview_disconnect(connection));
    return ranks_end();
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    if (argc == 2)
        return look();
    CHECK(argc == 4);
    return kill_one(atoi(argv[1]), atoi(argv[2]), argv[3]);
}
