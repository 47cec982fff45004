/* SPDX-License-Identifier: Apache-2.0 */
/* May this user do this to that segment? Pure functions of facts. */
#ifndef DAEMON_POLICY_H
#define DAEMON_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/rights/access.h"

/* Who asks, by the kernel's word. */
struct who {
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary */
    size_t n_groups;
    bool is_admin;
};

bool policy_is_member(const struct who *who, gid_t group);

/* Whether one of entries names him, or a group of his. */
bool policy_is_among(const struct who *who, const struct access_entry *entries, size_t n);

/* What he may do with the bytes: 0, ACCESS_READ, or ACCESS_READ | ACCESS_WRITE. As with a
 * file of the same access control list, the closest word counts: the owner's bits for the
 * owner, else his own entry, else what the groups that he is in have together, else the
 * others' bits. Write without read is nothing. An administrator may do everything. */
unsigned policy_rights(const struct access *access, const struct who *who);

/* Whether he may remove it, change its access, and know of it whatever his rights. */
bool policy_manages(const struct access *access, const struct who *who);

/* Whether it exists for him. */
bool policy_may_see(const struct access *access, const struct who *who);

/* access is an enum shmview_access. */
bool policy_may_attach(const struct access *access, const struct who *who, int64_t attachment);

/* Whether he may turn the one into the other, or make what is new like that (old: his own). */
bool policy_may_change(const struct access *from, const struct access *to, const struct who *who);

#endif
