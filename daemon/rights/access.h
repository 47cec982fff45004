/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a segment and the users who may use it: only the facts. policy.h decides.
 *
 * An access is written to the registry, and is compared and hashed as bytes. Therefore its members
 * have fixed widths and no padding. */
#ifndef DAEMON_ACCESS_H
#define DAEMON_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/limits.h"

/* Bits of an entry, and of each digit of a mode (0400 is the owner's read). */
#define ACCESS_READ  4u
#define ACCESS_WRITE 2u
#define ACCESS_MODES 0666u /* every bit that a mode may have */

#define ACCESS_MODE_DEFAULT 0600u

enum access_kind {
    ACCESS_USER = 1,
    ACCESS_GROUP = 2,
};

/* One entry of an access control list: a user or group, and its permissions. */
struct access_entry {
    uint32_t id;    /* uid or gid */
    uint16_t kind;  /* enum access_kind */
    uint16_t perms; /* ACCESS_READ, ACCESS_WRITE; 0 in lists of users without permissions */
};

struct access {
    uint32_t uid;
    uint32_t gid;
    uint32_t mode;
    uint32_t n_entries;
    struct access_entry entries[LIMIT_ACL_ENTRIES]; /* at most one entry for each user or group */
};

/* Returns a read-only copy, which is the same object for all callers with an equal access. A
 * hundred thousand segments usually have only a few kinds of access, so this saves memory. The
 * caller owes access_unshare(). Returns NULL if memory is short. Loop only: the table has no lock.
 */
const struct access *access_share(const struct access *access);
/* Frees the copy after the last user. access may be NULL. Returns NULL. */
const struct access *access_unshare(const struct access *access);

/* Whether both have the same entries, in any order. */
bool access_same_entries(const struct access *a, const struct access *b);

#endif
