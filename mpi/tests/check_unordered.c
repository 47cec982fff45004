/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: 2. Reductions that do not commute, among ranks whose order is not that of the nodes: the
 * results, a rank that fails before the others wait for it, and one that is late. */
#include <dlfcn.h>
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "support_ranks.h"

#define N 1000

static struct shmview_mpi *job;
static int me; /* in the communicator of the job */
static bool fails, is_late;

/* The library calls these functions in place of those of libshmview and MPI. */
int shmview_wrap(void *data, uint64_t n, unsigned flags, void (*release)(void *), void *arg,
                 struct shmview_segment **ret_segment)
{
    static int (*real)(void *, uint64_t, unsigned, void (*)(void *), void *,
                       struct shmview_segment **);
    if (fails)
        return -SHMVIEW_ERR_NO_MEMORY;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "shmview_wrap");
    return real(data, n, flags, release, arg, ret_segment);
}

int MPI_Iallreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    if (is_late && n == N)
        nanosleep(&(struct timespec){.tv_sec = 5}, NULL);
    return PMPI_Iallreduce(in, out, n, type, op, comm, request);
}

struct affine {
    uint32_t factor, sum;
};

/* Composition of x -> factor x + sum: associative, but it does not commute. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    const struct affine *a = in;
    struct affine *b = inout;
    for (int i = 0; i < *n; i++)
        b[i] = (struct affine){a[i].factor * b[i].factor, a[i].sum * b[i].factor + b[i].sum};
}

static struct affine contribution(int rank, int i)
{
    return (struct affine){(uint32_t)(2 * rank + i + 3), (uint32_t)(5 * rank + i)};
}

static void open_job(MPI_Comm comm, const char *name, int64_t timeout_ns)
{
    const struct shmview_view_spec bytes = {
        .name = "bytes", .format = "B", .ndim = 1, .shape = (int64_t[]){8}};
    const struct shmview_mpi_layout layout = {.name = "only", .views = &bytes, .n_views = 1};
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .size =
                                              (1 + (uint64_t)ranks_n()) * N * sizeof(struct affine),
                                          .timeout_ns = timeout_ns,
                                          .layouts = &layout,
                                          .n_layouts = 1};
    OK(shmview_mpi_open(comm, NULL, name, &spec, &job));
}

/* Reduces to all ranks, or to root, and compares what succeeds. */
static int reduce(MPI_Op op, int root)
{
    struct shmview_view from, to;
    const uint64_t bytes = N * sizeof(struct affine);
    OK(shmview_view_cast(shmview_mpi_segment(job), "T{I:a:I:b:}", 0, bytes, &to));
    OK(shmview_view_cast(shmview_mpi_segment(job), "T{I:a:I:b:}", (1 + (uint64_t)me) * bytes, bytes,
                         &from));
    struct affine *mine = (struct affine *)from.data, *result = (struct affine *)to.data;
    for (int i = 0; i < N; i++)
        mine[i] = contribution(me, i);
    const int status = root < 0 ? shmview_mpi_allreduce(job, &from, &to, op, NULL)
                                : shmview_mpi_reduce(job, &from, &to, op, root, NULL);
    if (status < 0 || (root >= 0 && shmview_mpi_node(job, root) != shmview_mpi_node(job, me)))
        return status;
    for (int i = 0; i < N; i++) {
        struct affine wanted = contribution(ranks_n() - 1, i);
        for (int rank = ranks_n() - 2; rank >= 0; rank--) {
            struct affine before = contribution(rank, i);
            int n = 1;
            compose(&before, &wanted, &n, NULL);
        }
        CHECK(memcmp(&result[i], &wanted, sizeof wanted) == 0);
    }
    return status;
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Op op;
    ranks_begin(&argc, &argv);
    /* Even ranks before odd ones, so that the ranks of two nodes take turns. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, ranks_me() % 2 * ranks_n() + ranks_me(), &comm);
    MPI_Comm_rank(comm, &me);
    MPI_Op_create(compose, 0, &op);
    open_job(comm, "unordered", 20000000000);
    const bool is_unordered = shmview_mpi_nodes(job) > 1;
    CHECK(!is_unordered || shmview_mpi_node(job, 0) != shmview_mpi_node(job, 1));
    OK(reduce(op, -1));
    ranks_barrier();
    OK(reduce(op, ranks_n() - 1));
    ranks_barrier();

    fails = me == 1;
    REFUSED(reduce(op, -1), NO_MEMORY);
    fails = false;
    CHECK(!is_unordered || strncmp(shmview_mpi_error_text(), "rank 1: ", 8) == 0);
    const bool is_here = shmview_mpi_node(job, 1) == shmview_mpi_node(job, me);
    CHECK(!is_unordered || shmview_mpi_failed_rank(job) == (is_here ? 1 : -1));
    REFUSED(reduce(op, -1), LOST);
    OK(shmview_mpi_close(job));

    open_job(comm, "late", 3000000000);
    is_late = me == ranks_n() - 1;
    if (is_unordered)
        REFUSED(reduce(op, -1), TIMED_OUT);
    ranks_barrier();
    OK(shmview_mpi_close(job));
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    return ranks_end();
}
