/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of segments beside those of plain MPI into private buffers, in turns: `make
 * bench-mpi`. Rank 0 prints one line for each row: name, milliseconds of plain MPI and of shmview
 * (medians of the rounds, each the time of the slowest rank), the ratio, and the sum of Pss of all
 * ranks. */
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5
#define BYTES  ((int64_t)64 << 20)

static int me, n;

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", me, what, shmview_mpi_error_text());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void need(int is_true, const char *what)
{
    if (!is_true)
        fail(what);
}

/* The Pss of all ranks together, in MiB. */
static double pss(void)
{
    char line[256];
    double mine = 0, all = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    need(file != NULL, "smaps_rollup");
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "Pss:", 4) == 0)
            mine = strtod(line + 4, NULL) / 1024;
    fclose(file);
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static int is_less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The time of the slowest rank since begin, in milliseconds. */
static double since(double begin)
{
    double mine = 1e3 * (MPI_Wtime() - begin), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void print(const char *name, double *plain, double *ours, double plain_mib, double our_mib)
{
    qsort(plain, ROUNDS, sizeof *plain, is_less);
    qsort(ours, ROUNDS, sizeof *ours, is_less);
    const double a = plain[ROUNDS / 2], b = ours[ROUNDS / 2];
    if (me == 0)
        printf("%-10s %8.1f ms %8.1f ms  %5.2fx faster  %7.0f MiB %7.0f MiB  %.2fx memory\n", name,
               a, b, a / b, plain_mib, our_mib, our_mib / plain_mib);
}

static void bench_bcast(struct shmview_mpi *job)
{
    double plain[ROUNDS], ours[ROUNDS];
    struct shmview_view view;
    need(shmview_view_cast(shmview_mpi_segment(job), "B", 0, BYTES, &view) == 0, "a view");
    char *buffer = malloc(BYTES);
    need(buffer != NULL, "memory");
    memset(buffer, me, BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD); /* all have looked at the bytes of the round before */
        if (me == 0)
            memset(buffer, round, BYTES), memset(view.data, round + 1, BYTES);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        MPI_Bcast(buffer, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
        plain[round] = since(begin);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        need(shmview_mpi_bcast(job, &view, 0, NULL) == 0, "bcast");
        ours[round] = since(begin);
        need(buffer[BYTES - 1] == (char)round && view.data[BYTES - 1] == round + 1, "the bytes");
    }
    volatile unsigned char sum = 0;
    for (int64_t i = 0; i < BYTES; i += 4096)
        sum = (unsigned char)(sum + view.data[i]);
    const double both = pss();
    free(buffer);
    const double segments = pss();
    need(shmview_mpi_close(job) == 0, "close");
    print("bcast", plain, ours, both - segments, segments - pss());
}

static void bench_allreduce(struct shmview_mpi *job)
{
    double plain[ROUNDS], ours[ROUNDS];
    struct shmview_view from, to;
    struct shmview_segment *segment = shmview_mpi_segment(job);
    const int count = (int)(BYTES / 4);
    float *in = malloc(BYTES), *out = malloc(BYTES);
    need(in && out, "memory");
    for (int i = 0; i < count; i++)
        in[i] = (float)(i % 100 + me), out[i] = 0;
    /* The place of a rank among those of its node. */
    uint64_t place = 1;
    for (int r = 0; r < me; r++)
        place += shmview_mpi_node(job, r) == shmview_mpi_node(job, me);
    need(shmview_view_cast(segment, "float32", 0, BYTES, &to) == 0, "a view");
    need(shmview_view_cast(segment, "float32", place * BYTES, BYTES, &from) == 0, "a view");
    memcpy(from.data, in, BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        plain[round] = since(begin);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        need(shmview_mpi_allreduce(job, &from, &to, MPI_SUM, NULL) == 0, "allreduce");
        ours[round] = since(begin);
    }
    need(memcmp(out, to.data, BYTES) == 0, "the sums");
    const double both = pss();
    free(in);
    free(out);
    const double segments = pss();
    need(shmview_mpi_close(job) == 0, "close");
    print("allreduce", plain, ours, both - segments, segments - pss());
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    struct shmview_mpi_spec spec = {.struct_bytes = sizeof spec, .size = (uint64_t)BYTES};
    struct shmview_mpi *job;
    need(shmview_mpi_open(MPI_COMM_WORLD, NULL, "bcast", &spec, &job) == 0, "open");
    bench_bcast(job);
    spec.size = (uint64_t)BYTES * (uint64_t)(n + 1);
    need(shmview_mpi_open(MPI_COMM_WORLD, NULL, "allreduce", &spec, &job) == 0, "open");
    bench_allreduce(job);
    MPI_Finalize();
    return 0;
}
