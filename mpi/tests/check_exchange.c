/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 2. More messages between two ranks at once than the tag of a message can number, and
 * messages whose data a probe finds before their greeting is done. */
#include <mpi.h>
#include <shmview/element.h>
#include <shmview/mpi.h>
#include <stdlib.h>

#include "mpi/exchange.h"
#include "support_ranks.h"
#include "support_views.h"

#define N_MESSAGES 300

static const int64_t n_elements = 33000; /* of 2 bytes: they need a greeting */
static uint32_t seed;
static bool is_late;  /* no request ends before probes have found messages */
static int n_to_find; /* by probes, until requests end */

/* Finds an end of a request now and then only, so that messages overtake each other. */
int MPI_Test(MPI_Request *request, int *is_done, MPI_Status *status)
{
    seed = seed * 1103515245 + 12345;
    *is_done = 0;
    bool finds = is_late ? n_to_find <= 0 : seed >> 29 == 0;
    return finds ? PMPI_Test(request, is_done, status) : MPI_SUCCESS;
}

int MPI_Iprobe(int rank, int tag, MPI_Comm comm, int *is_there, MPI_Status *status)
{
    int result = PMPI_Iprobe(rank, tag, comm, is_there, status);
    n_to_find -= *is_there;
    return result;
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
    OK(exchange_run(link, ends, 2 * N_MESSAGES, shmview_deadline(60000000000)));
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
        OK(shmview_mpi_send(link, &made.view, 1, shmview_deadline(60000000000)));
    } else {
        OK(shmview_mpi_receive(link, &made.view, 0, shmview_deadline(60000000000)));
        is_full(&made, 7);
        CHECK(n_to_find <= 0);
    }
    is_late = false;
    made_view_deinit(&made);
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
    OK(shmview_mpi_link_close(link));
    return ranks_end();
}
