/* SPDX-License-Identifier: Apache-2.0 */
/* trainer [-d PARAMETERS] [-m ROWS] [-s STEPS] [-p] [-o] [-c] [-h]
 *
 * Rank 0 trains a linear model by gradient descent, the other ranks work for it. In each step the
 * trainer broadcasts its parameters, as the phase "parameters". The number of that phase is their
 * version on every node. Each worker reads them in place, computes the error of the model and its
 * gradient over rows of its own, and all are added up on the trainer. The parameters are in the
 * memory of each node once. A worker reads them under the shared lock, or with -o optimistically:
 * it computes with them again if a writer was inside.
 *
 *     mpiexec -n 9 trainer -d 100 -m 10000 -s 50 -p */
#include <math.h>
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_NS INT64_C(60000000000)
#define RATE    1.5 /* of gradient descent: the rows have a variance of 1/3 */
#define TRIES   100 /* of an optimistic read */

static int rank, n_ranks;

static void fail(const char *what, const char *text)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* Ends all ranks if a call has failed. */
static void must(int result, const char *what)
{
    if (result < 0)
        fail(what, shmview_mpi_error_text());
}

/* Like must(), for calls of libshmview. */
static void must_core(int result, const char *what)
{
    if (result < 0)
        fail(what, shmview_error_text());
}

struct options {
    int64_t d; /* parameters */
    int64_t rows;
    int64_t steps;
    int prints, is_optimistic, compares;
};

static const char usage[] =
    "usage: trainer [-d PARAMETERS] [-m ROWS] [-s STEPS] [-p] [-o] [-c] [-h]\n"
    "  -d  parameters of the model (default 16)\n"
    "  -m  rows of each worker (default 1000)\n"
    "  -s  steps (default 40)\n"
    "  -p  print the error after each step\n"
    "  -o  read the parameters without the lock\n"
    "  -c  fail if the parameters are not those of the data\n";

/* Rank 0 prints, and all ranks end with the status. */
static void end_with_usage(int status, const char *reason)
{
    if (rank == 0)
        fprintf(status ? stderr : stdout, "%s%s%s", reason, *reason ? "\n" : "", usage);
    MPI_Finalize();
    exit(status);
}

static int64_t read_number(const char *text)
{
    char *end;
    const long long number = strtoll(text, &end, 10);
    if (end == text || *end || number < 1 || number > 1000000000)
        end_with_usage(2, "a number from 1 to 1000000000 is needed");
    return number;
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {.d = 16, .rows = 1000, .steps = 40};
    opterr = rank == 0;
    for (int letter; (letter = getopt(argc, argv, "d:m:s:poch")) != -1;)
        switch (letter) {
        case 'd':
            options.d = read_number(optarg);
            break;
        case 'm':
            options.rows = read_number(optarg);
            break;
        case 's':
            options.steps = read_number(optarg);
            break;
        case 'p':
            options.prints = 1;
            break;
        case 'o':
            options.is_optimistic = 1;
            break;
        case 'c':
            options.compares = 1;
            break;
        default:
            end_with_usage(letter == 'h' ? 0 : 2, "");
        }
    if (optind < argc)
        end_with_usage(2, "there are too many arguments");
    if (n_ranks < 2)
        end_with_usage(2, "a trainer and a worker are needed: start at least 2 ranks");
    return options;
}

/* Rows of a worker: d numbers from -1 to 1, and what the model should make of them. */
struct data {
    double *x, *y;
};

/* The parameter that the data have. */
static double truth(int64_t i)
{
    return (double)(i % 7) - 3;
}

static struct data make_data(const struct options *o)
{
    struct data data = {.x = malloc((size_t)(o->rows * o->d) * sizeof *data.x),
                        .y = calloc((size_t)o->rows, sizeof *data.y)};
    uint64_t state = (uint64_t)rank * UINT64_C(0x9e3779b97f4a7c15);
    if (!data.x || !data.y)
        fail("the rows", "no memory");
    for (int64_t k = 0; k < o->rows * o->d; k++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data.x[k] = (double)(state >> 11) * 0x1p-52 - 1;
        data.y[k / o->d] += data.x[k] * truth(k % o->d);
    }
    return data;
}

/* The views of one rank. `sums` are the gradient and, as the last one, the sum of squared errors:
 * those of all workers on the trainer's node, and those of this rank. */
struct rank_views {
    struct shmview_view parameters, all_sums, my_sums;
};

/* Computes error and gradient with the parameters where they are. */
static void compute(const struct options *o, const struct data *data,
                    const struct rank_views *views)
{
    const double *parameters = SHMVIEW_DATA(double, &views->parameters);
    double *sums = SHMVIEW_DATA(double, &views->my_sums);
    memset(sums, 0, (size_t)(o->d + 1) * sizeof *sums);
    for (int64_t row = 0; row < o->rows; row++) {
        const double *x = &data->x[row * o->d];
        double error = -data->y[row];
        for (int64_t i = 0; i < o->d; i++)
            error += x[i] * parameters[i];
        for (int64_t i = 0; i < o->d; i++)
            sums[i] += error * x[i];
        sums[o->d] += error * error;
    }
}

/* A worker reads the parameters of the phase that has just begun. Results of an optimistic read
 * count only if no owner was inside; else the lock is taken in the end. */
static void work(const struct options *o, const struct data *data, const struct rank_views *views)
{
    struct shmview_segment *segment = views->parameters.segment;
    for (int i = 0; o->is_optimistic && i < TRIES; i++) {
        uint64_t version;
        if (shmview_read_begin(segment, &version) < 0)
            continue;
        compute(o, data, views);
        if (shmview_read_validate(segment, version) && !shmview_view_is_stale(&views->parameters))
            return;
    }
    must_core(shmview_view_lock(&views->parameters, SHMVIEW_SHARED, shmview_deadline(WAIT_NS)),
              "the parameters");
    compute(o, data, views);
    must_core(shmview_unlock(segment), "the lock");
}

/* The trainer moves the parameters against the gradient, and returns the mean error before. */
static double train(const struct options *o, const struct rank_views *views)
{
    const double n = (double)o->rows * (n_ranks - 1);
    double *parameters = SHMVIEW_DATA(double, &views->parameters);
    const double *sums = SHMVIEW_DATA(double, &views->all_sums);
    must_core(shmview_lock(views->parameters.segment), "the lock");
    for (int64_t i = 0; i < o->d; i++)
        parameters[i] -= RATE * sums[i] / n;
    const double error = sqrt(sums[o->d] / n);
    must_core(shmview_unlock(views->parameters.segment), "the lock");
    return error;
}

/* One step. Returns the mean error on the trainer. */
static double step(struct shmview_mpi *job, const struct options *o, const struct data *data,
                   struct rank_views *views, uint32_t version)
{
    struct shmview_phase phase;
    must(shmview_mpi_bcast(job, &views->parameters, 0, "parameters"), "the parameters");
    struct shmview_segment *segment = shmview_mpi_segment(job);
    must_core(shmview_phase_get(segment, &phase), "the phase");
    if (phase.generation != version)
        fail("the parameters", "they are of another step");
    /* A view belongs to the phase in which it was opened. */
    must_core(shmview_view_open(segment, "parameters", "parameters", &views->parameters),
              "the parameters");
    if (rank > 0)
        work(o, data, views);
    must(shmview_mpi_reduce(job, &views->my_sums, &views->all_sums, MPI_SUM, 0, NULL), "the sums");
    return rank == 0 ? train(o, views) : 0;
}

/* Opens the segments: the parameters, the sums of all, then the sums of each rank of the node. */
static void open_job(const struct options *o, struct shmview_mpi **ret_job,
                     struct rank_views *ret_views)
{
    const struct shmview_view_spec parameters = {
        .name = "parameters", .format = "float64", .ndim = 1, .shape = &o->d};
    const struct shmview_mpi_layout layout = {
        .name = "parameters", .views = &parameters, .n_views = 1};
    MPI_Comm node;
    int place, n_places, most;
    must(shmview_mpi_node_comm(MPI_COMM_WORLD, &node), "the node");
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &n_places);
    MPI_Comm_free(&node);
    MPI_Allreduce(&n_places, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const uint64_t sums = 8 * (uint64_t)(o->d + 1), apart = (sums + 63) / 64 * 64;
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .size = (uint64_t)(most + 2) * apart,
                                          .timeout_ns = WAIT_NS,
                                          .layouts = &layout,
                                          .n_layouts = 1};
    must(shmview_mpi_open(MPI_COMM_WORLD, NULL, "trainer", &spec, ret_job), "the segments");
    struct shmview_segment *segment = shmview_mpi_segment(*ret_job);
    const uint64_t mine = (uint64_t)(place + 2) * apart;
    must_core(shmview_view_open(segment, "parameters", "parameters", &ret_views->parameters),
              "the parameters");
    must_core(shmview_view_cast(segment, "float64", apart, sums, &ret_views->all_sums), "a view");
    must_core(shmview_view_cast(segment, "float64", mine, sums, &ret_views->my_sums), "a view");
}

static void compare(const struct options *o, const struct shmview_view *parameters)
{
    for (int64_t i = 0; rank == 0 && i < o->d; i++)
        if (fabs(SHMVIEW_AT1(double, parameters, i) - truth(i)) > 1e-6)
            fail("the model", "the parameters are not those of the data");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    const struct options options = read_options(argc, argv);
    struct data data = {NULL, NULL};
    if (rank > 0)
        data = make_data(&options);
    struct shmview_mpi *job = NULL;
    struct rank_views views;
    open_job(&options, &job, &views);
    double error = 0;
    for (int64_t i = 1; i <= options.steps; i++) {
        error = step(job, &options, &data, &views, (uint32_t)i);
        if (rank == 0 && options.prints)
            printf("version %lld: error %g\n", (long long)i, error);
    }
    if (rank == 0)
        printf("version %lld of the parameters, on %d nodes, has the error %g\n",
               (long long)options.steps, shmview_mpi_nodes(job), error);
    if (options.compares)
        compare(&options, &views.parameters);
    free(data.x);
    free(data.y);
    must(shmview_mpi_close(job), "the segments");
    MPI_Finalize();
    return 0;
}
