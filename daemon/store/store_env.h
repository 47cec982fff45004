/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the store share: the environment of LMDB, and the keys of layouts. */
#ifndef DAEMON_STORE_ENV_H
#define DAEMON_STORE_ENV_H

#include <endian.h>

#include <lmdb.h>

#include "daemon/store/store.h"
#include "daemon/store/store_file.h"

struct store {
    MDB_env *env; /* NULL: reopening failed after growing; the next call tries again */
    MDB_dbi tables[STORE_N_TABLES];
    size_t bytes;             /* of the file, and of the map */
    uint64_t last_id, starts; /* as in the record of STORE_META */
    int dir;                  /* borrowed */
    int fd;                   /* of the file that was checked; LMDB opens it through this */
    char name[];
};

/* Big-endian, so that LMDB's order of bytes is the order of the numbers. */
struct layout_key {
    uint64_t segment;
    uint64_t index;
};

static inline struct layout_key layout_key(uint64_t segment, uint64_t index)
{
    return (struct layout_key){htobe64(segment), htobe64(index)};
}

/* Returns -errno for a result of LMDB. -EUCLEAN stands for all errors of its own but a full file:
 * the file is damaged or has another version. */
int store_result(int r);

/* Opens the environment again if that failed after growing. Returns 0 or -errno. */
int store_reopen(struct store *store);

#endif
