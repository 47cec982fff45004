/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a user may do something to a segment. These are pure functions of the facts that
 * they are passed, so the unit test tries every combination. Callers in daemon/requests collect the
 * facts. */
#ifndef DAEMON_POLICY_H
#define DAEMON_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/rights/access.h"

/* The user of a request, as the kernel reports the peer of the socket. */
struct who {
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary */
    size_t n_groups;
    bool is_admin; /* root, or a member of the configured group */
};

/* Whether group is the user's primary or a supplementary group. */
bool policy_is_member(const struct who *who, gid_t group);

/* Whether one of the entries names the user, or a group of the user. */
bool policy_is_among(const struct who *who, const struct access_entry *entries, size_t n);

/* Returns what the user may do with the bytes: 0, ACCESS_READ, or ACCESS_READ | ACCESS_WRITE.
 *
 * As with the access control list of a file, the most specific rule decides alone: the owner's bits
 * for the owner; otherwise the entry for the user; otherwise all groups of the user together;
 * otherwise the others' bits. Permission to write without permission to read counts as none,
 * because a mapping for writing can be read as well. An administrator may read and write. */
unsigned policy_rights(const struct access *access, const struct who *who);

/* Whether the user may remove the segment and change its access: the owner and administrators. */
bool policy_manages(const struct access *access, const struct who *who);

/* Whether the user may know that the segment exists. For other users every request behaves as if
 * there were no such segment, so that errors do not reveal its name. */
bool policy_may_see(const struct access *access, const struct who *who);

/* Whether the user may attach with this access. attachment is an enum shmview_access. */
bool policy_may_attach(const struct access *access, const struct who *who, int64_t attachment);

/* Whether the user may change the access of a segment. For a new segment `from` is the access that
 * the segment would have by default, with the user as its owner. */
bool policy_may_change(const struct access *from, const struct access *to, const struct who *who);

#endif
