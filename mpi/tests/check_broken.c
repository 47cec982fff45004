/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: 2. A rank dies or fails while another node is late: the errors of all ranks, and when they
 * come. */
#include <dlfcn.h>
#include <mpi.h>
#include <shmview/family.h>
#include <shmview/mpi.h>
#include <stdbool.h>
#include <string.h>

#include "support_ranks.h"

/* Node 0 has the leader FIRST and the member MEMBER, node 1 the leader OTHER and one more rank. */
enum {
    FIRST,
    MEMBER,
    OTHER
};

static struct shmview_mpi *job;
static struct shmview_view view;
static bool takes_for_dead, informs, fails, is_locked;

/* The library calls these functions in place of those of libshmview and MPI. */
int shmview_process_has_ended(uint64_t name)
{
    static int (*real)(uint64_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "shmview_process_has_ended");
    if (!takes_for_dead)
        return real(name);
    if (informs)
        MPI_Send(NULL, 0, MPI_BYTE, MEMBER, 0, MPI_COMM_WORLD);
    informs = false;
    return 1;
}

int shmview_lock_until(struct shmview_segment *segment, int64_t deadline)
{
    static int (*real)(struct shmview_segment *, int64_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "shmview_lock_until");
    return is_locked ? -SHMVIEW_ERR_TIMED_OUT : real(segment, deadline);
}

int MPI_Irecv(void *bytes, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    return fails ? MPI_ERR_OTHER : PMPI_Irecv(bytes, n, type, from, tag, comm, request);
}

static void await_rank(int rank)
{
    MPI_Irecv(NULL, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
}

static void open_job(const char *name, int64_t timeout_ns)
{
    const struct shmview_view_spec bytes = {
        .name = "bytes", .format = "B", .ndim = 1, .shape = (int64_t[]){8}};
    const struct shmview_mpi_layout layout = {.name = "only", .views = &bytes, .n_views = 1};
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .size = 4096,
                                          .timeout_ns = timeout_ns,
                                          .layouts = &layout,
                                          .n_layouts = 1};
    ranks_barrier(); /* the close of the last job may have waited until its deadline */
    OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, name, &spec, &job));
    OK(shmview_view_cast(shmview_mpi_segment(job), "B", 0, 4096, &view));
    takes_for_dead = informs = fails = false;
}

/* The leader of the other node comes after a member of this one has its error, so that the member
 * cannot have waited for that node. */
static void check_early(void)
{
    open_job("early", 20000000000);
    takes_for_dead = informs = ranks_me() == FIRST;
    if (ranks_me() == MEMBER)
        await_rank(FIRST);
    if (ranks_me() == OTHER)
        await_rank(MEMBER);
    REFUSED(shmview_mpi_bcast(job, &view, 0, NULL), PEER);
    if (ranks_me() == MEMBER)
        MPI_Send(NULL, 0, MPI_BYTE, OTHER, 0, MPI_COMM_WORLD);
    CHECK(strcmp(shmview_mpi_error_text(), "rank 1 on this node has died") == 0);
    CHECK(shmview_mpi_failed_rank(job) == (ranks_me() < OTHER ? MEMBER : -1));
    REFUSED(shmview_mpi_bcast(job, &view, 0, NULL), LOST);
    ranks_barrier();
    OK(shmview_mpi_close(job));
}

/* No rank of the other node comes, and the leader learns that at the deadline. The reason of its
 * failure is still the death. */
static void check_reason(void)
{
    open_job("reason", 3000000000);
    takes_for_dead = ranks_me() == FIRST;
    if (ranks_me() == FIRST) {
        REFUSED(shmview_mpi_bcast(job, &view, 0, NULL), PEER);
        CHECK(strcmp(shmview_mpi_error_text(), "rank 1 on this node has died") == 0);
    }
    ranks_barrier();
    if (ranks_me() == MEMBER)
        REFUSED(shmview_mpi_bcast(job, &view, 0, NULL), PEER);
    const int closed = shmview_mpi_close(job);
    CHECK(closed == (ranks_me() < OTHER ? 0 : -SHMVIEW_ERR_TIMED_OUT));
}

/* The arguments of a rank are wrong, but the nodes cannot agree on that, so that the job does not
 * go on. */
static void check_wrong(void)
{
    open_job("wrong", 3000000000);
    if (ranks_me() < OTHER) {
        REFUSED(shmview_mpi_bcast(job, ranks_me() == MEMBER ? NULL : &view, 0, NULL), TIMED_OUT);
        CHECK(strcmp(shmview_mpi_error_text(),
                     "bcast: the deadline passed before every rank came") == 0);
        CHECK(shmview_mpi_failed_rank(job) == -1);
        REFUSED(shmview_mpi_bcast(job, &view, 0, NULL), LOST);
    }
    ranks_barrier();
    const int closed = shmview_mpi_close(job);
    CHECK(closed == (ranks_me() < OTHER ? 0 : -SHMVIEW_ERR_TIMED_OUT));
}

/* A leader reports an error of MPI in a transfer. It is not known which rank has failed. */
static void check_report(void)
{
    open_job("report", 3000000000);
    fails = ranks_me() == OTHER;
    const int result = shmview_mpi_bcast(job, &view, 0, NULL);
    fails = false;
    CHECK(ranks_me() < OTHER || result == -SHMVIEW_ERR_PEER);
    CHECK(shmview_mpi_failed_rank(job) == -1);
    ranks_barrier();
    shmview_mpi_close(job);
}

/* A leader cannot take its lock. That is no wrong argument, so no node goes on. */
static void check_lock(void)
{
    open_job("lock", 20000000000);
    is_locked = ranks_me() == OTHER;
    REFUSED(shmview_mpi_bcast(job, &view, 0, NULL), TIMED_OUT);
    is_locked = false;
    REFUSED(shmview_mpi_bcast(job, &view, 0, NULL), LOST);
    OK(shmview_mpi_close(job));
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    open_job("nodes", 20000000000);
    const bool has_nodes = shmview_mpi_nodes(job) > 1;
    CHECK(!has_nodes || (shmview_mpi_node(job, MEMBER) == shmview_mpi_node(job, FIRST) &&
                         shmview_mpi_node(job, OTHER) != shmview_mpi_node(job, FIRST)));
    OK(shmview_mpi_close(job));
    if (has_nodes) {
        check_early();
        check_reason();
        check_wrong();
        check_report();
        check_lock();
    }
    return ranks_end();
}
