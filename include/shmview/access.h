/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/access.h - who may use a segment.
 *
 * A segment has an owner, a group, a mode as a file has, and a list of users and groups that
 * may do more or less than that. What a program may do is decided when it attaches, by the
 * uid, the gid and the supplementary groups that it had when it connected:
 *
 *     its owner                      the mode's bits for the owner
 *     a user who has an entry        that entry
 *     members of the group, and of   the mode's bits for the group and the entries
 *     groups that have an entry      of all those groups together
 *     all others                     the mode's bits for others
 *
 * The first line that fits decides. 4 is the right to read: SHMVIEW_PEEK and SHMVIEW_READ; 6 is
 * the right to write as well. Whoever has no right does not learn that the segment exists, and
 * is told SHMVIEW_ERR_NOT_FOUND. Root, and the group that the administrator has named, may do
 * everything. A new segment has the mode that the administrator says, 0600 if nothing. */
#ifndef SHMVIEW_ACCESS_H
#define SHMVIEW_ACCESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmview_connection;

#define SHMVIEW_USER  1u
#define SHMVIEW_GROUP 2u

/* One user or group, and what he or it may do. */
struct shmview_access_entry {
    uint32_t kind;    /* SHMVIEW_USER, SHMVIEW_GROUP */
    uint32_t right;   /* 0: nothing, SHMVIEW_READ or SHMVIEW_WRITE */
    const char *name; /* of the user or group; or its number, "1000" */
};

#define SHMVIEW_SET_MODE    1u
#define SHMVIEW_SET_OWNER   2u
#define SHMVIEW_SET_GROUP   4u
#define SHMVIEW_SET_ENTRIES 8u

/* What is to be changed. Size the struct with sizeof so that it can grow. */
struct shmview_access_change {
    uint32_t struct_bytes;
    uint32_t set;  /* which of the following are meant: SHMVIEW_SET_* */
    uint32_t mode; /* 0 to 0666, without execute bits */
    uint32_t owner, group;
    uint32_t n_entries;                         /* at most 32 */
    const struct shmview_access_entry *entries; /* in place of all that there were */
};

/* Changes who may use the segment called name. Names of users and groups are looked up here,
 * in this system's databases (getpwnam(3), getgrnam(3)), which may block. change is borrowed.
 * Attachments that exist stay. Only the owner and administrators may do this; only
 * administrators may name another owner, and a group that they are not in. The new owner is
 * charged for the segment. Blocks for one round trip. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_FOUND (also where the caller has no right to
 * see the segment), _DENIED, _QUOTA (the new owner's), _INVALID (also for a name that nobody
 * has), _DISCONNECTED, _PROTOCOL, _NO_MEMORY or _SYSTEM on failure. */
int shmview_set_access(struct shmview_connection *connection, const char *name,
                       const struct shmview_access_change *change);

#ifdef __cplusplus
}
#endif
#endif
