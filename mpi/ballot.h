/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement of all ranks of a link, with a deadline. */
#ifndef MPI_BALLOT_H
#define MPI_BALLOT_H

#include <stdint.h>

#include "link.h"

/* Collective. result is what this rank has found so far, and hash that of what all ranks must have
 * alike. Returns 0 if all have 0 and the same hash. Otherwise all ranks fail: with the error of the
 * first rank that has one, whose number is in the text of the others, or with
 * -SHMVIEW_ERR_CONVERSION if hashes differ; or with _TIMED_OUT, _PEER or _LOST. doing is for texts.
 */
int ballot_agree(struct shmview_mpi_link *link, int result, uint64_t hash, const char *doing,
                 int64_t deadline_ns);

#endif
