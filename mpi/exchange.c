/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <sched.h>
#include <shmview/error.h>
#include <shmview/shmview.h>
#include <shmview/view.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link.h"
#include "message.h"
#include "text.h"

/* A waiting rank first polls, then yields its processor at each turn, and later sleeps between
 * them, so that it does not take the time of those that it waits for. */
#define N_POLLS  256
#define PROBE_NS 1000000
#define SLEEP_NS 20000000
#define NAP_NS   20000

uint64_t exchange_format(const struct shmview_view *view)
{
    /* A mark in the text of a number is only about its alignment, which does not matter here. */
    uint64_t hash = 0xcbf29ce484222325u ^ view->dtype;
    if (view->dtype == SHMVIEW_STRUCT)
        for (const char *c = view->format; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

static struct exchange_shape shape_of_view(const struct shmview_view *view)
{
    struct exchange_shape shape = {
        .format = exchange_format(view), .itemsize = view->itemsize, .ndim = view->ndim};
    for (uint32_t d = 0; d < view->ndim; d++)
        shape.shape[d] = view->shape[d];
    return shape;
}

int exchange_end_of_view(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                         bool send, struct exchange_end *ret_end)
{
    if (rank < 0 || rank >= link->n)
        return text_fail(-SHMVIEW_ERR_INVALID, "there is no rank %d among %d", rank, link->n);
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return text_fail(-SHMVIEW_ERR_CONTIGUOUS, "a view with suboffsets %s rank %d",
                         send ? "to" : "from", link_name(link, rank));
    if (!send && view->flags & SHMVIEW_VIEW_READ_ONLY)
        return text_fail(-SHMVIEW_ERR_READ_ONLY, "the view to receive from rank %d is read-only",
                         link_name(link, rank));
    *ret_end = (struct exchange_end){.rank = rank, .send = send};
    layout_of_view(view, &ret_end->layout);
    ret_end->shape = shape_of_view(view);
    return 0;
}

/* Copies between two layouts of this process, a piece at a time. */
static int copy_here(struct shmview_mpi_link *link, const struct exchange_end *from,
                     const struct exchange_end *to)
{
    if (memcmp(&from->shape, &to->shape, sizeof to->shape) != 0)
        return text_fail(-SHMVIEW_ERR_CONVERSION,
                         "rank %d sends itself another shape or type than it receives",
                         link_name(link, from->rank));
    unsigned char *piece = link_take_piece(link);
    if (!piece)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a copy");
    struct layout_cursor out = {0}, in = {0};
    for (uint64_t left = from->layout.n_bytes; left;) {
        size_t n = left < EXCHANGE_PIECE_BYTES ? (size_t)left : EXCHANGE_PIECE_BYTES;
        layout_pack(&from->layout, &out, piece, n);
        layout_unpack(&to->layout, &in, piece, n);
        left -= n;
    }
    link_give_piece(link, piece);
    return 0;
}

/* Copies what this rank sends to itself: the n-th such end to send to the n-th to receive. */
static int run_own(struct shmview_mpi_link *link, const struct exchange_end *ends, size_t n)
{
    size_t to = 0;
    for (size_t from = 0; from < n; from++) {
        if (ends[from].rank != link->me || !ends[from].send)
            continue;
        while (to < n && (ends[to].rank != link->me || ends[to].send))
            to++;
        if (to == n)
            return text_fail(-SHMVIEW_ERR_INVALID, "rank %d sends to itself and does not receive",
                             link_name(link, link->me));
        int result = copy_here(link, &ends[from], &ends[to++]);
        if (result < 0)
            return result;
    }
    for (; to < n; to++)
        if (ends[to].rank == link->me && !ends[to].send)
            return text_fail(-SHMVIEW_ERR_INVALID, "rank %d receives from itself and does not send",
                             link_name(link, link->me));
    return 0;
}

static void out_of_time(struct shmview_mpi_link *link, struct message *messages, size_t n)
{
    link->is_broken = true;
    for (size_t i = 0; i < n; i++) {
        if (messages[i].step == MESSAGE_DONE)
            continue;
        const struct exchange_end *end = messages[i].end;
        messages[i].result = text_fail(
            -SHMVIEW_ERR_TIMED_OUT, "rank %d has not %s message %u by the deadline%s",
            link_name(link, end->rank), end->send ? "received" : "sent", messages[i].number,
            messages[i].step == MESSAGE_REFUSES ? ", but begun another one" : "");
        message_abandon(link, &messages[i]);
    }
}

/* Whether a message that is not done may go on: no other one to or from that rank has its tag then.
 * MPI matches messages of one tag in the order in which they are posted, and each side posts a long
 * one when its greetings have come, so that the two could find different orders. run_all() calls
 * this for every message in each turn, in the order of their numbers. The oldest one always goes
 * on, so that both sides get to the others. */
static bool has_turn(struct shmview_mpi_link *link, const struct message *m)
{
    struct link_line *line = &(m->end->send ? link->sent : link->received)[m->end->rank];
    if (line->turn != link->n_turns) {
        line->turn = link->n_turns;
        line->oldest = m->number;
    }
    return m->number - line->oldest < link->n_numbers;
}

/* After a turn in which nothing has happened. Returns false after the deadline. */
static bool idle(struct shmview_mpi_link *link, struct message *messages, size_t n,
                 int64_t deadline_ns, unsigned *n_idle, int64_t *begin, int64_t *probe)
{
    if (++*n_idle < N_POLLS)
        return true;
    int64_t now = shmview_deadline(0);
    if (*begin == 0) {
        *begin = now;
        *probe = now + PROBE_NS;
    }
    if (now >= *probe) {
        for (size_t i = 0; i < n; i++)
            if (messages[i].step != MESSAGE_DONE && has_turn(link, &messages[i]))
                message_probe(link, &messages[i]);
        *probe = now + PROBE_NS;
    }
    if (now >= deadline_ns)
        return false;
    if (now - *begin > SLEEP_NS)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    else
        sched_yield();
    return true;
}

/* Goes round all messages until they are done. */
static void run_all(struct shmview_mpi_link *link, struct message *messages, size_t n,
                    int64_t deadline_ns)
{
    unsigned n_idle = 0;
    int64_t begin = 0, probe = 0;
    for (;;) {
        bool moved = false, all_done = true;
        link->n_turns++;
        for (size_t i = 0; i < n; i++) {
            if (messages[i].step == MESSAGE_DONE)
                continue;
            if (has_turn(link, &messages[i]))
                moved = message_go_on(link, &messages[i]) || moved;
            all_done = all_done && messages[i].step == MESSAGE_DONE;
        }
        if (all_done)
            return;
        if (moved) {
            n_idle = 0;
            begin = 0;
        } else if (!idle(link, messages, n, deadline_ns, &n_idle, &begin, &probe)) {
            out_of_time(link, messages, n);
            return;
        }
    }
}

/* The last failure is that of the text, and one that breaks the link is found last. */
static int worst(const struct message *messages, size_t n)
{
    int result = 0;
    for (size_t i = 0; i < n; i++)
        if (messages[i].result < 0 && (result == 0 || result == -SHMVIEW_ERR_CONVERSION))
            result = messages[i].result;
    return result;
}

int exchange_run(struct shmview_mpi_link *link, const struct exchange_end *ends, size_t n,
                 int64_t deadline_ns)
{
    if (link->is_broken)
        return text_fail(-SHMVIEW_ERR_LOST, "an earlier message of this link has failed");
    struct message *messages = calloc(n ? n : 1, sizeof *messages);
    if (!messages)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for %zu messages", n);
    size_t n_messages = 0;
    for (size_t i = 0; i < n; i++)
        if (ends[i].rank != link->me)
            message_begin(link, &ends[i], &messages[n_messages++]);
    run_all(link, messages, n_messages, deadline_ns);
    int result = worst(messages, n_messages);
    int own = link->is_broken ? 0 : run_own(link, ends, n);
    /* MPI may still read and write the greetings of a link that has failed. */
    if (!link->is_broken)
        free(messages);
    return own < 0 ? own : result;
}

/* Starts a short message without gaps and polls for a while. Sets *ret_request to what is left. */
static int begin_short(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                       bool send, uint32_t number, MPI_Request *ret_request)
{
    const struct exchange_shape shape = shape_of_view(view);
    int tag = message_data_tag(link, &shape, number), n = (int)view->nbytes, is_done = 0;
    MPI_Status status;
    int result =
        text_check(send ? MPI_Isend(view->data, n, MPI_BYTE, rank, tag, link->forward, ret_request)
                        : MPI_Irecv(view->data, n, MPI_BYTE, rank, tag, link->forward, ret_request),
                   "a transfer");
    for (int i = 0; i < N_POLLS && result == 0 && !is_done; i++)
        result = text_check(MPI_Test(ret_request, &is_done, &status), "a transfer");
    return is_done && result == 0 && !send
               ? message_check_bytes(number, link_name(link, rank), &status, view->nbytes)
               : result;
}

int exchange_one(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                 bool send, int64_t deadline_ns)
{
    struct exchange_end end = {0};
    bool is_short = !link->is_broken && rank >= 0 && rank < link->n && rank != link->me &&
                    view->nbytes <= EXCHANGE_PIECE_BYTES && shmview_is_contiguous(view) &&
                    (send || !(view->flags & SHMVIEW_VIEW_READ_ONLY));
    if (!is_short) {
        int result = exchange_end_of_view(link, view, rank, send, &end);
        return result < 0 ? result : exchange_run(link, &end, 1, deadline_ns);
    }
    uint32_t number = send ? link->sent[rank].n++ : link->received[rank].n++;
    MPI_Request request = MPI_REQUEST_NULL;
    int result = begin_short(link, view, rank, send, number, &request);
    if (result < 0 && result != -SHMVIEW_ERR_CONVERSION)
        link->is_broken = true;
    if (result < 0 || request == MPI_REQUEST_NULL)
        return result;
    struct message message;
    result = exchange_end_of_view(link, view, rank, send, &end);
    message_resume(&end, number, request, &message);
    run_all(link, &message, 1, deadline_ns);
    return result < 0 ? result : message.result;
}
