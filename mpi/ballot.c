/* SPDX-License-Identifier: Apache-2.0 */
#include "ballot.h"

#include <sched.h>
#include <shmview/error.h>
#include <shmview/shmview.h>
#include <stdlib.h>
#include <time.h>

#include "text.h"

#define N_POLLS 1000
#define NAP_NS  20000

/* The reduction takes the least of each member: the first rank that fails, the least hash and the
 * least complement, which is that of the greatest hash. They are signed and not negative, because
 * the least of unsigned numbers is a wrong one in MPICH 4.0. */
struct vote {
    int64_t rank_and_error; /* INT64_MAX without an error */
    int64_t hash, complement;
};

/* MPI works on the votes until it is done, after a deadline as well, so they are on the heap. */
struct ballot {
    struct vote mine, least;
};

static int wait_until(struct shmview_mpi_link *link, MPI_Request *request, const char *doing,
                      int64_t deadline_ns)
{
    for (unsigned n = 0;; n++) {
        int is_done = 0;
        int result = text_check(MPI_Test(request, &is_done, MPI_STATUS_IGNORE), doing);
        if (result < 0 || is_done)
            return result;
        if (shmview_deadline(0) >= deadline_ns)
            return text_fail(-SHMVIEW_ERR_TIMED_OUT,
                             "%s: some of the %d ranks have not come by the deadline", doing,
                             link->n);
        if (n < N_POLLS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

static int read_votes(const struct shmview_mpi_link *link, int result, const struct vote *least,
                      const char *doing)
{
    if (least->rank_and_error != INT64_MAX) {
        int rank = (int)(least->rank_and_error >> 32);
        int error = -(int)(least->rank_and_error & 0xffffffffu);
        if (rank == link->me || result == error)
            return result;
        return text_fail(error, "%s: rank %d has failed: %s", doing, rank, shmview_strerror(error));
    }
    if (least->hash != INT64_MAX - least->complement)
        return text_fail(-SHMVIEW_ERR_CONVERSION, "%s: the ranks do not describe the same array",
                         doing);
    return 0;
}

int ballot_agree(struct shmview_mpi_link *link, int result, uint64_t hash, const char *doing,
                 int64_t deadline_ns)
{
    if (link->is_broken)
        return text_fail(-SHMVIEW_ERR_LOST, "an earlier message of this link has failed");
    struct ballot *ballot = calloc(1, sizeof *ballot);
    if (!ballot) {
        link->is_broken = true;
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a vote");
    }
    int64_t positive = (int64_t)(hash >> 1);
    ballot->mine = (struct vote){
        .rank_and_error = INT64_MAX, .hash = positive, .complement = INT64_MAX - positive};
    if (result < 0)
        ballot->mine.rank_and_error = (int64_t)link->me << 32 | -result;
    MPI_Request request = MPI_REQUEST_NULL;
    int waited = text_check(MPI_Iallreduce(&ballot->mine, &ballot->least, 3, MPI_INT64_T, MPI_MIN,
                                           link->forward, &request),
                            doing);
    if (waited == 0)
        waited = wait_until(link, &request, doing, deadline_ns);
    if (waited < 0) {
        /* The ballot is left to MPI. */
        link->is_broken = true;
        return waited;
    }
    result = read_votes(link, result, &ballot->least, doing);
    free(ballot);
    return result;
}
