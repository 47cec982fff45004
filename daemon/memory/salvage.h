/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed objects that neither a keeper nor the service manager has kept. libshmview holds
 * descriptors of the sealed segments that a process has mapped (client/segment/descriptors.c), and
 * the daemon can open those of processes of its own user; a daemon of root those of all.
 *
 * The daemon trusts no such process: a descriptor counts only if it is of a sealed memfd with the
 * inode and the device that the registry has. The memfd must also belong to the user whom the
 * record of its segment names, which is checked when that segment is restored. */
#ifndef DAEMON_SALVAGE_H
#define DAEMON_SALVAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The objects that are missing, and the processes that may have them. Zeroed by the caller, who
 * owes salvage_deinit(). */
struct salvage {
    uint64_t *inodes;
    uint32_t *pids;
    size_t n_inodes, n_pids;
    size_t inodes_most, pids_most; /* for which there is memory */
    uint64_t device;               /* of all that have no huge pages */
};

/* Note an object that is missing, and a process that may have a descriptor of it; 0: none. All
 * objects have the same device, because the kernel has one file system for memfds; only those of
 * huge pages have another one, whose seals no other file of that kind can have. Return 0 or
 * -ENOMEM. */
int salvage_want(struct salvage *salvage, uint64_t device, uint64_t inode);
int salvage_ask(struct salvage *salvage, uint32_t pid);

/* Looks at the descriptors of these processes, and takes over what is missing (sealed_adopt()).
 * Loop only, before the daemon serves. Returns 0, also if a process has ended or may not be looked
 * at; or -errno if the daemon lacks memory or descriptors. */
int salvage_run(struct salvage *salvage);

void salvage_deinit(struct salvage *salvage);

#endif
