/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 2. The library links the program's MPI, and its texts are those of the thread. */
#include <mpi.h>
#include <shmview/mpi.h>
#include <string.h>

#include "mpi/text.h"
#include "support_ranks.h"

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    CHECK(strcmp(shmview_mpi_error_text(), "") == 0);
    CHECK(text_check(MPI_SUCCESS, "nothing") == 0);
    CHECK(text_check(MPI_ERR_COMM, "a test") == -SHMVIEW_ERR_PEER);
    CHECK(strncmp(shmview_mpi_error_text(), "a test: ", 8) == 0);
    int total = 0, one = 1;
    MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(total == ranks_n());
    return ranks_end();
}
