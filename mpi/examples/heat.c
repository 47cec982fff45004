/* SPDX-License-Identifier: Apache-2.0 */
/* heat [-n CELLS] [-s STEPS] [-o FILE.npy] [-c]
 *
 * Heat in a square plate, whose rim has fixed temperatures: 100 degrees at the left, 0 elsewhere.
 * In each step a cell becomes the mean of its four neighbours. Each rank has a block of the plate,
 * with a halo of one cell, in a segment that it shares with the other ranks of its node. -o writes
 * the last state as an array of numpy, -c compares it with the same computation on one rank.
 *
 *     mpiexec -n 4 heat -n 1000 -s 500 -o plate.npy */
#include <math.h>
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEFT   100.0
#define WAIT_S 60

static int rank;

static int64_t deadline(void)
{
    return shmview_deadline((int64_t)WAIT_S * 1000000000);
}

/* Ends all ranks if a call has failed. */
static void must(int result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, shmview_mpi_error_text());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The plate at one time. */
struct plate {
    struct shmview_mpi_blocks *split;
    struct shmview_view block; /* with its halo */
};

/* The rim lies in the halos of the blocks at the edges of the plate. */
static void plate_set_rim(struct plate *plate)
{
    const struct shmview_view *block = &plate->block;
    int place[2];
    const double zero = 0;
    must(shmview_fill(block, &zero), "a plate");
    must(shmview_mpi_split_grid(plate->split, NULL, place), "a plate");
    for (ptrdiff_t i = 0; place[1] == 0 && i < block->shape[0]; i++)
        SHMVIEW_AT2(double, block, i, 0) = LEFT;
}

/* Computes the cells of one time from those before, and returns the largest change. */
static double plate_step(struct plate *to, const struct plate *from)
{
    double change = 0;
    for (ptrdiff_t i = 1; i + 1 < to->block.shape[0]; i++) {
        const double *above = SHMVIEW_ROW(double, &from->block, i - 1);
        const double *here = SHMVIEW_ROW(double, &from->block, i);
        const double *below = SHMVIEW_ROW(double, &from->block, i + 1);
        double *next = SHMVIEW_ROW(double, &to->block, i);
        for (ptrdiff_t j = 1; j + 1 < to->block.shape[1]; j++) {
            next[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
            change = fmax(change, fabs(next[j] - here[j]));
        }
    }
    return change;
}

/* Computes the plate on one rank, for -c: n by n cells with the rim around them. */
static double *compute_alone(int64_t n, int steps)
{
    size_t side = (size_t)n + 2;
    double *from = calloc(side * side, sizeof *from), *to = calloc(side * side, sizeof *to);
    if (!from || !to) {
        fprintf(stderr, "no memory for the comparison\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    for (size_t i = 0; i < side; i++)
        from[i * side] = to[i * side] = LEFT;
    for (int step = 0; step < steps; step++) {
        for (size_t i = 1; i + 1 < side; i++)
            for (size_t j = 1; j + 1 < side; j++)
                to[i * side + j] = 0.25 * (from[(i - 1) * side + j] + from[(i + 1) * side + j] +
                                           from[i * side + j - 1] + from[i * side + j + 1]);
        double *swapped = from;
        from = to;
        to = swapped;
    }
    free(to);
    return from;
}

/* Gathers the plate on rank 0 and compares it with the computation of one rank. */
static void compare(const struct plate *plate, int64_t n, int steps)
{
    struct shmview_segment *segment = NULL;
    struct shmview_view all = {0};
    double *cells = NULL;
    const struct shmview_view_spec spec = {
        .format = "float64", .ndim = 2, .shape = (const int64_t[]){n, n}};
    if (rank == 0) {
        cells = calloc((size_t)(n * n), sizeof *cells);
        if (!cells) {
            MPI_Abort(MPI_COMM_WORLD, 1);
            abort();
        }
        must(shmview_wrap(cells, (uint64_t)(n * n) * sizeof *cells, 0, NULL, NULL, &segment),
             "the whole plate");
        must(shmview_view_make(segment, &spec, &all), "the whole plate");
    }
    must(shmview_mpi_split_gather(plate->split, 0, &all, deadline()), "the gather");
    if (cells) {
        double *alone = compute_alone(n, steps);
        for (int64_t i = 0; i < n; i++)
            if (memcmp(&cells[i * n], &alone[(i + 1) * (n + 2) + 1], (size_t)n * sizeof *cells) !=
                0) {
                fprintf(stderr, "row %lld differs\n", (long long)i);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        printf("equal to the computation of one rank\n");
        free(alone);
        shmview_detach(segment);
        free(cells);
    }
}

struct options {
    int64_t n;
    int steps;
    const char *file;
    int compares;
};

static void read_options(int argc, char **argv, struct options *ret)
{
    struct options options = {.n = 200, .steps = 100};
    for (int letter; (letter = getopt(argc, argv, "n:s:o:c")) != -1;)
        switch (letter) {
        case 'n':
            options.n = atoll(optarg);
            break;
        case 's':
            options.steps = atoi(optarg);
            break;
        case 'o':
            options.file = optarg;
            break;
        case 'c':
            options.compares = 1;
            break;
        default:
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    *ret = options;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct options options;
    read_options(argc, argv, &options);

    /* Two plates, one after the other in the segment of each node. All segments are as large as the
     * largest one must be. */
    const struct shmview_mpi_split_spec plates = {.format = "float64",
                                                  .ndim = 2,
                                                  .shape = (const int64_t[]){options.n, options.n},
                                                  .halo = (const int64_t[]){1, 1}};
    struct shmview_mpi_link *link = NULL;
    uint64_t needed = 0, n_bytes = 0;
    must(shmview_mpi_link_open(MPI_COMM_WORLD, &link), "a link");
    must(shmview_mpi_split_bytes(link, &plates, deadline(), &needed), "the size of a plate");
    MPI_Allreduce(&needed, &n_bytes, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);

    const struct shmview_mpi_spec segments = {.struct_bytes = sizeof segments, .size = 2 * n_bytes};
    struct shmview_mpi *job = NULL;
    struct plate now = {0}, next = {0};
    must(shmview_mpi_open(MPI_COMM_WORLD, NULL, "heat", &segments, &job), "the segments");
    struct shmview_segment *segment = shmview_mpi_segment(job);
    must(shmview_mpi_split(link, &plates, segment, 0, deadline(), &now.split), "a plate");
    must(shmview_mpi_split(link, &plates, segment, n_bytes, deadline(), &next.split), "a plate");
    shmview_mpi_split_whole(now.split, &now.block);
    shmview_mpi_split_whole(next.split, &next.block);
    plate_set_rim(&now);
    plate_set_rim(&next);

    double change = 0, largest = 0;
    for (int step = 0; step < options.steps; step++) {
        must(shmview_mpi_halo(now.split, deadline()), "a halo");
        change = plate_step(&next, &now);
        struct plate swapped = now;
        now = next;
        next = swapped;
    }
    MPI_Reduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("after %d steps the largest change is %g\n", options.steps, largest);
    if (options.file)
        must(shmview_mpi_split_save(now.split, 0, options.file, deadline()), "the file");
    if (options.compares)
        compare(&now, options.n, options.steps);

    shmview_mpi_split_free(now.split);
    shmview_mpi_split_free(next.split);
    must(shmview_mpi_close(job), "the segments");
    shmview_mpi_link_close(link);
    MPI_Finalize();
    return 0;
}
