/* SPDX-License-Identifier: Apache-2.0 */
/* A link: what messages between the ranks of a communicator need. */
#ifndef MPI_LINK_H
#define MPI_LINK_H

#include <mpi.h>
#include <shmview/mpi_type.h>
#include <stdbool.h>
#include <stdint.h>

#include "choice.h"
#include "type.h"

/* Pieces that are kept for the next message. */
#define LINK_SPARE_PIECES 8

/* The messages to one rank, or from it. */
struct link_line {
    uint32_t n; /* messages so far */
    /* The oldest message that was not done in this turn of exchange_run(). */
    uint32_t oldest;
    uint64_t turn;
};

struct shmview_mpi_link {
    MPI_Comm forward; /* from the sender of a message to its receiver */
    MPI_Comm back;
    int me, n;
    /* The ranks in texts, or NULL if they are those of the communicator. The owner frees. */
    const int *names;
    /* So many messages of one rank to another have different tags, and so many bits of a tag are a
     * hash of shape and type. Tags are at most MPI_TAG_UB. */
    uint32_t n_numbers; /* a power of 2 */
    int n_hash_bits;
    struct link_line *sent, *received; /* to and from each rank */
    uint64_t n_turns;                  /* of exchange_run() */
    struct choice choice;
    enum shmview_mpi_carry carry;
    bool is_broken;
    struct type_cache types, byte_types;
    unsigned char *spare[LINK_SPARE_PIECES];
    int n_spare;
};

/* A rank of the communicator as it is in texts. */
int link_name(const struct shmview_mpi_link *link, int rank);

/* A buffer of EXCHANGE_PIECE_BYTES, or NULL without memory; and back. NULL may be given back. */
unsigned char *link_take_piece(struct shmview_mpi_link *link);
void link_give_piece(struct shmview_mpi_link *link, unsigned char *piece);

#endif
