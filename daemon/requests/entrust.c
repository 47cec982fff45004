/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/entrust.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/requests/state.h"

/* Frees clients without a connection that hold nothing. An ancestor becomes such a client when all
 * segments entrusted to it were removed; without this its pidfd would stay open as long as it
 * lives. */
static void forget_idle(struct state *state)
{
    struct client *c, *next;
    for (unsigned i = 0; i < CLIENT_CHAINS; i++)
        for (c = LIST_FIRST(&state->clients.chains[i]); c; c = next) {
            next = LIST_NEXT(c, link);
            if (!c->connection && LIST_EMPTY(&c->attachments) && LIST_EMPTY(&c->created))
                client_free(c, false);
        }
}

/* Whether the process with that pid belongs to the user. If another process has got the pid since
 * the birth was read, client_find_survivor() finds another birth and refuses. */
static bool belongs_to(pid_t pid, uid_t uid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", pid);
    return stat(path, &st) == 0 && st.st_uid == uid;
}

int entrust(struct state *state, struct segment *segment, pid_t pid, uid_t uid)
{
    struct store_holder holder = {.pid = (uint32_t)pid, .uid = uid}, old = segment->holder;
    forget_idle(state);
    CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return errno == ESRCH || errno == EINVAL ? ENTRUST_DENIED : -errno;
    holder.birth = peer_birth(pidfd, pid);
    if (!holder.birth)
        return errno == ESRCH ? ENTRUST_DENIED : -errno;
    if (!belongs_to(pid, uid))
        return ENTRUST_DENIED;
    struct client *c = client_find_survivor(&state->clients, &holder);
    if (!c)
        return errno == ESRCH ? ENTRUST_DENIED : -errno;
    segment->holder = holder;
    int r = segment_keep(segment);
    if (r) {
        segment->holder = old;
        return r;
    }
    LIST_REMOVE(segment, created);
    LIST_INSERT_HEAD(&c->created, segment, created);
    return ENTRUSTED;
}
