/* SPDX-License-Identifier: Apache-2.0 */
/* Whether elements with gaps travel faster by a datatype of MPI or packed by this library. That
 * depends on the implementation and on the length of the runs, so it is measured. */
#ifndef MPI_CHOICE_H
#define MPI_CHOICE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Runs of 1, 2-3, 4-7 ... bytes; the last class has all from 4 KiB on. */
#define CHOICE_CLASSES 13

/* Which sides of a message have gaps. */
enum choice_gaps {
    GAPS_SEND,
    GAPS_RECEIVE,
    GAPS_BOTH,
    N_GAPS
};

/* Runs of this class and longer ones go by datatype, shorter ones are packed. */
struct choice {
    unsigned datatype_from[N_GAPS];
};

/* Finds what is best, the same for all ranks of comm. If a rank does not know it, all measure in
 * pairs, for about 15 ms on an idle machine; a rank alone does not. Collective. */
int choice_find(MPI_Comm comm, struct choice *ret_choice);

/* Whether to pack, for runs of at least run bytes. */
bool choice_packs(const struct choice *choice, enum choice_gaps gaps, uint64_t run);

#endif
