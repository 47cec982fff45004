/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/clients/refusal.h"
#include "daemon/clients/tally.h"
#include "daemon/rights/quota.h"

/* After a longer reply the next turn of the connection counts as slow. Many connections that ask
 * for pages of a long list would otherwise share the time with each client that asks for little:
 * none of their turns takes long. */
#define HEAVY_BYTES 16384

void answer_deinit(struct answer *answer)
{
    free(answer->reason);
    json_decref(answer->parameters);
    free(answer->spare);
    free(answer->text);
    if (!answer->fds_borrowed)
        frame_descriptors_close(&answer->fds);
    *answer = (struct answer){0};
}

/* Closes the descriptors that the connection keeps, and refunds them. */
static void drop_descriptors(struct connection *c)
{
    frame_descriptors_close(&c->out_fds);
    if (c->out_fds_charged)
        quota_refund(c->payer, QUOTA_CONNECTIONS, 1);
    c->out_fds_charged = false;
}

void reply_drop(struct connection *c)
{
    free(STEAL(c->out));
    drop_descriptors(c);
    connection_refund(c, &c->out_charged);
}

void reply_flush(struct connection *c)
{
    while (c->out) {
        ssize_t n = frame_send(c->fd, c->out + c->out_sent, c->out_bytes - c->out_sent,
                               c->out_fds.fd, c->out_fds.n);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            connection_lose(c);
            return;
        }
        drop_descriptors(c);
        c->out_sent += (size_t)n;
        if (c->out_sent == c->out_bytes) {
            free(c->out);
            c->out = NULL;
            connection_refund(c, &c->out_charged);
        }
    }
}

/* Keeps the descriptors of an answer of which the socket took nothing. Borrowed ones are
 * duplicated, because their owner may close them before the socket has room. The user is charged
 * for them, because one client can leave replies unread on many connections. Returns 0, -EDQUOT if
 * the user may not have more, or another -errno. */
static int keep_descriptors(struct connection *c, struct answer *answer)
{
    bool charge = answer->fds.n && c->payer && c->events->keep;
    if (charge && !c->events->keep(c))
        return -EDQUOT;
    c->out_fds_charged = charge;
    if (!answer->fds_borrowed) {
        c->out_fds = answer->fds;
        answer->fds.n = 0;
        return 0;
    }
    for (size_t i = 0; i < answer->fds.n; i++) {
        int fd = fcntl(answer->fds.fd[i], F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return -errno;
        c->out_fds.fd[c->out_fds.n++] = fd;
    }
    return 0;
}

/* Undoes what an answer would have given, because it cannot be sent. *answer is empty afterwards,
 * and another one must be made. */
static void take_back(struct connection *c, struct answer *answer)
{
    if (c->events->take_back)
        c->events->take_back(c, answer);
    answer_deinit(answer);
}

/* Sends another reply in place of one whose descriptors cannot be sent. The client keeps its
 * connection and its earlier attachments. */
static void refuse_descriptors(struct connection *c, struct answer *answer, const char *reason)
{
    char *spare = STEAL(answer->spare);
    if (spare) {
        answer_deinit(answer);
        answer->text = spare;
        answer->text_bytes = strlen(spare) + 1;
        reply_send(c, answer);
        return;
    }
    take_back(c, answer);
    refuse(answer, SHMVIEW_ERR_SYSTEM, NULL, "%s", reason);
    reply_send(c, answer);
}

/* Names the cause for which descriptors were not sent: an -errno of the socket or of
 * keep_descriptors(). */
static const char *cause_of(int error)
{
    /* ETOOMANYREFS: the user has as many descriptors in flight as the kernel permits */
    return error == -ETOOMANYREFS ? "too many descriptors are on their way"
           : error == -EDQUOT     ? "too many replies with descriptors are not read"
                                  : "the daemon has no descriptor left";
}

void reply_refuse_buffer(struct connection *c, struct answer *answer,
                         const struct quota_excess *excess)
{
    take_back(c, answer);
    refuse_quota(answer, c->peer.uid, excess);
    tally_note(c, answer);
}

/* Returns the text of the reply, which is new, or NULL if memory is short. Takes it, or the facts,
 * from the answer. */
static char *answer_text(struct answer *answer, size_t *ret_bytes)
{
    if (answer->text) {
        *ret_bytes = answer->text_bytes;
        return STEAL(answer->text);
    }
    if (answer->error)
        return refusal_text(answer, ret_bytes);
    return wire_reply_text(NULL, STEAL(answer->parameters), ret_bytes);
}

void reply_send(struct connection *c, struct answer *answer)
{
    size_t n;
    char *text = answer_text(answer, &n);
    if (!text) {
        log_error("out of memory: a reply is lost");
        answer_deinit(answer);
        connection_close(c);
        return;
    }
    struct quota_excess excess;
    if (connection_charge(c, &c->out_charged, n, &excess)) {
        free(text);
        reply_refuse_buffer(c, answer, &excess);
        reply_send(c, answer);
        return;
    }
    c->turn.is_heavy = n > HEAVY_BYTES;
    ssize_t sent = frame_send(c->fd, text, n, answer->fds.fd, answer->fds.n);
    int kept = sent == -EAGAIN ? keep_descriptors(c, answer) : 0;
    if (sent == -ETOOMANYREFS || kept) {
        free(text);
        connection_refund(c, &c->out_charged);
        drop_descriptors(c);
        refuse_descriptors(c, answer, cause_of(kept ? kept : (int)sent));
        return;
    }
    if (sent == -EAGAIN)
        sent = 0;
    answer_deinit(answer);
    if (sent >= 0 && (size_t)sent < n) {
        c->out = STEAL(text);
        c->out_bytes = n;
        c->out_sent = (size_t)sent;
    } else {
        connection_refund(c, &c->out_charged);
    }
    free(text);
    if (sent < 0)
        connection_lose(c);
}

void reply_give(struct connection *c, struct answer *answer)
{
    if (c->oneway || c->gone)
        answer_deinit(answer);
    else
        reply_send(c, answer);
}
