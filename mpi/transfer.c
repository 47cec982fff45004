/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer.h"

#include <shmview/mpi.h>
#include <stdlib.h>

#include "exchange.h"
#include "text.h"

/* Ends that need no memory from the heap. */
#define FEW 4

int transfer_run(struct shmview_mpi_link *link, const struct transfer_part *parts, size_t n,
                 int64_t deadline_ns)
{
    struct exchange_end few[FEW], *ends = few;
    int result = 0;
    if (n > FEW && !(ends = calloc(n, sizeof *ends)))
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for %zu transfers", n);
    for (size_t i = 0; i < n && result == 0; i++)
        result = exchange_end_of_view(link, parts[i].view, parts[i].rank, parts[i].send, &ends[i]);
    if (result == 0)
        result = exchange_run(link, ends, n, deadline_ns);
    if (ends != few)
        free(ends);
    return result;
}

int transfer_send(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                  int64_t deadline_ns)
{
    const struct transfer_part part = {.view = view, .rank = rank, .send = true};
    return transfer_run(link, &part, 1, deadline_ns);
}

int transfer_receive(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                     int64_t deadline_ns)
{
    const struct transfer_part part = {.view = view, .rank = rank, .send = false};
    return transfer_run(link, &part, 1, deadline_ns);
}
