/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel which process and user are at the other end of a socket. No module believes what
 * a client states about itself.
 *
 * The facts are those of the moment at which the client connected. If it changes its user later, or
 * passes the socket to another process, they stay the same. The pidfd names that process for good;
 * a pid may belong to another process after its death. */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One peer. Filled by peer_of(). */
struct peer {
    pid_t pid; /* 0: the process is in a pid namespace that the daemon cannot see */
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* supplementary, owned */
    size_t n_groups;
    int pidfd;      /* owned; readable after the death of the process; -1: none, if pid is 0 and
                     * Linux is older than 6.5 */
    uint64_t birth; /* distinguishes the process from others with the same pid; 0: unknown */
};

/* Returns a number for the process of a pidfd. No other process with that pid has the same number
 * until the machine boots again. A later daemon compares it with its records. Returns 0 with errno
 * if it is unknown: ESRCH if the process is dead, or hidden from the daemon. */
uint64_t peer_birth(int pidfd, pid_t pid);

/* Whether the process of the pidfd is dead; false without one (-1). Use this and not poll() or an
 * event of the loop alone: a pidfd may be readable for a moment while the process lives. */
bool peer_has_ended(int pidfd);

/* Whether ancestor is the process pid or one of its ancestors. Returns false for process 1, and for
 * an ancestor that is more than GENERATIONS_MAX away. */
bool peer_descends(pid_t pid, pid_t ancestor);

/* Asks the kernel about the process that connected the socket. Returns 0, and the caller owes
 * peer_deinit(). Returns -ESRCH if the process is dead, or another -errno. */
int peer_of(int socket_fd, struct peer *ret);
/* Closes the pidfd and frees the groups. */
void peer_deinit(struct peer *peer);

#endif
