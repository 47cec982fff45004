/* SPDX-License-Identifier: Apache-2.0 */
/* transfers [ROUNDS]: a view from one rank to another and back, with 2 ranks. Each row has the time
 * of one way for plain MPI and for the library, and their ratio.
 *
 * Rows of contiguous elements compare with MPI_Send() and MPI_Recv() of the same bytes. "tested" is
 * the least that a call with a deadline takes: MPI_Isend() or MPI_Irecv(), and MPI_Test() until it
 * is done. Rows with gaps compare with the better of two that a program could write: MPI's
 * datatypes, and packing through two pieces, here as the library does both by its override. The
 * ways take turns, and each has the fastest of its rounds, because another program on the machine
 * can only slow one down. */
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 1000
#define N_WAYS     3

static int rank, n_rounds = 31;
static struct shmview_mpi_link *link_;

static int64_t soon(void)
{
    return shmview_deadline(60000000000);
}

static void must(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "rank %d: %s; %s\n", rank, shmview_mpi_error_text(), shmview_error_text());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void must_have(const void *memory)
{
    if (memory)
        return;
    fprintf(stderr, "rank %d: no memory\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* There and back, by plain MPI. */
static void plain(const struct shmview_view *view, int n)
{
    for (int i = 0; i < n; i++) {
        if (rank == 0)
            MPI_Send(view->data, (int)view->nbytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(view->data, (int)view->nbytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(view->data, (int)view->nbytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void test_until_done(MPI_Request *request)
{
    for (int is_done = 0; !is_done;)
        MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
}

static void send_tested(const struct shmview_view *view)
{
    MPI_Request request;
    MPI_Isend(view->data, (int)view->nbytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
    test_until_done(&request);
}

/* There and back, by calls that could have a deadline. */
static void tested(const struct shmview_view *view, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Request request;
        if (rank == 0)
            send_tested(view);
        MPI_Irecv(view->data, (int)view->nbytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
        test_until_done(&request);
        if (rank == 1)
            send_tested(view);
    }
}

static void linked(const struct shmview_view *view, enum shmview_mpi_carry carry, int n)
{
    must(shmview_mpi_link_carry(link_, carry));
    for (int i = 0; i < n; i++) {
        if (rank == 0)
            must(shmview_mpi_send(link_, view, 1, soon()));
        must(shmview_mpi_receive(link_, view, 1 - rank, soon()));
        if (rank == 1)
            must(shmview_mpi_send(link_, view, 0, soon()));
    }
}

/* Measures ways in turns: MPI itself or its datatypes, tested or packed, and the library's choice.
 * Sets the least seconds of one way. */
static void measure(const struct shmview_view *view, int is_contiguous, double fastest[N_WAYS])
{
    static double seconds[N_WAYS][MAX_ROUNDS];
    int n = view->nbytes < 4096 ? 1000 : view->nbytes < 1 << 20 ? 30 : 1;
    for (int round = -2; round < n_rounds; round++)
        for (int turn = 0; turn < N_WAYS; turn++) {
            int way = (turn + round + 3) % N_WAYS;
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            if (way == 0 && is_contiguous)
                plain(view, n);
            else if (way == 1 && is_contiguous)
                tested(view, n);
            else
                linked(view,
                       way == 0   ? SHMVIEW_MPI_DATATYPE
                       : way == 1 ? SHMVIEW_MPI_PACKED
                                  : SHMVIEW_MPI_MEASURED,
                       n);
            if (round >= 0)
                seconds[way][round] = (MPI_Wtime() - begin) / (2 * n);
        }
    for (int way = 0; way < N_WAYS; way++) {
        qsort(seconds[way], (size_t)n_rounds, sizeof **seconds, compare_times);
        fastest[way] = seconds[way][0];
    }
}

/* One row: n bytes in runs, with gaps as long as the runs; run 0 is without gaps. */
static void row(int64_t n_bytes, int64_t run)
{
    const int64_t shape[] = {run ? n_bytes / run : 1, run ? run : n_bytes};
    const int64_t strides[] = {2 * shape[1], 1};
    const struct shmview_view_spec spec = {
        .format = "B", .ndim = 2, .shape = shape, .strides = strides};
    uint64_t room = (uint64_t)(2 * n_bytes);
    void *memory = calloc(1, room);
    struct shmview_segment *segment;
    struct shmview_view view;
    double fastest[N_WAYS] = {0};
    must_have(memory);
    must(shmview_wrap(memory, room, 0, NULL, NULL, &segment));
    must(shmview_view_make(segment, &spec, &view));
    measure(&view, run == 0, fastest);
    if (rank == 0 && run == 0)
        printf("%9lld bytes, contiguous     MPI %10.2f us  tested %8.2f us  link %10.2f us"
               "  %5.2f\n",
               (long long)n_bytes, fastest[0] * 1e6, fastest[1] * 1e6, fastest[2] * 1e6,
               fastest[2] / fastest[0]);
    else if (rank == 0) {
        double best = fastest[0] < fastest[1] ? fastest[0] : fastest[1];
        printf("%9lld bytes, runs of %5lld  datatype %10.2f us  packed %8.2f us  link %10.2f us"
               "  %5.2f\n",
               (long long)n_bytes, (long long)run, fastest[0] * 1e6, fastest[1] * 1e6,
               fastest[2] * 1e6, fastest[2] / best);
    }
    fflush(stdout);
    shmview_detach(segment);
    free(memory);
}

int main(int argc, char **argv)
{
    int n = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (argc > 1)
        n_rounds = atoi(argv[1]);
    if (n != 2 || n_rounds < 1 || n_rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: mpiexec -n 2 transfers [ROUNDS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    must(shmview_mpi_link_open(MPI_COMM_WORLD, &link_));
    for (int64_t n_bytes = 8; n_bytes <= 16 << 20; n_bytes *= n_bytes < 4096 ? 16 : 8)
        row(n_bytes, 0);
    for (int64_t run = 1; run <= 16384; run *= run < 64 ? 2 : 4)
        row(1 << 20, run);
    for (int64_t run = 8; run <= 4096; run *= 8)
        row(32768, run);
    shmview_mpi_link_close(link_);
    MPI_Finalize();
    return 0;
}
