/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a segment is and who else may use it: the facts. daemon/rights/policy.h decides. */
#ifndef DAEMON_ACCESS_H
#define DAEMON_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/limits.h"

/* Of a mode (0400 is the owner's read, ..., 0002 the others' write) and of an entry. */
#define ACCESS_READ  4u
#define ACCESS_WRITE 2u
#define ACCESS_MODES 0666u /* every bit that a mode may have */

#define ACCESS_MODE_DEFAULT 0600u

enum access_kind {
    ACCESS_USER = 1,
    ACCESS_GROUP = 2,
};

/* A user or group, and what it may do: one entry of an access control list. Fixed words, no
 * padding: it is kept as it is. */
struct access_entry {
    uint32_t id;    /* uid or gid */
    uint16_t kind;  /* enum access_kind */
    uint16_t perms; /* ACCESS_READ, ACCESS_WRITE; where only who is meant, 0 */
};

struct access {
    uint32_t uid;
    uint32_t gid;
    uint32_t mode;
    uint32_t n_entries;
    struct access_entry entries[LIMIT_ACL_ENTRIES]; /* nobody twice */
};

/* Returns a copy that all who ask for an equal one share: many segments have few kinds of
 * access. Owes access_unshare(). NULL: memory is short. */
const struct access *access_share(const struct access *access);
/* Takes NULL. Returns NULL. */
const struct access *access_unshare(const struct access *access);

/* Whether both have the same entries, in whatever order. */
bool access_same_entries(const struct access *a, const struct access *b);

#endif
