/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <shmview/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Pieces of a message that is contiguous on both sides, because counts are ints. */
#define DIRECT_BYTES ((uint64_t)1 << 30)

/* A tag has a bit for its kind, bits of the number (link.h), and a hash or 0. */
#define IS_DATA 1

static int tag_of(const struct shmview_mpi_link *link, uint32_t number, uint64_t hash, int kind)
{
    uint32_t low = (uint32_t)hash & ((1u << link->n_hash_bits) - 1);
    return (int)((low * link->n_numbers + number % link->n_numbers) << 1 | (unsigned)kind);
}

int message_data_tag(const struct shmview_mpi_link *link, const struct exchange_shape *shape,
                     uint32_t number)
{
    uint64_t hash = shape->itemsize * 0x9e3779b97f4a7c15u;
    for (uint32_t d = 0; d < shape->ndim; d++)
        hash = ((hash ^ hash >> 29) + (uint64_t)shape->shape[d] + 1) * 0xbf58476d1ce4e5b9u;
    /* The format comes last, so that two types of numbers that have one size and one shape have
     * different hashes, unless there are fewer than 9 bits. */
    return tag_of(link, number, hash ^ hash >> 32 ^ shape->format, IS_DATA);
}

static int data_tag(const struct shmview_mpi_link *link, const struct message *m)
{
    return message_data_tag(link, &m->end->shape, m->number);
}

static int greeting_tag(const struct shmview_mpi_link *link, const struct message *m)
{
    return tag_of(link, m->number, 0, 0);
}

static void finish(struct shmview_mpi_link *link, struct message *m, int result)
{
    for (int i = 0; i < 2; i++) {
        link_give_piece(link, m->pieces[i]);
        m->pieces[i] = NULL;
    }
    m->result = result;
    m->step = MESSAGE_DONE;
}

static int shape_text(const struct exchange_shape *shape, char *text, size_t n)
{
    int length = snprintf(text, n, "(");
    for (uint32_t d = 0; d < shape->ndim && d < SHMVIEW_MAX_NDIM && (size_t)length < n; d++)
        length += snprintf(text + length, n - (size_t)length, d ? ", %lld" : "%lld",
                           (long long)shape->shape[d]);
    if ((size_t)length < n)
        length +=
            snprintf(text + length, n - (size_t)length, ") of %u bytes each", shape->itemsize);
    return length;
}

static int mismatch(const struct shmview_mpi_link *link, const struct message *m,
                    const struct exchange_shape *theirs)
{
    char here[128], there[128] = "another shape or type";
    shape_text(&m->end->shape, here, sizeof here);
    if (theirs)
        shape_text(theirs, there, sizeof there);
    const char *other = theirs && theirs->format != m->end->shape.format ? ", of another type" : "";
    return text_fail(-SHMVIEW_ERR_CONVERSION, "message %u %s rank %d: here %s, there %s%s",
                     m->number, m->end->send ? "to" : "from", link_name(link, m->end->rank), here,
                     there, other);
}

/* Whether this side packs a message whose other side does not matter. */
static bool packs_alone(const struct shmview_mpi_link *link, const struct exchange_end *end)
{
    if (layout_is_contiguous(&end->layout))
        return false;
    if (link->carry != SHMVIEW_MPI_MEASURED && layout_fits_datatype(&end->layout))
        return link->carry == SHMVIEW_MPI_PACKED;
    return !layout_fits_datatype(&end->layout) ||
           choice_packs(&link->choice, end->send ? GAPS_SEND : GAPS_RECEIVE, end->layout.run);
}

/* Whether a message goes in pieces; both sides find the same. */
static bool packs_together(const struct shmview_mpi_link *link, const struct message_greeting *send,
                           const struct message_greeting *receive)
{
    if (send->carry == SHMVIEW_MPI_PACKED || receive->carry == SHMVIEW_MPI_PACKED ||
        !send->fits_datatype || !receive->fits_datatype)
        return true;
    if (send->carry == SHMVIEW_MPI_DATATYPE || receive->carry == SHMVIEW_MPI_DATATYPE)
        return false;
    if (send->run && receive->run)
        return choice_packs(&link->choice, GAPS_BOTH,
                            send->run < receive->run ? send->run : receive->run);
    return send->run ? choice_packs(&link->choice, GAPS_SEND, send->run)
                     : choice_packs(&link->choice, GAPS_RECEIVE, receive->run);
}

static int post(struct shmview_mpi_link *link, struct message *m, int slot, void *bytes, uint64_t n,
                MPI_Datatype type)
{
    int tag = data_tag(link, m), rank = m->end->rank;
    return text_check(
        m->end->send ? MPI_Isend(bytes, (int)n, type, rank, tag, link->forward, &m->requests[slot])
                     : MPI_Irecv(bytes, (int)n, type, rank, tag, link->forward, &m->requests[slot]),
        m->end->send ? "a send" : "a receive");
}

/* Starts the transfer of all bytes at once. */
static int begin_whole(struct shmview_mpi_link *link, struct message *m, bool packs)
{
    const struct layout *layout = &m->end->layout;
    m->step = MESSAGE_WHOLE;
    if (packs) {
        m->pieces[0] = link_take_piece(link);
        if (!m->pieces[0])
            return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory to pack elements");
        if (m->end->send)
            layout_pack(layout, &m->cursor, m->pieces[0], (size_t)layout->n_bytes);
        return post(link, m, 0, m->pieces[0], layout->n_bytes, MPI_BYTE);
    }
    if (layout_is_contiguous(layout))
        return post(link, m, 0, layout->data, layout->n_bytes, MPI_BYTE);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int result = type_of_layout(&link->byte_types, layout, &type);
    return result < 0 ? result : post(link, m, 0, layout->data, 1, type);
}

static int receive_greeting(struct shmview_mpi_link *link, struct message *m)
{
    return text_check(MPI_Irecv(&m->theirs, sizeof m->theirs, MPI_BYTE, m->end->rank,
                                greeting_tag(link, m), m->end->send ? link->back : link->forward,
                                &m->requests[1]),
                      "a greeting");
}

static int begin_greeting(struct shmview_mpi_link *link, struct message *m)
{
    const struct layout *layout = &m->end->layout;
    m->step = MESSAGE_GREETS;
    m->mine = (struct message_greeting){
        .number = m->number,
        .carry = (uint32_t)link->carry,
        .n_bytes = layout->n_bytes,
        .run = layout_is_contiguous(layout) ? 0 : layout->run,
        .fits_datatype = layout_is_contiguous(layout) || layout_fits_datatype(layout),
        .shape = m->end->shape,
    };
    int result = text_check(MPI_Isend(&m->mine, sizeof m->mine, MPI_BYTE, m->end->rank,
                                      greeting_tag(link, m),
                                      m->end->send ? link->forward : link->back, &m->requests[0]),
                            "a greeting");
    return result < 0 ? result : receive_greeting(link, m);
}

void message_begin(struct shmview_mpi_link *link, const struct exchange_end *end,
                   struct message *ret_message)
{
    *ret_message = (struct message){.end = end, .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    ret_message->number = end->send ? link->sent[end->rank].n++ : link->received[end->rank].n++;
    int result = end->layout.n_bytes > EXCHANGE_PIECE_BYTES
                     ? begin_greeting(link, ret_message)
                     : begin_whole(link, ret_message, packs_alone(link, end));
    if (result < 0) {
        link->is_broken = true;
        message_abandon(link, ret_message);
        ret_message->result = result;
    }
}

void message_resume(const struct exchange_end *end, uint32_t number, MPI_Request request,
                    struct message *ret_message)
{
    *ret_message = (struct message){.end = end,
                                    .number = number,
                                    .step = MESSAGE_WHOLE,
                                    .requests = {request, MPI_REQUEST_NULL}};
}

/* After both greetings. */
static int end_greeting(struct shmview_mpi_link *link, struct message *m)
{
    /* A receiver that got a short message in place of a long one has left its greeting unread. */
    if (m->end->send && (int32_t)(m->theirs.number - m->number) < 0)
        return receive_greeting(link, m);
    if (m->theirs.number != m->number)
        return text_fail(-SHMVIEW_ERR_CONVERSION, "message %u %s rank %d: there it is message %u",
                         m->number, m->end->send ? "to" : "from", link_name(link, m->end->rank),
                         m->theirs.number);
    if (memcmp(&m->theirs.shape, &m->mine.shape, sizeof m->mine.shape) != 0 ||
        m->theirs.n_bytes != m->mine.n_bytes)
        return mismatch(link, m, &m->theirs.shape);
    const struct message_greeting *send = m->end->send ? &m->mine : &m->theirs;
    const struct message_greeting *receive = m->end->send ? &m->theirs : &m->mine;
    bool is_direct = !send->run && !receive->run;
    if (!is_direct && !packs_together(link, send, receive))
        return begin_whole(link, m, false);
    m->step = MESSAGE_PIECES;
    m->piece_bytes = is_direct ? DIRECT_BYTES : EXCHANGE_PIECE_BYTES;
    for (int i = 0; i < 2 && m->mine.run; i++) {
        m->pieces[i] = link_take_piece(link);
        if (!m->pieces[i])
            return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory to pack elements");
    }
    return 0;
}

static uint64_t piece_length(const struct message *m, uint64_t i)
{
    uint64_t left = m->end->layout.n_bytes - i * m->piece_bytes;
    return left < m->piece_bytes ? left : m->piece_bytes;
}

/* Packs and posts pieces while there are free slots. */
static int post_pieces(struct shmview_mpi_link *link, struct message *m)
{
    const struct layout *layout = &m->end->layout;
    while (m->n_posted - m->n_finished < 2 && m->n_posted * m->piece_bytes < layout->n_bytes) {
        int slot = (int)(m->n_posted & 1);
        uint64_t n = piece_length(m, m->n_posted);
        unsigned char *bytes = m->pieces[slot];
        if (!bytes)
            bytes = layout->data + m->n_posted * m->piece_bytes;
        else if (m->end->send)
            layout_pack(layout, &m->cursor, bytes, (size_t)n);
        int result = post(link, m, slot, bytes, n, MPI_BYTE);
        if (result < 0)
            return result;
        m->n_posted++;
    }
    return 0;
}

static int test(struct message *m, int slot, int *ret_is_done, MPI_Status *ret_status)
{
    *ret_is_done = 0;
    return text_check(MPI_Test(&m->requests[slot], ret_is_done, ret_status),
                      m->end->send ? "a send" : "a receive");
}

/* Begins to receive the message in place of this one. If it is a long one, its greeting is
 * answered, so that the sender fails as well. */
static int begin_refusal(struct shmview_mpi_link *link, struct message *m)
{
    const bool is_long = (m->found_tag & 1) != IS_DATA;
    const struct message_greeting answer = {
        .number = m->number, .n_bytes = m->end->layout.n_bytes, .shape = m->end->shape};
    _Static_assert(sizeof answer <= EXCHANGE_PIECE_BYTES, "a greeting fits into a piece");
    m->step = MESSAGE_REFUSES;
    for (int i = 0; i < (is_long ? 2 : 1); i++) {
        if (!m->pieces[i])
            m->pieces[i] = link_take_piece(link);
        if (!m->pieces[i])
            return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a message");
    }
    int result = text_check(MPI_Irecv(m->pieces[0], (int)EXCHANGE_PIECE_BYTES, MPI_BYTE,
                                      m->end->rank, m->found_tag, link->forward, &m->requests[0]),
                            "a receive");
    if (result < 0 || !is_long)
        return result;
    memcpy(m->pieces[1], &answer, sizeof answer);
    return text_check(MPI_Isend(m->pieces[1], sizeof answer, MPI_BYTE, m->end->rank, m->found_tag,
                                link->back, &m->requests[1]),
                      "a greeting");
}

/* After the receive of a refused message. */
static int end_refusal(const struct shmview_mpi_link *link, struct message *m)
{
    if ((m->found_tag & 1) == IS_DATA)
        return mismatch(link, m, NULL);
    memcpy(&m->theirs, m->pieces[0], sizeof m->theirs);
    return mismatch(link, m, &m->theirs.shape);
}

/* Whether MPI has cancelled the receive of a message in whose place there is another one. The
 * receive has ended, so that this is known. */
static bool was_cancelled(struct message *m, const MPI_Status *status)
{
    int flag = 0;
    bool is_displaced = m->is_displaced;
    m->is_displaced = false;
    return is_displaced && MPI_Test_cancelled(status, &flag) == MPI_SUCCESS && flag;
}

/* Returns the bytes of a message, which an int may not hold, or -1. Datatypes of layouts are made
 * of bytes. */
static MPI_Count bytes_of(const MPI_Status *status)
{
    MPI_Count n = 0;
#if MPI_VERSION >= 4
    int result = MPI_Get_elements_c(status, MPI_BYTE, &n);
#else
    int result = MPI_Get_elements_x(status, MPI_BYTE, &n); /* deprecated by MPI 4.1 */
#endif
    return result == MPI_SUCCESS ? n : -1;
}

int message_check_bytes(uint32_t number, int name, const MPI_Status *status, uint64_t n)
{
    const MPI_Count n_received = bytes_of(status);
    if (n_received >= 0 && (uint64_t)n_received == n)
        return 0;
    return text_fail(
        -SHMVIEW_ERR_CONVERSION,
        "message %u from rank %d: here %llu bytes, there %lld of another shape or type", number,
        name, (unsigned long long)n, (long long)n_received);
}

/* Short messages with like tags may differ. After greetings that agree, one side has failed. */
static int check_bytes(const struct shmview_mpi_link *link, const struct message *m,
                       const MPI_Status *status, uint64_t n)
{
    int result =
        m->end->send ? 0 : message_check_bytes(m->number, link_name(link, m->end->rank), status, n);
    return result < 0 && m->end->layout.n_bytes > EXCHANGE_PIECE_BYTES ? -SHMVIEW_ERR_PEER : result;
}

static int go_on_pieces(struct shmview_mpi_link *link, struct message *m, bool *ret_moved)
{
    int result = post_pieces(link, m);
    while (result == 0 && m->n_finished < m->n_posted) {
        int slot = (int)(m->n_finished & 1), is_done;
        MPI_Status status;
        result = test(m, slot, &is_done, &status);
        if (result < 0 || !is_done)
            return result;
        *ret_moved = true;
        result = check_bytes(link, m, &status, piece_length(m, m->n_finished));
        if (result < 0)
            return result;
        if (!m->end->send && m->pieces[slot])
            layout_unpack(&m->end->layout, &m->cursor, m->pieces[slot],
                          (size_t)piece_length(m, m->n_finished));
        m->n_finished++;
        result = post_pieces(link, m);
    }
    if (result == 0)
        finish(link, m, 0);
    return result;
}

static int go_on(struct shmview_mpi_link *link, struct message *m, bool *ret_moved)
{
    int is_done = 0, result = 0;
    MPI_Status status;
    switch (m->step) {
    case MESSAGE_GREETS:
    case MESSAGE_REFUSES:
        result = test(m, 0, &is_done, MPI_STATUS_IGNORE);
        if (result == 0 && is_done)
            result = test(m, 1, &is_done, &status);
        if (result < 0 || !is_done)
            return result;
        *ret_moved = true;
        if (m->step == MESSAGE_REFUSES)
            return end_refusal(link, m);
        return was_cancelled(m, &status) ? begin_refusal(link, m) : end_greeting(link, m);
    case MESSAGE_WHOLE:
        result = test(m, 0, &is_done, &status);
        if (result < 0 || !is_done)
            return result;
        *ret_moved = true;
        if (was_cancelled(m, &status))
            return begin_refusal(link, m);
        result = check_bytes(link, m, &status, m->end->layout.n_bytes);
        if (result < 0)
            return result;
        if (!m->end->send && m->pieces[0])
            layout_unpack(&m->end->layout, &m->cursor, m->pieces[0],
                          (size_t)m->end->layout.n_bytes);
        finish(link, m, 0);
        return 0;
    case MESSAGE_PIECES:
        return go_on_pieces(link, m, ret_moved);
    case MESSAGE_DONE:
        break;
    }
    return 0;
}

bool message_go_on(struct shmview_mpi_link *link, struct message *m)
{
    bool moved = false;
    int result = go_on(link, m, &moved);
    if (result < 0) {
        /* A mismatch is found when no request is left; after another failure some are. */
        if (result != -SHMVIEW_ERR_CONVERSION)
            link->is_broken = true;
        message_abandon(link, m);
        m->result = result;
        moved = true;
    }
    return moved;
}

void message_abandon(struct shmview_mpi_link *link, struct message *m)
{
    for (int i = 0; i < 2; i++) {
        if (m->requests[i] == MPI_REQUEST_NULL)
            continue;
        bool is_receive = m->step == MESSAGE_GREETS    ? i == 1
                          : m->step == MESSAGE_REFUSES ? i == 0
                                                       : !m->end->send;
        int is_done = 0;
        if (is_receive && !m->is_displaced) /* MPI does not allow a second one */
            MPI_Cancel(&m->requests[i]);
        MPI_Test(&m->requests[i], &is_done, MPI_STATUS_IGNORE);
        if (!is_done) {
            /* MPI may use the piece until the process ends, so nobody else may. */
            m->pieces[i] = NULL;
            MPI_Request_free(&m->requests[i]);
        }
    }
    finish(link, m, m->result);
}

void message_probe(struct shmview_mpi_link *link, struct message *m)
{
    bool waits = m->step == MESSAGE_WHOLE ? m->end->layout.n_bytes <= EXCHANGE_PIECE_BYTES
                                          : m->step == MESSAGE_GREETS;
    if (m->end->send || !waits || m->is_displaced)
        return;
    int is_there = 0;
    MPI_Status status = {0};
    int result = text_check(
        MPI_Iprobe(m->end->rank, MPI_ANY_TAG, link->forward, &is_there, &status), "a probe");
    if (result == 0) {
        /* The bytes of this message may be there before the receive of its greeting is done. They
         * are a piece or more, and those of a short message with a like tag are fewer. */
        bool greets = m->step == MESSAGE_GREETS;
        bool is_own = status.MPI_TAG == data_tag(link, m)
                          ? !greets || bytes_of(&status) >= EXCHANGE_PIECE_BYTES
                          : greets && status.MPI_TAG == greeting_tag(link, m);
        unsigned number = ((unsigned)status.MPI_TAG >> 1) % link->n_numbers;
        if (!is_there || is_own || number != m->number % link->n_numbers)
            return;
        /* It may still be a later message whose tag has the same bits of its number: MPI does not
         * cancel a receive for which it has a message, even if it has not reported its end yet. */
        m->is_displaced = true;
        m->found_tag = status.MPI_TAG;
        result = text_check(MPI_Cancel(&m->requests[m->step == MESSAGE_GREETS]), "a probe");
    }
    if (result < 0) {
        link->is_broken = true;
        message_abandon(link, m);
        m->result = result;
    }
}
