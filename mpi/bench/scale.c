/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of docs/SCALE.md: scale.sh runs this on 1 to 3 nodes. Rank 0 prints one line for each
 * figure: the number of nodes, the name, and the time in microseconds, each the median of the
 * rounds, in which the slowest rank counts.
 *
 *     latency     one way of 8 bytes between two leaders
 *     piece       one way of 1 MiB between two leaders, one of 16 in a row
 *     meet        a collective within one node, without elements
 *     combine     each MiB that a rank contributes to an allreduce within one node
 *     add         a leader adds 1 MiB of float32 to another
 *     open        opens and closes a job whose daemon runs
 *     bcast.N, allreduce.N, halo.N    collectives of N bytes; the halo of blocks of N bytes */
#include <math.h>
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS  9
#define MIB     ((int64_t)1 << 20)
#define LARGEST (16 * MIB)
#define PINGS   50
#define PIECES  16

static int me, n, n_nodes;
static int place; /* among the ranks of this node */
static double times[ROUNDS];

static void need(int is_true, const char *what)
{
    if (is_true)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", me, what, shmview_mpi_error_text());
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static int is_less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Stores the time of the slowest rank since begin, divided by parts, in microseconds. */
static void store(int round, double begin, double parts)
{
    double mine = 1e6 * (MPI_Wtime() - begin) / parts;
    MPI_Allreduce(&mine, &times[round], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static double print(const char *name, int64_t bytes, double less)
{
    qsort(times, ROUNDS, sizeof *times, is_less);
    const double time = times[ROUNDS / 2] - less;
    if (me == 0 && bytes)
        printf("%d\t%s.%lld\t%.1f\n", n_nodes, name, (long long)bytes, time);
    else if (me == 0)
        printf("%d\t%s\t%.2f\n", n_nodes, name, time);
    return time;
}

static int64_t soon(void)
{
    return shmview_deadline(INT64_C(60000000000));
}

/* Messages between the leaders of the first two nodes; the other ranks wait. */
static void measure_network(struct shmview_mpi *job)
{
    struct shmview_mpi_link *link = NULL;
    struct shmview_view small, piece;
    struct shmview_segment *segment = shmview_mpi_segment(job);
    MPI_Comm leaders;
    int leader = -1;
    MPI_Comm_split(MPI_COMM_WORLD, shmview_mpi_is_leader(job) ? 0 : MPI_UNDEFINED, me, &leaders);
    if (leaders != MPI_COMM_NULL) {
        need(shmview_mpi_link_open(leaders, &link) == 0, "a link");
        MPI_Comm_rank(leaders, &leader);
    }
    need(shmview_view_cast(segment, "B", 0, 8, &small) == 0, "a view");
    need(shmview_view_cast(segment, "B", 0, MIB, &piece) == 0, "a view");
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < 2 * PINGS && (leader == 0 || leader == 1); i++)
            need((i % 2 == leader ? shmview_mpi_send(link, &small, 1 - leader, soon())
                                  : shmview_mpi_receive(link, &small, 1 - leader, soon())) == 0,
                 "a ping");
        store(round, begin, 2 * PINGS);
    }
    print("latency", 0, 0);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < PIECES && (leader == 0 || leader == 1); i++)
            need((leader == 0 ? shmview_mpi_send(link, &piece, 1, soon())
                              : shmview_mpi_receive(link, &piece, 0, soon())) == 0,
                 "a piece");
        store(round, begin, PIECES);
    }
    print("piece", 0, 0);
    shmview_mpi_link_close(link);
    if (leaders != MPI_COMM_NULL)
        MPI_Comm_free(&leaders);
}

/* The views of a job: the result, and this rank's contribution, of so many bytes. */
static void make_views(struct shmview_mpi *job, int64_t bytes, struct shmview_view *ret_to,
                       struct shmview_view *ret_from)
{
    struct shmview_segment *segment = shmview_mpi_segment(job);
    const uint64_t at = (uint64_t)LARGEST * (uint64_t)(place + 1);
    need(shmview_view_cast(segment, "float32", 0, (uint64_t)bytes, ret_to) == 0, "a view");
    need(shmview_view_cast(segment, "float32", at, (uint64_t)bytes, ret_from) == 0, "a view");
}

static struct shmview_mpi *open_job(MPI_Comm comm, const char *name, int n_places)
{
    struct shmview_mpi *job = NULL;
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .size = (uint64_t)LARGEST * (uint64_t)(n_places + 1)};
    need(shmview_mpi_open(comm, NULL, name, &spec, &job) == 0, "open");
    return job;
}

static double time_bcast(struct shmview_mpi *job, const char *name, int64_t bytes)
{
    struct shmview_view to;
    need(shmview_view_cast(shmview_mpi_segment(job), "B", 0, (uint64_t)bytes, &to) == 0, "a view");
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        need(shmview_mpi_bcast(job, &to, 0, NULL) == 0, "bcast");
        store(round, begin, 1);
    }
    return print(name, strcmp(name, "meet") == 0 ? 0 : bytes, 0);
}

static void time_allreduce(struct shmview_mpi *job, const char *name, int64_t bytes, double less)
{
    struct shmview_view to, from;
    make_views(job, bytes, &to, &from);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        need(shmview_mpi_allreduce(job, &from, &to, MPI_SUM, NULL) == 0, "allreduce");
        store(round, begin, less > 0 ? (double)bytes / MIB : 1);
    }
    print(name, less > 0 ? 0 : bytes, less > 0 ? less * MIB / (double)bytes : 0);
}

/* Within one node, which all nodes do at the same time. */
static void measure_node(int n_places, MPI_Comm node)
{
    struct shmview_mpi *job = open_job(node, "node", n_places);
    const double meet = time_bcast(job, "meet", 8);
    time_allreduce(job, "combine", LARGEST, meet);
    need(shmview_mpi_close(job) == 0, "close");
}

static void measure_add(void)
{
    float *a = calloc(1, MIB), *b = calloc(1, MIB);
    need(a && b, "memory");
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < 8 && me == 0; i++)
            MPI_Reduce_local(a, b, (int)(MIB / 4), MPI_FLOAT, MPI_SUM);
        store(round, begin, 8);
    }
    print("add", 0, 0);
    free(a);
    free(b);
}

static void measure_halo(struct shmview_mpi *job, int64_t bytes)
{
    struct shmview_mpi_link *link = NULL;
    struct shmview_mpi_blocks *split = NULL;
    int grid[2] = {0, 0};
    MPI_Dims_create(n, 2, grid);
    const int64_t side = (int64_t)sqrt((double)bytes / 8);
    const int64_t shape[] = {side * grid[0], side * grid[1]}, width[] = {1, 1};
    const struct shmview_mpi_split_spec spec = {
        .format = "float64", .ndim = 2, .shape = shape, .halo = width, .grid = grid};
    need(shmview_mpi_link_open(MPI_COMM_WORLD, &link) == 0, "a link");
    need(shmview_mpi_split(link, &spec, shmview_mpi_segment(job), 0, soon(), &split) == 0,
         "a split");
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < 5; i++)
            need(shmview_mpi_halo(split, soon()) == 0, "a halo");
        store(round, begin, 5);
    }
    print("halo", bytes, 0);
    shmview_mpi_split_free(split);
    shmview_mpi_link_close(link);
}

static void measure_open(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        struct shmview_mpi *job = NULL;
        const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec, .size = 4096};
        need(shmview_mpi_open(MPI_COMM_WORLD, NULL, "open", &spec, &job) == 0, "open");
        need(shmview_mpi_close(job) == 0, "close");
        store(round, begin, 1);
    }
    print("open", 0, 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm node;
    int n_places;
    need(shmview_mpi_node_comm(MPI_COMM_WORLD, &node) == 0, "the node");
    MPI_Comm_size(node, &n_places);
    MPI_Comm_rank(node, &place);
    struct shmview_mpi *job = open_job(MPI_COMM_WORLD, "scale", n_places);
    n_nodes = shmview_mpi_nodes(job);
    /* Every page is there. */
    memset(shmview_data(shmview_mpi_segment(job)), 0, shmview_size(shmview_mpi_segment(job)));
    if (n_nodes > 1)
        measure_network(job);
    measure_add();
    measure_node(n_places, node);
    measure_open();
    for (int64_t bytes = 65536; bytes <= LARGEST; bytes *= 16) {
        time_bcast(job, "bcast", bytes);
        time_allreduce(job, "allreduce", bytes, 0);
        measure_halo(job, bytes);
    }
    need(shmview_mpi_close(job) == 0, "close");
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
