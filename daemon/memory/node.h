/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a machine whose memory is not equally near to all processors (NUMA). For
 * placement.c. Any thread.
 *
 * Without libnuma at build time, or without nodes in the kernel, there is node 0 only, and binding
 * does nothing. */
#ifndef DAEMON_NODE_H
#define DAEMON_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

#define NODES_MAX (LIMIT_NODE + 1)

/* Whether the node has memory that this process may use. */
bool node_is_there(uint32_t node);

/* Sets where the kernel takes the pages of a mapping from, also later ones: enum shmview_numa. A
 * node is preferred; if it has no free page, the kernel takes one of another node. A failure leaves
 * the policy of the process, and node_measure() shows it. */
void node_bind(void *at, size_t bytes, unsigned numa, uint32_t node);

/* Returns the nodes of a sample of the mapping's pages, bit i for node i; 0 if they cannot be
 * found out. */
uint64_t node_measure(void *at, size_t bytes);

#endif
