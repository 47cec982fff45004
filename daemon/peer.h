/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a socket, by the kernel's word. */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include <sys/types.h>

struct peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
    int pidfd; /* owned; readable once the process is dead */
};

/* Asks the kernel. Returns 0 and owes close(pidfd), or -errno; -ESRCH if the
 * peer is dead already. */
int peer_of(int socket_fd, struct peer *ret);

#endif
