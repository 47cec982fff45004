/* SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <errno.h>
#include <shmview/mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "place.h"
#include "text.h"
#include "verdict.h"

#define BOOT_ID     "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LEN 36 /* of a UUID in text */

static const char doing[] = "the ranks of a node";

/* The kernel that runs a rank, and the device of its /dev/shm. Containers on one machine have a
 * /dev/shm each, and the kernel gives no two of them the same number. All bytes are sent. */
struct node_key {
    char boot_id[40];
    uint64_t device;
};

static int find_key(struct node_key *ret_key)
{
    struct node_key key = {0};
    struct stat st;
    FILE *file = fopen(BOOT_ID, "re");
    if (!file)
        return text_fail(-SHMVIEW_ERR_SYSTEM, "%s: %s: %s", doing, BOOT_ID, strerror(errno));
    size_t n = fread(key.boot_id, 1, BOOT_ID_LEN, file);
    fclose(file);
    if (n != BOOT_ID_LEN)
        return text_fail(-SHMVIEW_ERR_SYSTEM, "%s: %s is too short", doing, BOOT_ID);
    if (stat("/dev/shm", &st))
        return text_fail(-SHMVIEW_ERR_SYSTEM, "%s: /dev/shm: %s", doing, strerror(errno));
    key.device = st.st_dev;
    *ret_key = key;
    return 0;
}

/* Finds the lowest rank that has the same key as this one. */
static int find_lowest(MPI_Comm comm, const struct node_key *mine, struct node_key *keys, int n,
                       int *ret_rank)
{
    int result = text_check(
        MPI_Allgather(mine, sizeof *mine, MPI_BYTE, keys, sizeof *keys, MPI_BYTE, comm), doing);
    int r = 0;
    while (result == 0 && r < n - 1 && memcmp(&keys[r], mine, sizeof *mine) != 0)
        r++;
    *ret_rank = r;
    return result;
}

/* MPI_COMM_TYPE_SHARED would find the ranks among which MPI itself uses shared memory. These can be
 * fewer: in an MPICH over UCX each rank is alone. */
int node_split(MPI_Comm comm, int64_t deadline_ns, MPI_Comm *ret_node)
{
    int me = 0, n = 0, lowest = 0;
    struct node_key mine = {0};
    struct verdict agreed;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    struct node_key *keys = calloc((size_t)n, sizeof *keys);
    int status = keys ? find_key(&mine)
                      : text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for the nodes of %d ranks", n);
    if (status < 0)
        place_fail(status);
    int result = verdict_take(comm, status, 0, doing, deadline_ns, &agreed);
    if (result == 0)
        result = agreed.status;
    if (result == 0)
        result = find_lowest(comm, &mine, keys, n, &lowest);
    if (result == 0)
        result = text_check(MPI_Comm_split(comm, lowest, me, ret_node), doing);
    free(keys);
    return result;
}

int shmview_mpi_node_comm(MPI_Comm comm, MPI_Comm *ret_node)
{
    int is_inter = 0;
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter)
        return text_fail(-SHMVIEW_ERR_INVALID, "nodes need a communicator of one group");
    return node_split(comm, INT64_MAX, ret_node);
}
