/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the control groups of this process may still take.
 *
 * The kernel charges a page of shared memory to the control group of the process that touches it
 * first. That is the one which commits the memory: the daemon, or a client that makes its own. At
 * the limit of the group the kernel would kill that process. Therefore a creation that would come
 * near the limit is refused. Limits of cgroup v1 and v2 are read from the files of the groups. */
#ifndef COMMON_CGROUP_H
#define COMMON_CGROUP_H

#include <stdint.h>

/* The state of the group with the least free memory, among this process's group and all groups
 * above it. In bytes; both are UINT64_MAX if no group has a limit. */
struct cgroup_space {
    uint64_t free;  /* memory and swap, less 1/32 of the limit as a reserve for other allocations */
    uint64_t limit; /* of memory */
};

/* Finds out where control groups are mounted. Must be called before other threads call
 * cgroup_space(); until then no limit is known. Tests set root to a directory that contains their
 * own proc and sys; programs pass "". */
void cgroup_init(const char *root);

/* Returns the space now. swap_free is the free swap of the machine in bytes, which a group cannot
 * exceed. Any thread. Never fails: a file that cannot be read counts as no limit. */
struct cgroup_space cgroup_space(uint64_t swap_free);

#endif
