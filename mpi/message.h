/* SPDX-License-Identifier: Apache-2.0 */
/* One message between two ranks, as a machine that never waits. exchange.h has the protocol. */
#ifndef MPI_MESSAGE_H
#define MPI_MESSAGE_H

#include "exchange.h"
#include "link.h"

enum message_step {
    MESSAGE_GREETS, /* requests: my greeting, theirs */
    MESSAGE_WHOLE,  /* requests[0] has all bytes */
    MESSAGE_PIECES, /* requests by turns */
    /* requests: the message in place of this one, and my greeting if that message is a long one.
     * Both are in pieces. */
    MESSAGE_REFUSES,
    MESSAGE_DONE,
};

struct message_greeting {
    uint32_t number;
    uint32_t carry;
    uint64_t n_bytes;
    uint64_t run; /* 0: contiguous */
    uint64_t fits_datatype;
    struct exchange_shape shape;
};

struct message {
    const struct exchange_end *end;
    uint32_t number; /* of those between these ranks in this direction */
    enum message_step step;
    MPI_Request requests[2];
    /* A probe has found a message in place of this one, with found_tag, and has cancelled this
     * one's receive, which has not ended yet. */
    bool is_displaced;
    int found_tag;
    struct message_greeting mine, theirs;
    struct layout_cursor cursor;
    unsigned char *pieces[2];
    uint64_t piece_bytes;
    uint64_t n_posted, n_finished; /* pieces */
    int result;
};

/* The tag of the bytes of a message. */
int message_data_tag(const struct shmview_mpi_link *link, const struct exchange_shape *shape,
                     uint32_t number);

/* Returns 0 if a receive has brought n bytes, or -SHMVIEW_ERR_CONVERSION with the name of the rank
 * in the text. */
int message_check_bytes(uint32_t number, int name, const MPI_Status *status, uint64_t n);

/* Makes a message of which MPI already has all bytes in a request. */
void message_resume(const struct exchange_end *end, uint32_t number, MPI_Request request,
                    struct message *ret_message);

/* Starts a message. On failure, result is set and it is done. */
void message_begin(struct shmview_mpi_link *link, const struct exchange_end *end,
                   struct message *ret_message);

/* Goes on as far as possible. Returns whether anything has happened. */
bool message_go_on(struct shmview_mpi_link *link, struct message *message);

/* For a message that waits for long: finds out whether the other side has sent another one in its
 * place, so that message_go_on() ends both. */
void message_probe(struct shmview_mpi_link *link, struct message *message);

/* Ends a message that is not done. What MPI does not end now keeps its buffers. */
void message_abandon(struct shmview_mpi_link *link, struct message *message);

#endif
