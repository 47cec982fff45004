/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: 3. Collectives of views whose strides differ between the nodes, in one piece and in many.
 */
#include <mpi.h>
#include <shmview/mpi.h>

#include "support_ranks.h"

static int32_t value_at(int64_t i, int64_t j)
{
    return (int32_t)(i * 1000 + j);
}

static void store(const struct shmview_view *view, int32_t more)
{
    for (ptrdiff_t i = 0; i < view->shape[0]; i++)
        for (ptrdiff_t j = 0; j < view->shape[1]; j++)
            SHMVIEW_AT2(int32_t, view, i, j) = value_at(i, j) + more;
}

static void check(const struct shmview_view *view, int32_t times, int32_t more)
{
    for (ptrdiff_t i = 0; i < view->shape[0]; i++)
        for (ptrdiff_t j = 0; j < view->shape[1]; j++)
            CHECK(SHMVIEW_AT2(int32_t, view, i, j) == times * value_at(i, j) + more);
}

static void check_shape(int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    const uint64_t bytes = 4 * (uint64_t)(rows * columns);
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .size = bytes * (1 + (uint64_t)ranks_n())};
    struct shmview_mpi *job;
    struct shmview_view from, to;
    OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, "strides", &spec, &job));
    const int node = shmview_mpi_node(job, ranks_me());
    /* C order on node 0, Fortran order on the others. */
    const int64_t of_c[] = {4 * columns, 4}, of_fortran[] = {4, 4 * rows};
    struct shmview_view_spec view = {
        .format = "int32", .ndim = 2, .shape = shape, .strides = node == 0 ? of_c : of_fortran};
    OK(shmview_view_make(shmview_mpi_segment(job), &view, &to));
    view.offset = bytes * (1 + (uint64_t)ranks_me());
    OK(shmview_view_make(shmview_mpi_segment(job), &view, &from));
    store(&from, 0);
    OK(shmview_mpi_allreduce(job, &from, &to, MPI_SUM, NULL));
    check(&to, ranks_n(), 0);
    ranks_barrier();
    if (ranks_me() == 0)
        store(&to, 7);
    ranks_barrier();
    OK(shmview_mpi_bcast(job, &to, 0, NULL));
    check(&to, 1, 7);
    OK(shmview_mpi_close(job));
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    check_shape(3, 50);
    check_shape(3, 500000);
    check_shape(500000, 3);
    return ranks_end();
}
