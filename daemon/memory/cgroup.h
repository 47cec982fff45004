/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the daemon's control group may still take. The kernel charges a page of /dev/shm to
 * the group of the process that touches it first: that is the daemon, which commits memory before
 * anybody maps it. At the limit the kernel would kill the daemon. */
#ifndef DAEMON_CGROUP_H
#define DAEMON_CGROUP_H

#include <stdint.h>

/* The least of all groups from the daemon's up to the root, in bytes; UINT64_MAX: unlimited. */
struct cgroup_space {
    uint64_t free; /* memory and swap, less a reserve for what else the group's processes need */
    uint64_t limit;
};

/* Finds where control groups are mounted. Before it was called nothing has a limit. root is a
 * directory that stands before /proc and /sys: "" but in tests. */
void cgroup_init(const char *root);

/* The space now, where the machine has swap_free bytes of swap left. Any thread. Never fails: a
 * file that cannot be read limits nothing. */
struct cgroup_space cgroup_space(uint64_t swap_free);

#endif
