/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 2. More messages between two ranks than the tag of a message can number, at once or after
 * a mismatch, and requests that end late. */
#include <limits.h>
#include <mpi.h>
#include <shmview/element.h>
#include <shmview/mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/exchange.h"
#include "mpi/link.h"
#include "mpi/message.h"
#include "support_ranks.h"
#include "support_views.h"

#define N_NUMBERS  256 /* in the tags of a link with the least MPI_TAG_UB */
#define N_MESSAGES 300

static const int64_t n_elements = 33000; /* of 2 bytes: they need a greeting */
static uint32_t seed;
static bool has_few_tags = true;
static bool is_late;  /* no request ends before probes have found messages */
static int n_to_find; /* by probes, until requests end */

/* A request that does not end before a probe has found n_to_find messages, and not in the next
 * n_more tests. It is the one of the n_until_held-th call. */
static MPI_Request *held;
static int n_until_held, n_more;
static int n_freed; /* requests that had not ended */

/* Finds an end of a request now and then only, so that messages overtake each other. */
int MPI_Test(MPI_Request *request, int *is_done, MPI_Status *status)
{
    seed = seed * 1103515245 + 12345;
    *is_done = 0;
    if (request == held && (n_to_find > 0 || n_more-- > 0))
        return MPI_SUCCESS;
    bool finds = is_late ? n_to_find <= 0 : seed >> 29 == 0;
    return finds ? PMPI_Test(request, is_done, status) : MPI_SUCCESS;
}

int MPI_Iprobe(int rank, int tag, MPI_Comm comm, int *is_there, MPI_Status *status)
{
    int result = PMPI_Iprobe(rank, tag, comm, is_there, status);
    n_to_find -= *is_there;
    return result;
}

int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *has_it)
{
    static int few = 32767;
    int result = PMPI_Comm_get_attr(comm, key, value, has_it);
    if (key == MPI_TAG_UB && *has_it && has_few_tags)
        *(int **)value = &few;
    return result;
}

static int64_t soon(void)
{
    return shmview_deadline(60000000000);
}

static void may_hold(MPI_Request *request)
{
    if (n_until_held > 0 && --n_until_held == 0)
        held = request;
}

int MPI_Isend(const void *bytes, int n, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    may_hold(request);
    return PMPI_Isend(bytes, n, type, rank, tag, comm, request);
}

int MPI_Irecv(void *bytes, int n, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    may_hold(request);
    return PMPI_Irecv(bytes, n, type, rank, tag, comm, request);
}

int MPI_Request_free(MPI_Request *request)
{
    n_freed++;
    return PMPI_Request_free(request);
}

static void hold(int n_calls, int n_tests)
{
    n_to_find = 1;
    n_more = n_tests;
    n_until_held = n_calls;
}

static void hold_none(void)
{
    n_to_find = 0;
    held = NULL;
}

static void fill(const struct made_view *made, int number)
{
    for (int64_t i = 0; i < n_elements; i++)
        SHMVIEW_AT1(int16_t, &made->view, i) = (int16_t)number;
}

static void is_full(const struct made_view *made, int number)
{
    for (int64_t i = 0; i < n_elements; i++)
        CHECK(SHMVIEW_AT1(int16_t, &made->view, i) == number);
}

/* Sends and receives all of them at once: the n-th one sent is the n-th one received. */
static void check_many(struct shmview_mpi_link *link, enum strides strides)
{
    static struct made_view made[2 * N_MESSAGES];
    static struct exchange_end ends[2 * N_MESSAGES];
    const int other = 1 - ranks_me();
    for (int i = 0; i < 2 * N_MESSAGES; i++) {
        const bool sends = i % 2 == 0;
        made_view_init(&made[i], "h", 1, &n_elements, strides);
        if (sends)
            fill(&made[i], 1000 * ranks_me() + i / 2);
        OK(exchange_end_of_view(link, &made[i].view, other, sends, &ends[i]));
    }
    OK(exchange_run(link, ends, 2 * N_MESSAGES, soon()));
    for (int i = 1; i < 2 * N_MESSAGES; i += 2)
        is_full(&made[i], 1000 * other + i / 2);
    for (int i = 0; i < 2 * N_MESSAGES; i++)
        made_view_deinit(&made[i]);
}

/* The data of a message is no other message, although the receiver still waits for the greeting. */
static void check_late_greeting(struct shmview_mpi_link *link, enum strides strides)
{
    struct made_view made;
    made_view_init(&made, "h", 1, &n_elements, strides);
    is_late = true;
    n_to_find = ranks_me() == 1 ? 3 : 0;
    if (ranks_me() == 0) {
        fill(&made, 7);
        OK(shmview_mpi_send(link, &made.view, 1, soon()));
    } else {
        OK(shmview_mpi_receive(link, &made.view, 0, soon()));
        is_full(&made, 7);
        CHECK(n_to_find <= 0);
    }
    is_late = false;
    made_view_deinit(&made);
}

/* Rank 0 sends n elements to rank 1, or rank 1 receives them. Returns the result of its own call.
 */
static int transfer(struct shmview_mpi_link *link, int64_t n, enum strides strides,
                    int64_t deadline_ns)
{
    struct made_view made;
    const bool sends = ranks_me() == 0;
    made_view_init(&made, "i", 1, &n, strides);
    for (int32_t i = 0; i < n && sends; i++)
        SHMVIEW_AT1(int32_t, &made.view, i) = i + 1;
    int result = sends ? shmview_mpi_send(link, &made.view, 1, deadline_ns)
                       : shmview_mpi_receive(link, &made.view, 0, deadline_ns);
    for (int32_t i = 0; i < n && result == 0; i++)
        CHECK(SHMVIEW_AT1(int32_t, &made.view, i) == i + 1);
    made_view_deinit(&made);
    return result;
}

static void transfer_short_ones(struct shmview_mpi_link *link, int n)
{
    for (int i = 0; i < n; i++)
        OK(transfer(link, 10, STRIDES_C, soon()));
}

/* A receiver greets for a long message, but gets a short one. Its greeting is not that of a later
 * message with its tag, which both sides carry in another way. */
static void check_old_greeting(struct shmview_mpi_link *link)
{
    if (ranks_me() == 0)
        OK(transfer(link, 10, STRIDES_C, soon()));
    else
        REFUSED(transfer(link, 100000, STRIDES_STEPPED, soon()), CONVERSION);
    ranks_barrier(); /* the sender is not so far ahead that the receiver mistakes its messages */
    transfer_short_ones(link, N_NUMBERS - 1);
    OK(transfer(link, 100000, STRIDES_C, soon()));
}

/* The greeting of a later message is there when the receiver waits for one of its tag. */
static void check_early_greeting(void)
{
    struct shmview_mpi_link *link;
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link));
    if (ranks_me() == 0) {
        transfer_short_ones(link, N_NUMBERS);
        REFUSED(transfer(link, 100000, STRIDES_C, shmview_deadline(100000000)), TIMED_OUT);
    }
    ranks_barrier();
    if (ranks_me() == 1) {
        REFUSED(transfer(link, 100000, STRIDES_C, soon()), CONVERSION);
        /* The link is lost on both sides, so that nobody waits for the other to close it. */
        REFUSED(transfer(link, 100000, STRIDES_C, shmview_deadline(0)), TIMED_OUT);
    }
    OK(shmview_mpi_link_close(link));
}

/* All messages are there when the receiver waits for the first one. A later one has the shape that
 * it waits for. */
static void check_early_shape(void)
{
    struct shmview_mpi_link *link;
    has_few_tags = false;
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link));
    if (ranks_me() == 0) {
        transfer_short_ones(link, N_NUMBERS);
        OK(transfer(link, 11, STRIDES_C, soon()));
    }
    ranks_barrier();
    if (ranks_me() == 1) {
        REFUSED(transfer(link, 11, STRIDES_C, soon()), CONVERSION);
        transfer_short_ones(link, N_NUMBERS - 1);
        OK(transfer(link, 11, STRIDES_C, soon()));
    }
    OK(shmview_mpi_link_close(link));
    has_few_tags = true;
}

/* A receive that MPI ends with fewer bytes than were awaited, because both tags are alike. */
static void check_like_tags(struct shmview_mpi_link *link, int64_t n, enum strides strides)
{
    const int64_t n_sent = 10;
    struct made_view made;
    struct exchange_end end;
    made_view_init(&made, "i", 1, &n_sent, STRIDES_C);
    OK(exchange_end_of_view(link, &made.view, 1 - ranks_me(), true, &end));
    const int tag = message_data_tag(link, &end.shape, 0);
    do
        end.shape.shape[0] = ++n;
    while (message_data_tag(link, &end.shape, 0) != tag);
    if (ranks_me() == 0)
        OK(transfer(link, n_sent, STRIDES_C, soon()));
    else
        REFUSED(transfer(link, n, strides, soon()), CONVERSION);
    transfer_short_ones(link, 1);
    made_view_deinit(&made);
}

/* A receive that MPI has matched, but not ended, does not take a later message with the number of
 * its tag for one in its own place. */
static void check_late_end(struct shmview_mpi_link *link)
{
    static struct made_view made[N_NUMBERS + 1];
    static struct exchange_end ends[N_NUMBERS + 1];
    const int64_t few = 10;
    for (int i = 0; i <= N_NUMBERS; i++) {
        made_view_init(&made[i], "h", 1, i < N_NUMBERS ? &few : &n_elements, STRIDES_C);
        OK(exchange_end_of_view(link, &made[i].view, 1 - ranks_me(), ranks_me() == 0, &ends[i]));
    }
    if (ranks_me() == 0)
        fill(&made[N_NUMBERS], 8);
    else
        hold(1, 10);
    OK(exchange_run(link, ends, N_NUMBERS + 1, soon()));
    CHECK(ranks_me() == 0 || (held && n_to_find <= 0));
    hold_none();
    is_full(&made[N_NUMBERS], 8);
    for (int i = 0; i <= N_NUMBERS; i++)
        made_view_deinit(&made[i]);
}

/* A receiver that refuses a message waits until MPI has sent its greeting, which is in memory that
 * is free after the call. */
static void check_late_sent_greeting(struct shmview_mpi_link *link)
{
    n_freed = 0;
    if (ranks_me() == 0) {
        OK(transfer(link, 10, STRIDES_C, soon()));
    } else {
        hold(1, 10);
        REFUSED(transfer(link, 100000, STRIDES_C, soon()), CONVERSION);
        CHECK(held && n_to_find <= 0);
        hold_none();
    }
    CHECK(n_freed == 0);
    ranks_barrier();
}

/* The deadline holds for the receive of a message that is refused, and for the greeting of a
 * receiver that has cancelled its receive. */
static void check_late_refused(int64_t n_sent, int64_t n_expected, int n_calls)
{
    struct shmview_mpi_link *link;
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link));
    if (ranks_me() == 0) {
        int result = transfer(link, n_sent, STRIDES_C, soon());
        CHECK(n_sent < n_expected ? result == 0 : result < 0);
    } else {
        hold(n_calls, INT_MAX);
        int64_t deadline_ns = shmview_deadline(500000000);
        REFUSED(transfer(link, n_expected, STRIDES_C, deadline_ns), TIMED_OUT);
        CHECK(n_calls == 1 || !held || strstr(shmview_mpi_error_text(), "begun another one"));
        hold_none();
    }
    ranks_barrier();
    /* The link is lost on both sides, so that nobody waits for the other to close it. */
    CHECK(transfer(link, 100000, STRIDES_C, shmview_deadline(0)) < 0);
    OK(shmview_mpi_link_close(link));
}

/* Texts have the names that the owner of the link gives to ranks. */
static void check_names(void)
{
    static const int names[] = {100, 101};
    struct shmview_mpi_link *link;
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link));
    link->names = names;
    if (ranks_me() == 0) {
        OK(transfer(link, 10, STRIDES_C, soon()));
    } else {
        REFUSED(transfer(link, 20, STRIDES_C, soon()), CONVERSION);
        CHECK(strstr(shmview_mpi_error_text(), "from rank 100:"));
    }
    /* The sender is late before the receiver begins. */
    for (int turn = 0; turn < 2; turn++) {
        ranks_barrier();
        if (ranks_me() != turn)
            continue;
        REFUSED(transfer(link, 100000, STRIDES_C, shmview_deadline(0)), TIMED_OUT);
        CHECK(strstr(shmview_mpi_error_text(), turn == 0 ? "rank 101 has" : "rank 100 has"));
    }
    OK(shmview_mpi_link_close(link));
}

/* The attribute of the largest tag is that of MPI_COMM_WORLD, also for a link between others. */
static void check_other_comm(void)
{
    struct shmview_mpi_link *world, *link;
    MPI_Comm comm;
    has_few_tags = false;
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &world));
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, ranks_me(), &comm) == MPI_SUCCESS);
    OK(shmview_mpi_link_open(comm, &link));
    CHECK(link->n_numbers == world->n_numbers && link->n_hash_bits == world->n_hash_bits);
    OK(shmview_mpi_link_close(link));
    OK(shmview_mpi_link_close(world));
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    struct shmview_mpi_link *link;
    ranks_begin(&argc, &argv);
    seed = (uint32_t)ranks_me() + 1;
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link));
    check_late_greeting(link, STRIDES_C);
    check_many(link, STRIDES_C);
    OK(shmview_mpi_link_carry(link, SHMVIEW_MPI_PACKED));
    check_late_greeting(link, STRIDES_STEPPED);
    check_many(link, STRIDES_STEPPED);
    check_old_greeting(link);
    check_late_sent_greeting(link);
    check_late_end(link);
    check_like_tags(link, 10, STRIDES_C);
    check_like_tags(link, 10, STRIDES_STEPPED);
    check_like_tags(link, 20000, STRIDES_C);
    OK(shmview_mpi_link_carry(link, SHMVIEW_MPI_DATATYPE));
    check_like_tags(link, 10, STRIDES_STEPPED);
    OK(shmview_mpi_link_close(link));
    check_early_greeting();
    check_early_shape();
    check_names();
    check_late_refused(10, 100000, 3);
    check_late_refused(100000, 10, 2);
    check_late_refused(10, 100000, 1);
    check_other_comm();
    return ranks_end();
}
