/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: 2. Every collective with each format, order of strides and dimension, beside plain MPI. */
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_ranks.h"
#include "support_regions.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

static struct shmview_mpi *job;

/* Formats whose bytes are moved, and those of numbers that are also combined. */
static const char *const formats[] = {"int8",        "uint16",        "<i4", ">i4", "uint64",
                                      "float32",     "float64",       ">f8", "?",   "complex64",
                                      "T{h:a:d:b:}", "T{<h:a:<d:b:}", "5s"};

/* Shapes of up to 4 dimensions. */
static const struct {
    uint32_t ndim;
    int64_t shape[4];
} shapes[] = {{0, {0}}, {1, {7}}, {2, {3, 5}}, {3, {2, 3, 4}}, {4, {2, 1, 3, 2}}, {2, {0, 3}}};

/* This rank's view of region i, of the format f, shape s and order of strides k. rows multiplies
 * the first dimension. */
static struct shmview_view view_of(int region, size_t f, size_t s, unsigned k, int rows)
{
    int64_t shape[4];
    memcpy(shape, shapes[s].shape, sizeof shape);
    shape[0] *= rows;
    return region_view(shmview_mpi_segment(job), region, formats[f], shapes[s].ndim, shape, k);
}

/* Regions: 0 is common, 1 + r that of rank r. */
static int own_region(void)
{
    return 1 + ranks_me();
}

static void check_bcast(size_t f, size_t s, unsigned k, int root)
{
    const int node = shmview_mpi_node(job, ranks_me());
    struct shmview_view view = view_of(0, f, s, k + (unsigned)node, 1);
    char *wanted = region_pattern(&view, root);
    ranks_barrier();
    if (ranks_me() == root)
        region_store(&view, wanted);
    MPI_Ibcast(wanted, (int)view.nbytes, MPI_BYTE, root, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    OK(shmview_mpi_bcast(job, &view, root, k % 2 ? "done" : NULL));
    CHECK(region_equal(&view, wanted));
    free(wanted);
}

static void check_scatter(size_t f, size_t s, unsigned k, int root)
{
    struct shmview_view from = view_of(0, f, s, k, ranks_n());
    struct shmview_view to = view_of(own_region(), f, s, k + 1, 1);
    char *all = region_pattern(&from, root + 7), *wanted = region_pattern(&to, -1);
    ranks_barrier();
    if (ranks_me() == root)
        region_store(&from, all);
    const int n = (int)to.nbytes;
    MPI_Iscatter(all, n, MPI_BYTE, wanted, n, MPI_BYTE, root, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    OK(shmview_mpi_scatter(job, ranks_me() == root ? &from : NULL, &to, root, "done"));
    CHECK(region_equal(&to, wanted));
    free(all);
    free(wanted);
}

static void check_gather(size_t f, size_t s, unsigned k, int root)
{
    struct shmview_view to = view_of(0, f, s, k, ranks_n());
    struct shmview_view from = view_of(own_region(), f, s, k + 1, 1);
    char *mine = region_pattern(&from, ranks_me()), *wanted = region_pattern(&to, -1);
    region_store(&from, mine);
    const int n = (int)from.nbytes;
    MPI_Igather(mine, n, MPI_BYTE, wanted, n, MPI_BYTE, root, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    OK(shmview_mpi_gather(job, &from, ranks_me() == root ? &to : NULL, root, NULL));
    CHECK(ranks_me() != root || region_equal(&to, wanted));
    ranks_barrier();
    MPI_Iallgather(mine, n, MPI_BYTE, wanted, n, MPI_BYTE, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    OK(shmview_mpi_allgather(job, &from, &to, "done"));
    CHECK(region_equal(&to, wanted));
    free(mine);
    free(wanted);
}

static void check_alltoall(size_t f, size_t s, unsigned k)
{
    struct shmview_view from = view_of(own_region(), f, s, k, ranks_n());
    struct shmview_view to = view_of(own_region() + ranks_n(), f, s, k + 1, ranks_n());
    char *mine = region_pattern(&from, ranks_me() + 3), *wanted = region_pattern(&to, -1);
    region_store(&from, mine);
    const int n = (int)from.nbytes / ranks_n();
    MPI_Ialltoall(mine, n, MPI_BYTE, wanted, n, MPI_BYTE, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    OK(shmview_mpi_alltoall(job, &from, &to, NULL));
    CHECK(region_equal(&to, wanted));
    free(mine);
    free(wanted);
}

/* Beside the same operation of MPI on doubles; all values are small integers. */
static void check_reduce(size_t f, size_t s, unsigned k, int root, MPI_Op op)
{
    struct shmview_view from = view_of(own_region(), f, s, k, 1);
    struct shmview_view to =
        view_of(0, f, s, k + 1 + (unsigned)shmview_mpi_node(job, ranks_me()), 1);
    const int n = (int)(from.nbytes / from.itemsize);
    double *mine = calloc((size_t)n + 1, sizeof *mine),
           *wanted = calloc((size_t)n + 1, sizeof *mine);
    CHECK(mine && wanted);
    for (int i = 0; i < n; i++) {
        mine[i] = 1 + (i + ranks_me()) % 3;
        region_set(&from, i, mine[i]);
    }
    MPI_Iallreduce(mine, wanted, n, MPI_DOUBLE, op, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    OK(shmview_mpi_reduce(job, &from, &to, op, root, NULL));
    const int is_here = shmview_mpi_node(job, root) == shmview_mpi_node(job, ranks_me());
    for (int i = 0; i < n && is_here; i++)
        CHECK(region_get(&to, i) == wanted[i]);
    ranks_barrier();
    OK(shmview_mpi_allreduce(job, &from, &to, op, "done"));
    for (int i = 0; i < n; i++)
        CHECK(region_get(&to, i) == wanted[i]);
    free(mine);
    free(wanted);
}

/* Whether an operation of MPI is defined for a format. */
static int is_defined(size_t f, int is_sum)
{
    const char *format = formats[f];
    if (strcmp(format, "?") == 0 || format[0] == 'T' || strcmp(format, "5s") == 0)
        return 0;
    return is_sum || format[0] != 'c';
}

static void check_all(void)
{
    unsigned turn = 0;
    for (size_t f = 0; f < N(formats); f++)
        for (size_t s = 0; s < N(shapes); s++)
            for (unsigned k = 0; k < REGION_ORDERS; k++, turn++) {
                const int root = (int)(turn % (unsigned)ranks_n());
                check_bcast(f, s, k, root);
                if (is_defined(f, turn % 2))
                    check_reduce(f, s, k, root, turn % 2 ? MPI_SUM : turn % 4 ? MPI_MAX : MPI_MIN);
                if (shapes[s].ndim == 0)
                    continue;
                if (turn % 3 == 0)
                    check_scatter(f, s, k, root);
                else if (turn % 3 == 1)
                    check_gather(f, s, k, root);
                else
                    check_alltoall(f, s, k);
            }
}

/* --- Operations ---------------------------------------------------------- */

/* Composition of affine functions x -> a x + b modulo 2^32: associative, but it does not commute.
 */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) {
        uint32_t a[2], b[2];
        memcpy(a, (char *)in + 8 * i, 8);
        memcpy(b, (char *)inout + 8 * i, 8);
        const uint32_t c[2] = {a[0] * b[0], a[1] * b[0] + b[1]};
        memcpy((char *)inout + 8 * i, c, 8);
    }
}

static void check_operations(void)
{
    const int64_t n[] = {2000};
    struct shmview_segment *segment = shmview_mpi_segment(job);
    struct shmview_view from = region_view(segment, own_region(), "T{I:a:I:b:}", 1, n, 1);
    struct shmview_view to = region_view(segment, 0, "T{I:a:I:b:}", 1, n, 0);
    MPI_Op op;
    MPI_Datatype pair;
    MPI_Type_contiguous(8, MPI_BYTE, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    char *mine = region_pattern(&from, ranks_me()), *wanted = region_pattern(&from, -1);
    region_store(&from, mine);
    MPI_Iallreduce(mine, wanted, 2000, pair, op, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    OK(shmview_mpi_allreduce(job, &from, &to, op, NULL));
    CHECK(region_equal(&to, wanted));
    ranks_barrier();
    OK(shmview_mpi_reduce(job, &from, &to, op, ranks_n() - 1, NULL));
    CHECK(ranks_me() != ranks_n() - 1 || region_equal(&to, wanted));
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    free(mine);
    free(wanted);

    /* The greatest value, and the lowest rank that has it. */
    struct {
        double value;
        int rank;
    } own = {.value = ranks_me() % 2, .rank = ranks_me()}, best = {.value = 0};
    MPI_Iallreduce(&own, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
    from = region_view(segment, own_region(), "T{d:value:i:rank:4x}", 0, NULL, 0);
    to = region_view(segment, 0, "T{d:value:i:rank:4x}", 0, NULL, 0);
    memcpy(from.data, &own, sizeof own);
    OK(shmview_mpi_allreduce(job, &from, &to, MPI_MAXLOC, NULL));
    CHECK(memcmp(to.data, &best, 12) == 0);

    /* Bits and truth. */
    from = region_view(segment, own_region(), "uint32", 1, n, 2);
    to = region_view(segment, 0, "uint32", 1, n, 2);
    for (int i = 0; i < 2000; i++)
        region_set(&from, i, 1 << (ranks_me() + i % 3));
    OK(shmview_mpi_allreduce(job, &from, &to, MPI_BOR, NULL));
    for (int i = 0; i < 2000; i++)
        CHECK(region_get(&to, i) == ((1 << ranks_n()) - 1) << i % 3);
    /* In place of the contribution of one member of each node. */
    ranks_barrier();
    for (int i = 0; i < 2000; i++)
        region_set(&from, i, i);
    struct shmview_view first = from;
    for (int r = ranks_n() - 1; r >= 0; r--)
        if (shmview_mpi_node(job, r) == shmview_mpi_node(job, ranks_me()))
            first = region_view(segment, 1 + r, "uint32", 1, n, 2);
    OK(shmview_mpi_allreduce(job, &from, &first, MPI_SUM, NULL));
    for (int i = 0; i < 2000; i++)
        CHECK(region_get(&first, i) == i * ranks_n());
    ranks_barrier();
}

/* --- Errors -------------------------------------------------------------- */

/* Ranks that reduce by different operations, on one node and on two. */
static void check_other_operations(const struct shmview_view *from, const struct shmview_view *to)
{
    const int node = shmview_mpi_node(job, ranks_me()), is_last = ranks_me() == ranks_n() - 1;
    MPI_Op ordered, commuting;
    MPI_Op_create(compose, 0, &ordered);
    MPI_Op_create(compose, 1, &commuting);
    REFUSED(shmview_mpi_allreduce(job, from, to, is_last ? MPI_MAX : MPI_SUM, NULL), INVALID);
    REFUSED(shmview_mpi_reduce(job, from, to, is_last ? MPI_MAX : MPI_SUM, 0, NULL), INVALID);
    REFUSED(shmview_mpi_allreduce(job, from, to, is_last ? ordered : commuting, NULL), INVALID);
    REFUSED(shmview_mpi_allreduce(job, from, to, is_last ? commuting : MPI_SUM, NULL), INVALID);
    if (shmview_mpi_nodes(job) > 1) {
        REFUSED(shmview_mpi_allreduce(job, from, to, node ? MPI_MIN : MPI_MAX, NULL), INVALID);
        CHECK(strstr(shmview_mpi_error_text(), "the nodes do not pass the same root, phase, op"));
        REFUSED(shmview_mpi_allreduce(job, from, to, node ? ordered : commuting, NULL), INVALID);
    }
    MPI_Op_free(&ordered);
    MPI_Op_free(&commuting);
}

static void check_errors(void)
{
    struct shmview_segment *segment = shmview_mpi_segment(job);
    const int64_t n[] = {8}, m[] = {9};
    struct shmview_view a = region_view(segment, own_region(), "float32", 1, n, 0);
    struct shmview_view b = region_view(segment, 0, "float32", 1, n, 0);
    struct shmview_view c = region_view(segment, 0, "float32", 1, m, 0);
    struct shmview_view d = region_view(segment, 0, "?", 1, n, 0);
    const int is_last = ranks_me() == ranks_n() - 1;
    REFUSED(shmview_mpi_bcast(job, &b, ranks_n(), NULL), INVALID);
    REFUSED(shmview_mpi_bcast(job, &b, -1, NULL), INVALID);
    REFUSED(shmview_mpi_bcast(job, is_last ? &c : &b, 0, NULL), INVALID);
    REFUSED(shmview_mpi_bcast(job, is_last ? NULL : &b, 0, NULL), INVALID);
    CHECK(shmview_mpi_failed_rank(job) == -1);
    REFUSED(shmview_mpi_bcast(job, &b, 0, "unknown"), INVALID);
    CHECK(strstr(shmview_mpi_error_text(), "without a layout 'unknown'"));
    REFUSED(shmview_mpi_bcast(job, &b, is_last, NULL), INVALID);
    REFUSED(shmview_mpi_allreduce(job, &a, &c, MPI_SUM, NULL), INVALID);
    REFUSED(shmview_mpi_allreduce(job, &d, &d, MPI_SUM, NULL), CONVERSION);
    REFUSED(shmview_mpi_allgather(job, &a, &b, NULL), INVALID);
    if (is_last)
        REFUSED(shmview_mpi_bcast(job, &b, 0, NULL), INVALID);
    else
        REFUSED(shmview_mpi_allreduce(job, &b, &b, MPI_SUM, NULL), INVALID);
    check_other_operations(&a, &b);
    /* The handle is not broken. */
    OK(shmview_mpi_bcast(job, &b, 0, NULL));
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    const struct shmview_view_spec bytes = {
        .name = "bytes", .format = "B", .ndim = 1, .shape = (int64_t[]){8}};
    const struct shmview_mpi_layout done = {.name = "done", .views = &bytes, .n_views = 1};
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .size = REGION_BYTES * (1 + 2 * (uint64_t)ranks_n()),
                                          .timeout_ns = 20000000000,
                                          .layouts = &done,
                                          .n_layouts = 1};
    OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, "collectives", &spec, &job));
    const char *nodes = getenv("NODES_N");
    CHECK(shmview_mpi_nodes(job) == (nodes ? atoi(nodes) : 1));
    check_errors();
    check_operations();
    check_all();
    OK(shmview_mpi_close(job));
    return ranks_end();
}
