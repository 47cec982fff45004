/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/own_memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/clients/handover.h"
#include "daemon/clients/refusal.h"
#include "daemon/memory/own.h"

void own_memory_hand_over(struct request *request, const union wanted *want)
{
    (void)want;
    struct connection *c = request->connection;
    struct answer *answer = request->answer;
    const struct who *who = &request->who;
    struct quota_user *payer;
    struct quota_excess excess;
    handover_close(c); /* its memory would be that of another request */
    /* The daemon has one descriptor more, and perhaps a thread that closes it. */
    int r = quota_charge_share(&request->state->quota, who->uid, who->is_admin, QUOTA_CONNECTIONS,
                               request->state->max_connections, &payer, &excess);
    if (r == -EDQUOT) {
        refuse_quota(answer, who->uid, &excess);
        return;
    }
    int fd = r ? r : handover_open(c, payer);
    if (r == 0 && fd < 0)
        quota_refund(payer, QUOTA_CONNECTIONS, 1);
    if (fd < 0) {
        refuse_system(answer, "memory cannot be handed over", -fd);
        return;
    }
    answer->fds.fd[answer->fds.n++] = fd;
    answer_with(answer, json_pack("{s:i, s:i}", "descriptors", 1, "socket", 0));
}

/* Sets the reason for which nothing usable was received. */
static void tell_failure(int error, char *why, size_t bytes)
{
    const char *text = error == -ENOTCONN  ? "needs a HandOver before"
                       : error == -ENODATA ? "needs memory: nothing was sent through the handover"
                       : error == -ENOMSG  ? "needs memory: a byte came without a descriptor"
                       : error == -E2BIG   ? "needs one descriptor; several were handed over"
                                           : strerror(-error);
    snprintf(why, bytes, "%s", text);
}

/* Whether the daemon itself lacks something, which is no fault of the client. */
static bool is_shortage(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

int own_memory_take(const struct request *request, const struct wire_create *create,
                    struct stat *ret_st)
{
    struct connection *c = request->connection;
    struct wire_fault fault = {.parameter = "memory"};
    char why[sizeof fault.reason - 40];
    if (create->backing == SHMVIEW_BACKING_FILE) {
        handover_close(c);
        wire_fault_fill(&fault, "backing", "is file; memory of the client is sealed");
        refuse_parameter(request->answer, &fault);
        return -1;
    }
    CLEANUP_FD int fd = handover_receive(c);
    int r = fd < 0
                ? fd
                : own_check(fd, (uint64_t)create->size, request->who.uid, ret_st, why, sizeof why);
    const char *failure = is_shortage(fd)                ? "memory of a client cannot be received"
                          : fd >= 0 && r && r != -EINVAL ? "memory of a client cannot be checked"
                                                         : NULL;
    if (failure) {
        close_fdp(&fd);
        handover_close(c);
        refuse_system(request->answer, failure, -r);
        return -1;
    }
    if (fd < 0)
        tell_failure(fd, fault.reason, sizeof fault.reason);
    else if (r)
        snprintf(fault.reason, sizeof fault.reason, "was handed over, but the descriptor %s", why);
    if (fault.reason[0]) {
        close_fdp(&fd); /* the handover has another one */
        handover_close(c);
        refuse_parameter(request->answer, &fault);
        return -1;
    }
    handover_accept(c);
    return steal_fd(&fd);
}
