/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 3. The first link of a process has one rank, which has nobody to measure with. The first
 * link of several ranks measures, and later ones do not. Short runs are packed in all of them. If a
 * rank cannot measure, no rank waits for it. */
#include <mpi.h>
#include <shmview/mpi.h>

#include "mpi/choice.h"
#include "mpi/link.h"
#include "support_ranks.h"

static int n_types; /* made by this process; a measurement makes some */
static int failing; /* the datatype that cannot be made: 1 is the next one */

/* The library calls this function in place of MPI's. */
int MPI_Type_create_hvector(int n, int length, MPI_Aint stride, MPI_Datatype of,
                            MPI_Datatype *ret_type)
{
    n_types++;
    if (failing && --failing == 0)
        return MPI_ERR_NO_MEM;
    return PMPI_Type_create_hvector(n, length, stride, of, ret_type);
}

/* Opens a link and returns whether this rank has measured for it. */
static int open_link(MPI_Comm comm)
{
    struct shmview_mpi_link *link;
    const int before = n_types;
    OK(shmview_mpi_link_open(comm, &link));
    for (unsigned gaps = 0; gaps < N_GAPS; gaps++)
        for (unsigned run = 1; run < 32; run++)
            CHECK(choice_packs(&link->choice, (enum choice_gaps)gaps, run));
    OK(shmview_mpi_link_close(link));
    return n_types > before;
}

/* Opens no link, because one rank cannot make its n-th datatype. A later link measures
 * again. */
static void fail_link(int rank, int n)
{
    struct shmview_mpi_link *link = NULL;
    if (ranks_me() == rank) {
        failing = n;
        REFUSED(shmview_mpi_link_open(MPI_COMM_WORLD, &link), NO_MEMORY);
        CHECK(failing == 0);
    } else {
        REFUSED(shmview_mpi_link_open(MPI_COMM_WORLD, &link), PEER);
    }
    CHECK(link == NULL);
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    const int has_partner = ranks_me() < 2;
    CHECK(!open_link(MPI_COMM_SELF));
    for (int rank = 0; rank < 2; rank++)
        for (int n = 1; n < 4; n++)
            fail_link(rank, n);
    CHECK(open_link(MPI_COMM_WORLD) == has_partner);
    CHECK(!open_link(MPI_COMM_WORLD));
    CHECK(!open_link(MPI_COMM_SELF));
    return ranks_end();
}
