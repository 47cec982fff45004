/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/node.h"

#ifdef SHMVIEW_NUMA
#include <numa.h>
#include <numaif.h>
#include <unistd.h>

#include <shmview/placement.h>

/* Pages between two samples: an odd number, so that pages of nodes that alternate are all found,
 * and half a huge page. */
#define SAMPLE_STEP 257
#define SAMPLES_MAX 512

bool node_is_there(uint32_t node)
{
    if (numa_available() < 0)
        return node == 0;
    return node < NODES_MAX && numa_bitmask_isbitset(numa_all_nodes_ptr, node);
}

void node_bind(void *at, size_t bytes, unsigned numa, uint32_t node)
{
    unsigned long mask = 0;
    if (numa_available() < 0)
        return;
    for (unsigned i = 0; i < NODES_MAX; i++)
        if (numa == SHMVIEW_NUMA_INTERLEAVED ? node_is_there(i) : i == node)
            mask |= 1ul << i;
    mbind(at, bytes, numa == SHMVIEW_NUMA_INTERLEAVED ? MPOL_INTERLEAVE : MPOL_PREFERRED, &mask,
          NODES_MAX + 1, 0);
}

uint64_t node_measure(void *at, size_t bytes)
{
    void *pages[SAMPLES_MAX];
    int nodes[SAMPLES_MAX];
    uint64_t found = 0;
    size_t step = SAMPLE_STEP * (size_t)sysconf(_SC_PAGESIZE), n = 0;
    for (size_t i = 0; i < bytes && n < SAMPLES_MAX; i += step)
        pages[n++] = (char *)at + i;
    if (move_pages(0, n, pages, NULL, nodes, 0))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (nodes[i] >= 0 && nodes[i] < NODES_MAX)
            found |= (uint64_t)1 << nodes[i];
    return found;
}
#else
bool node_is_there(uint32_t node)
{
    return node == 0;
}

void node_bind(void *at, size_t bytes, unsigned numa, uint32_t node)
{
    (void)at, (void)bytes, (void)numa, (void)node;
}

uint64_t node_measure(void *at, size_t bytes)
{
    (void)at, (void)bytes;
    return 0;
}
#endif
