/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <shmview/error.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "message.h"
#include "text.h"

int link_name(const struct shmview_mpi_link *link, int rank)
{
    return link->names ? link->names[rank] : rank;
}

unsigned char *link_take_piece(struct shmview_mpi_link *link)
{
    return link->n_spare ? link->spare[--link->n_spare] : malloc(EXCHANGE_PIECE_BYTES);
}

void link_give_piece(struct shmview_mpi_link *link, unsigned char *piece)
{
    if (piece && link->n_spare < LINK_SPARE_PIECES)
        link->spare[link->n_spare++] = piece;
    else
        free(piece);
}

/* Reads what rank 0 has in its environment, for all. */
static int read_carry(struct shmview_mpi_link *link)
{
    static const char *const names[] = {"measured", "datatype", "packed"};
    int carry = 0;
    const char *text = getenv("SHMVIEW_MPI_CARRY");
    for (int i = 0; text && i < 3; i++)
        if (strcmp(text, names[i]) == 0)
            carry = i;
    int result = text_check(MPI_Bcast(&carry, 1, MPI_INT, 0, link->forward), "a link");
    link->carry = (enum shmview_mpi_carry)carry;
    return result;
}

static int copy_comm(MPI_Comm comm, MPI_Comm *ret_comm)
{
    int result = text_check(MPI_Comm_dup(comm, ret_comm), "a link");
    if (result == 0)
        result = text_check(MPI_Comm_set_errhandler(*ret_comm, MPI_ERRORS_RETURN), "a link");
    return result;
}

/* Divides tags. The numbers of messages get 8 to 16 bits, and a hash gets 6 to 14. */
static void divide_tags(struct shmview_mpi_link *link)
{
    int *largest_tag = NULL, has_it = 0, n_bits = 14;
    uint32_t largest = 32767; /* which every MPI permits */
    /* Other communicators than this one may lack it. */
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &has_it);
    if (has_it && largest_tag && *largest_tag > 32767)
        largest = (uint32_t)*largest_tag;
    while (n_bits < 30 && (2u << (n_bits + 1)) - 1 <= largest)
        n_bits++;
    int n_number_bits = 8 + (n_bits - 14) / 2;
    link->n_numbers = 1u << n_number_bits;
    link->n_hash_bits = n_bits - n_number_bits;
}

static int fill_link(MPI_Comm comm, struct shmview_mpi_link *link)
{
    int result = copy_comm(comm, &link->forward);
    if (result == 0)
        result = copy_comm(comm, &link->back);
    if (result < 0)
        return result;
    MPI_Comm_rank(link->forward, &link->me);
    MPI_Comm_size(link->forward, &link->n);
    divide_tags(link);
    link->sent = calloc((size_t)link->n, sizeof *link->sent);
    link->received = calloc((size_t)link->n, sizeof *link->received);
    int has_memory = link->sent && link->received, all_have = 0;
    result = text_check(MPI_Allreduce(&has_memory, &all_have, 1, MPI_INT, MPI_MIN, link->forward),
                        "a link");
    if (result == 0 && !all_have)
        result = text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a link of %d ranks", link->n);
    if (result == 0)
        result = choice_find(link->forward, &link->choice);
    return result == 0 ? read_carry(link) : result;
}

int shmview_mpi_link_open(MPI_Comm comm, struct shmview_mpi_link **ret_link)
{
    int is_inter = 0;
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter)
        return text_fail(-SHMVIEW_ERR_INVALID, "a link needs a communicator of one group");
    struct shmview_mpi_link *link = calloc(1, sizeof *link);
    if (!link)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a link");
    link->forward = link->back = MPI_COMM_NULL;
    int result = fill_link(comm, link);
    if (result < 0) {
        shmview_mpi_link_close(link);
        return result;
    }
    *ret_link = link;
    return 0;
}

/* Receives greetings that were never awaited, about which some MPIs complain. They are so short
 * that no sender has to do anything more. */
static void drain(MPI_Comm comm)
{
    struct message_greeting greeting;
    for (int is_there = 1; is_there;) {
        MPI_Status status = {0};
        int n = 0;
        is_there = 0;
        if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &is_there, &status) != MPI_SUCCESS ||
            !is_there || MPI_Get_count(&status, MPI_BYTE, &n) != MPI_SUCCESS ||
            n != (int)sizeof greeting ||
            MPI_Recv(&greeting, n, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return;
    }
}

/* Frees the communicators, unless requests are left that MPI may never complete. */
static void free_comms(struct shmview_mpi_link *link)
{
    MPI_Comm *comms[] = {&link->forward, &link->back};
    for (int i = 0; i < 2; i++) {
        if (*comms[i] == MPI_COMM_NULL)
            continue;
        drain(*comms[i]);
        if (!link->is_broken)
            MPI_Comm_free(comms[i]);
    }
}

int shmview_mpi_link_close(struct shmview_mpi_link *link)
{
    if (!link)
        return 0;
    free_comms(link);
    type_cache_deinit(&link->types);
    type_cache_deinit(&link->byte_types);
    while (link->n_spare)
        free(link->spare[--link->n_spare]);
    free(link->sent);
    free(link->received);
    free(link);
    return 0;
}

int shmview_mpi_link_carry(struct shmview_mpi_link *link, enum shmview_mpi_carry carry)
{
    if (carry != SHMVIEW_MPI_MEASURED && carry != SHMVIEW_MPI_DATATYPE &&
        carry != SHMVIEW_MPI_PACKED)
        return text_fail(-SHMVIEW_ERR_INVALID, "%d is no way to carry elements", (int)carry);
    link->carry = carry;
    return 0;
}

int shmview_mpi_type(struct shmview_mpi_link *link, const struct shmview_view *view,
                     MPI_Datatype *ret_type)
{
    return type_of_view(&link->types, view, ret_type);
}

int shmview_mpi_send(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                     int64_t deadline_ns)
{
    return exchange_one(link, view, rank, true, deadline_ns);
}

int shmview_mpi_receive(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                        int64_t deadline_ns)
{
    return exchange_one(link, view, rank, false, deadline_ns);
}

int shmview_mpi_sendrecv(struct shmview_mpi_link *link, const struct shmview_view *to_send,
                         int to_rank, const struct shmview_view *to_receive, int from_rank,
                         int64_t deadline_ns)
{
    struct exchange_end ends[2];
    int result = exchange_end_of_view(link, to_send, to_rank, true, &ends[0]);
    if (result == 0)
        result = exchange_end_of_view(link, to_receive, from_rank, false, &ends[1]);
    return result < 0 ? result : exchange_run(link, ends, 2, deadline_ns);
}
