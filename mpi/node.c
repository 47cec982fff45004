/* SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <errno.h>
#include <shmview/mpi.h>
#include <stdint.h>
#include <stdio.h>
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

/* FNV-1a, as a color, which must not be negative. */
static int color_of(const struct node_key *key)
{
    uint32_t hash = UINT32_C(0x811c9dc5);
    for (size_t i = 0; i < sizeof *key; i++)
        hash = (hash ^ ((const unsigned char *)key)[i]) * UINT32_C(0x01000193);
    return (int)(hash >> 1);
}

/* Compares the key with that of the first member: *ret_color is 1 if they are equal, and *ret_all
 * is 1 if those of all members are. */
static int compare(MPI_Comm node, const struct node_key *mine, int *ret_all, int *ret_color)
{
    struct node_key first = *mine;
    int result = text_check(MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, node), doing);
    *ret_color = memcmp(&first, mine, sizeof first) == 0;
    if (result == 0)
        result = text_check(MPI_Allreduce(ret_color, ret_all, 1, MPI_INT, MPI_MIN, node), doing);
    return result;
}

/* Divides comm by a number made of the key, so that no rank needs the keys of all, and the members
 * again while two nodes have the same number. */
static int divide(MPI_Comm comm, const struct node_key *mine, int me, MPI_Comm *ret_node)
{
    MPI_Comm node = MPI_COMM_NULL;
    int all_equal = 0, color = color_of(mine);
    int result = text_check(MPI_Comm_split(comm, color, me, &node), doing);
    if (result == 0)
        result = compare(node, mine, &all_equal, &color);
    while (result == 0 && !all_equal) {
        MPI_Comm whole = node;
        node = MPI_COMM_NULL;
        result = text_check(MPI_Comm_split(whole, color, me, &node), doing);
        MPI_Comm_free(&whole);
        if (result == 0)
            result = compare(node, mine, &all_equal, &color);
    }
    *ret_node = node;
    return result;
}

/* MPI_COMM_TYPE_SHARED would find the ranks among which MPI itself uses shared memory. These can be
 * fewer: in an MPICH over UCX each rank is alone. */
int node_split(MPI_Comm comm, int64_t deadline_ns, MPI_Comm *ret_node)
{
    int me = 0;
    struct node_key mine = {0};
    struct verdict agreed;
    MPI_Comm_rank(comm, &me);
    int status = find_key(&mine);
    if (status < 0)
        place_fail(status);
    int result = verdict_take(comm, status, 0, doing, deadline_ns, &agreed);
    if (result == 0)
        result = agreed.status;
    return result == 0 ? divide(comm, &mine, me, ret_node) : result;
}

int shmview_mpi_node_comm(MPI_Comm comm, MPI_Comm *ret_node)
{
    int is_inter = 0;
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter)
        return text_fail(-SHMVIEW_ERR_INVALID, "nodes need a communicator of one group");
    return node_split(comm, INT64_MAX, ret_node);
}
