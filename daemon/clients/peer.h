/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a socket, by the kernel's word. */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
    pid_t pid; /* 0: it is in a pid namespace that is hidden from this process */
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* supplementary, owned */
    size_t n_groups;
    int pidfd;      /* owned; readable once the process is dead; -1: there is none for pid 0,
                     * before Linux 6.5 */
    uint64_t birth; /* tells it from other processes that have or had its pid */
};

/* A number for the process behind a pidfd that no other process of that pid has, as long
 * as the machine runs; 0 with errno if it cannot be told: ESRCH if it is dead or hidden. */
uint64_t peer_birth(int pidfd, pid_t pid);

/* Whether pid is that process or has it among its ancestors; never of process 1. */
bool peer_descends(pid_t pid, pid_t ancestor);

/* Asks the kernel: who it was when it connected. Returns 0 and owes peer_deinit(), or
 * -errno; -ESRCH if the peer is dead already. */
int peer_of(int socket_fd, struct peer *ret);
void peer_deinit(struct peer *peer);

#endif
