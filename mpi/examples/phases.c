/* SPDX-License-Identifier: Apache-2.0 */
/* phases [-n SAMPLES] [-l LEVELS] [-r ROUNDS] [-h]
 *
 * Two phases of the same bytes, on every node of a job. In the phase "samples" they are the floats
 * of a signal, of which each rank has computed a part. In the phase "levels" they are integers: how
 * many samples of the whole signal lie in each interval of values. A round has one of each. After
 * each phase all ranks compare every element with what they compute alone.
 *
 *     mpiexec -n 8 phases -n 1000000 -r 10 */
#include <math.h>
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_NS INT64_C(60000000000)
#define MOST    1000000000 /* samples and rounds */

static int rank, n_ranks;

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rank %d: ", rank);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* Ends all ranks if a call has failed. */
static void must(int result, const char *what)
{
    if (result < 0)
        fail("%s: %s", what, shmview_mpi_error_text());
}

/* Like must(), for calls of libshmview. */
static void must_core(int result, const char *what)
{
    if (result < 0)
        fail("%s: %s", what, shmview_error_text());
}

struct options {
    int64_t n; /* samples, a multiple of the number of ranks */
    int64_t levels;
    int rounds;
};

static const char usage[] = "usage: phases [-n SAMPLES] [-l LEVELS] [-r ROUNDS] [-h]\n"
                            "  -n  samples of the signal, divisible by the ranks (default 4096)\n"
                            "  -l  intervals of values, 1 to SAMPLES (default 16)\n"
                            "  -r  rounds, each of two phases (default 3)\n";

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
    if (end == text || *end || number < 1 || number > MOST)
        end_with_usage(2, "a number from 1 to 1000000000 is needed");
    return number;
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {.n = 4096, .levels = 16, .rounds = 3};
    opterr = rank == 0;
    for (int letter; (letter = getopt(argc, argv, "n:l:r:h")) != -1;)
        switch (letter) {
        case 'n':
            options.n = read_number(optarg);
            break;
        case 'l':
            options.levels = read_number(optarg);
            break;
        case 'r':
            options.rounds = (int)read_number(optarg);
            break;
        default:
            end_with_usage(letter == 'h' ? 0 : 2, "");
        }
    if (optind < argc)
        end_with_usage(2, "there are too many arguments");
    if (options.n % n_ranks != 0)
        end_with_usage(2, "the samples cannot be divided by the ranks");
    if (options.levels > options.n)
        end_with_usage(2, "there are more levels than samples");
    return options;
}

/* Sample i of a round, from -1 to 1. Each round has another frequency. */
static float sample(int64_t i, int round)
{
    return (float)sin(0.001 * (round + 1) * (double)i);
}

static int64_t level_of(float value, int64_t levels)
{
    const int64_t level = (int64_t)((value + 1) / 2 * (float)levels);
    return level < levels ? level : levels - 1;
}

/* What a rank has: the job, and memory of its own in the segment for what it contributes. */
struct worker {
    struct options options;
    struct shmview_mpi *job;
    struct shmview_segment *segment;
    struct shmview_view my_samples, my_levels;
    int32_t *expected; /* the levels as computed by this rank alone */
};

/* Opens a view of the phase that has just begun, and takes its lock shared. Fails if the phase has
 * another name, or another number than that of the phases so far. */
static struct shmview_view enter(struct worker *w, const char *name, uint32_t n_phases)
{
    struct shmview_phase phase;
    struct shmview_view view;
    must_core(shmview_phase_get(w->segment, &phase), "the phase");
    if (strcmp(phase.name, name) != 0 || phase.generation != n_phases)
        fail("the phase is %u '%s', not %u '%s'", phase.generation, phase.name, n_phases, name);
    must_core(shmview_view_open(w->segment, name, name, &view), name);
    must_core(shmview_view_lock(&view, SHMVIEW_SHARED, shmview_deadline(WAIT_NS)), name);
    return view;
}

/* Every rank computes its part of the signal, and every node gets all of it. Compares the signal
 * and counts the levels of this rank's part. Returns the view, which the next phase makes stale. */
static struct shmview_view run_samples(struct worker *w, int round)
{
    const struct options *o = &w->options;
    const int64_t part = o->n / n_ranks;
    struct shmview_view all;
    for (int64_t i = 0; i < part; i++)
        SHMVIEW_AT1(float, &w->my_samples, i) = sample(rank * part + i, round);
    must_core(shmview_view_open(w->segment, "samples", "samples", &all), "the samples");
    must(shmview_mpi_allgather(w->job, &w->my_samples, &all, "samples"), "the samples");

    all = enter(w, "samples", (uint32_t)(2 * round + 1));
    memset(w->expected, 0, (size_t)o->levels * sizeof *w->expected);
    for (int64_t level = 0; level < o->levels; level++)
        SHMVIEW_AT1(int32_t, &w->my_levels, level) = 0;
    for (int64_t i = 0; i < o->n; i++) {
        const float value = SHMVIEW_AT1(float, &all, i);
        const float expected = sample(i, round);
        if (value != expected)
            fail("round %d: sample %lld is %g, not %g", round, (long long)i, value, expected);
        w->expected[level_of(expected, o->levels)]++;
        if (i / part == rank)
            SHMVIEW_AT1(int32_t, &w->my_levels, level_of(value, o->levels))++;
    }
    must_core(shmview_unlock(w->segment), "the lock");
    return all;
}

/* Adds the levels of all ranks, into the bytes that have been samples before. */
static void run_levels(struct worker *w, int round, const struct shmview_view *samples)
{
    struct shmview_view all;
    must_core(shmview_view_open(w->segment, "levels", "levels", &all), "the levels");
    must(shmview_mpi_allreduce(w->job, &w->my_levels, &all, MPI_SUM, "levels"), "the levels");

    if (shmview_view_lock(samples, SHMVIEW_SHARED, shmview_deadline(0)) != -SHMVIEW_ERR_STALE)
        fail("round %d: the samples are not stale", round);
    all = enter(w, "levels", (uint32_t)(2 * round + 2));
    for (int64_t level = 0; level < w->options.levels; level++)
        if (SHMVIEW_AT1(int32_t, &all, level) != w->expected[level])
            fail("round %d: level %lld has %d samples, not %d", round, (long long)level,
                 SHMVIEW_AT1(int32_t, &all, level), w->expected[level]);
    must_core(shmview_unlock(w->segment), "the lock");
}

/* Opens the segments: the bytes of both phases, then memory for each rank of a node. */
static void open_job(struct worker *w)
{
    const struct options *o = &w->options;
    const struct shmview_view_spec samples = {
        .name = "samples", .format = "float32", .ndim = 1, .shape = &o->n};
    const struct shmview_view_spec levels = {
        .name = "levels", .format = "int32", .ndim = 1, .shape = &o->levels};
    const struct shmview_mpi_layout layouts[] = {
        {.name = "samples", .views = &samples, .n_views = 1},
        {.name = "levels", .views = &levels, .n_views = 1}};

    MPI_Comm node;
    int place, n_places, most;
    must(shmview_mpi_node_comm(MPI_COMM_WORLD, &node), "the node");
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &n_places);
    MPI_Comm_free(&node);
    MPI_Allreduce(&n_places, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const uint64_t shared = 4 * (uint64_t)o->n;
    const uint64_t part = shared / (uint64_t)n_ranks, own = part + 4 * (uint64_t)o->levels;
    const struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec,
                                          .size = shared + (uint64_t)most * own,
                                          .timeout_ns = WAIT_NS,
                                          .layouts = layouts,
                                          .n_layouts = 2};
    must(shmview_mpi_open(MPI_COMM_WORLD, NULL, "phases", &spec, &w->job), "the segments");
    w->segment = shmview_mpi_segment(w->job);
    const uint64_t at = shared + (uint64_t)place * own;
    must_core(shmview_view_cast(w->segment, "float32", at, part, &w->my_samples), "a view");
    must_core(shmview_view_cast(w->segment, "int32", at + part, own - part, &w->my_levels),
              "a view");
    w->expected = calloc((size_t)o->levels, sizeof *w->expected);
    if (!w->expected)
        fail("no memory for the comparison");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    struct worker w = {.options = read_options(argc, argv)};
    open_job(&w);
    for (int round = 0; round < w.options.rounds; round++) {
        const struct shmview_view samples = run_samples(&w, round);
        run_levels(&w, round, &samples);
    }
    if (rank == 0)
        printf("%d ranks on %d nodes: all elements of %d phases are right\n", n_ranks,
               shmview_mpi_nodes(w.job), 2 * w.options.rounds);
    free(w.expected);
    must(shmview_mpi_close(w.job), "the segments");
    MPI_Finalize();
    return 0;
}
