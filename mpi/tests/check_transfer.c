/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 4. Transfers that do not fit each other, that nobody answers, and that go to the own rank.
 */
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdlib.h>
#include <string.h>

#include "support_ranks.h"
#include "support_views.h"

static struct shmview_mpi_link *link_;

static int64_t soon(void)
{
    return shmview_deadline(20000000000);
}

static void number_is(const struct made_view *made, unsigned seed)
{
    struct made_view same;
    int64_t shape[SHMVIEW_MAX_NDIM] = {0};
    for (uint32_t d = 0; d < made->view.ndim; d++)
        shape[d] = made->view.shape[d];
    made_view_init(&same, made->view.format, made->view.ndim, shape, STRIDES_C);
    made_view_number(&same, seed, 0, 0);
    unsigned char *a = made_view_elements(made), *b = made_view_elements(&same);
    CHECK(memcmp(a, b, made->view.nbytes) == 0);
    free(a);
    free(b);
    made_view_deinit(&same);
}

/* Rank 0 sends n elements of one type to rank 1, which expects others. Both must fail, but a short
 * send may be over before. Then the link works as before. */
static void try_mismatch(const char *format, int64_t n, const char *expected_format,
                         int64_t n_expected)
{
    struct made_view made;
    int me = ranks_me();
    if (me > 1)
        return;
    made_view_init(&made, me ? expected_format : format, 1, me ? &n_expected : &n, STRIDES_STEPPED);
    if (me == 0 && made.view.nbytes <= 65536)
        OK(shmview_mpi_send(link_, &made.view, 1, soon()));
    else if (me == 0)
        REFUSED(shmview_mpi_send(link_, &made.view, 1, soon()), CONVERSION);
    else
        REFUSED(shmview_mpi_receive(link_, &made.view, 0, soon()), CONVERSION);
    if (me == 1) {
        CHECK(strstr(shmview_mpi_error_text(), "rank 0"));
        for (int64_t i = 0; i < made.view.shape[0]; i++)
            CHECK(*(int32_t *)shmview_at1(&made.view, (ptrdiff_t)i) == 0);
    }
    made_view_deinit(&made);

    const int64_t shape[] = {3, 4};
    made_view_init(&made, "i", 2, shape, me ? STRIDES_FORTRAN : STRIDES_C);
    if (me == 0) {
        made_view_number(&made, 5, 0, 0);
        OK(shmview_mpi_send(link_, &made.view, 1, soon()));
    } else {
        OK(shmview_mpi_receive(link_, &made.view, 0, soon()));
        number_is(&made, 5);
    }
    made_view_deinit(&made);
}

static void try_shapes_of_as_many(void)
{
    const int64_t wide[] = {3, 8000}, high[] = {8000, 3};
    struct made_view made;
    if (ranks_me() > 1)
        return;
    made_view_init(&made, "i", 2, ranks_me() ? high : wide, STRIDES_C);
    if (ranks_me() == 0)
        REFUSED(shmview_mpi_send(link_, &made.view, 1, soon()), CONVERSION);
    else
        REFUSED(shmview_mpi_receive(link_, &made.view, 0, soon()), CONVERSION);
    CHECK(strstr(shmview_mpi_error_text(), "(3, 8000)"));
    CHECK(strstr(shmview_mpi_error_text(), "(8000, 3)"));
    made_view_deinit(&made);
}

/* Everybody sends to the next rank while receiving from the one before. */
static void try_ring(int64_t n, enum strides strides)
{
    struct made_view out, in;
    int me = ranks_me(), ranks = ranks_n(), before = (me + ranks - 1) % ranks;
    made_view_init(&out, "h", 1, &n, strides);
    made_view_init(&in, "h", 1, &n, strides == STRIDES_C ? STRIDES_REVERSED : STRIDES_C);
    made_view_number(&out, (unsigned)me, 0, 0);
    OK(shmview_mpi_sendrecv(link_, &out.view, (me + 1) % ranks, &in.view, before, soon()));
    number_is(&in, (unsigned)before);
    CHECK(made_view_is_clean(&in));
    made_view_deinit(&out);
    made_view_deinit(&in);
}

static void try_own(void)
{
    const int64_t n = 50000, less = 49999;
    struct made_view out, in, other;
    made_view_init(&out, "i", 1, &n, STRIDES_STEPPED);
    made_view_init(&in, "i", 1, &n, STRIDES_REVERSED);
    made_view_init(&other, "i", 1, &less, STRIDES_C);
    made_view_number(&out, 3, 0, 0);
    int me = ranks_me();
    OK(shmview_mpi_sendrecv(link_, &out.view, me, &in.view, me, soon()));
    number_is(&in, 3);
    REFUSED(shmview_mpi_sendrecv(link_, &out.view, me, &other.view, me, soon()), CONVERSION);
    REFUSED(shmview_mpi_send(link_, &out.view, me, soon()), INVALID);
    REFUSED(shmview_mpi_receive(link_, &out.view, me, soon()), INVALID);
    made_view_deinit(&other);
    made_view_deinit(&in);
    made_view_deinit(&out);
}

static void try_arguments(void)
{
    int64_t cell[8] = {0};
    struct shmview_segment *segment;
    OK(shmview_wrap(cell, sizeof cell, SHMVIEW_WRAP_READ_ONLY, NULL, NULL, &segment));
    struct shmview_view view, rows;
    OK(shmview_view_cast(segment, "b", 0, 8, &view));
    REFUSED(shmview_mpi_receive(link_, &view, 0, soon()), READ_ONLY);
    REFUSED(shmview_mpi_send(link_, &view, 4, soon()), INVALID);
    REFUSED(shmview_mpi_send(link_, &view, -1, soon()), INVALID);
    REFUSED(shmview_mpi_link_carry(link_, (enum shmview_mpi_carry)3), INVALID);
    const int64_t shape[] = {2, 8}, strides[] = {8, 1}, suboffsets[] = {0, -1};
    const struct shmview_view_spec spec = {
        .format = "b", .ndim = 2, .shape = shape, .strides = strides, .suboffsets = suboffsets};
    OK(shmview_view_make(segment, &spec, &rows));
    MPI_Datatype type = MPI_BYTE;
    REFUSED(shmview_mpi_type(link_, &rows, &type), CONTIGUOUS);
    CHECK(type == MPI_BYTE);
    REFUSED(shmview_mpi_send(link_, &rows, (ranks_me() + 1) % 4, soon()), CONTIGUOUS);
    OK(shmview_detach(segment));
    struct shmview_mpi_link *none = NULL;
    REFUSED(shmview_mpi_link_open(MPI_COMM_NULL, &none), INVALID);
    CHECK(!none);
}

enum call {
    SEND,
    RECEIVE,
    SENDRECV
};

/* Nobody answers: a receive, and a long send, end at the deadline, and the link is lost. */
static void try_deadline(enum call call)
{
    struct shmview_mpi_link *lonely;
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &lonely));
    const int64_t n = 100000;
    struct made_view made;
    made_view_init(&made, "h", 1, &n, STRIDES_STEPPED);
    int next = (ranks_me() + 1) % ranks_n();
    int64_t begin = shmview_deadline(0);
    int64_t end = begin + 100000000;
    if (call == SEND)
        REFUSED(shmview_mpi_send(lonely, &made.view, next, end), TIMED_OUT);
    else if (call == RECEIVE)
        REFUSED(shmview_mpi_receive(lonely, &made.view, next, end), TIMED_OUT);
    else /* this rank sends to itself, and does not receive from itself */
        REFUSED(shmview_mpi_sendrecv(lonely, &made.view, ranks_me(), &made.view, next, end),
                TIMED_OUT);
    CHECK(shmview_deadline(0) - begin >= 100000000);
    CHECK(strstr(shmview_mpi_error_text(), "rank "));
    REFUSED(shmview_mpi_send(lonely, &made.view, next, soon()), LOST);
    made_view_deinit(&made);
    OK(shmview_mpi_link_close(lonely));
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link_));
    for (int carry = 0; carry < 3; carry++) {
        OK(shmview_mpi_link_carry(link_, (enum shmview_mpi_carry)carry));
        try_ring(0, STRIDES_C);
        try_ring(100, STRIDES_C);
        try_ring(200000, STRIDES_C);
        try_ring(200000, STRIDES_STEPPED);
        try_mismatch("i", 10, "i", 11);
        try_mismatch("i", 10, "f", 10);
        try_mismatch("i", 10, "i", 100000);
        try_mismatch("i", 100000, "i", 10);
        try_mismatch("i", 100000, "i", 100001);
        try_mismatch("i", 100000, "f", 100000);
    }
    try_shapes_of_as_many();
    try_own();
    try_arguments();
    OK(shmview_mpi_link_close(link_));
    try_deadline(SEND);
    try_deadline(RECEIVE);
    try_deadline(SENDRECV);
    return ranks_end();
}
