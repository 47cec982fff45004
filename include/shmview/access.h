/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/access.h - the users who may use a segment.
 *
 * A segment has an owner, a group, and a mode like that of a file. It can also
 * have a list of entries, each of which gives one user or group more or less than
 * the mode does. The first line below that fits a user decides:
 *
 *     its owner                      the mode's bits for the owner
 *     a user who has an entry        that entry
 *     members of the group, and of   the mode's bits for the group and the entries
 *     groups that have an entry      of all those groups together
 *     all others                     the mode's bits for others
 *
 * In each digit of the mode, 4 is the right to read (SHMVIEW_PEEK and
 * SHMVIEW_READ), and 6 is the right to write as well. 2 alone is worth nothing.
 * Root and the members of the configured group of administrators may do
 * everything.
 *
 *     const struct shmview_access_entry guest = {SHMVIEW_USER, SHMVIEW_READ, "guest"};
 *     const struct shmview_access_change change = {
 *         .struct_bytes = sizeof change,
 *         .set = SHMVIEW_SET_MODE | SHMVIEW_SET_ENTRIES,
 *         .mode = 0640,
 *         .n_entries = 1,
 *         .entries = &guest,
 *     };
 *     shmview_set_access(conn, "demo", &change);
 *
 * A new segment belongs to the user who creates it, and to the group of that
 * user. Its mode is the configured one, 0600 by default. shmview_create() takes
 * the same struct to choose otherwise.
 *
 * The daemon decides when a program attaches, by the uid, the gid and the
 * supplementary groups that the program had when it connected. A user without any
 * right does not learn that the segment exists: each call returns
 * -SHMVIEW_ERR_NOT_FOUND, except that the name is taken for shmview_create(). An
 * attachment that exists outlives the right that it was made with, because its
 * memory is mapped. */
#ifndef SHMVIEW_ACCESS_H
#define SHMVIEW_ACCESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmview_connection;
struct shmview_segment;

/* Kinds of an entry. */
#define SHMVIEW_USER  1u
#define SHMVIEW_GROUP 2u

/* One user or group, and its right. An entry with the right 0 takes away what the
 * mode would give. */
struct shmview_access_entry {
    uint32_t kind;    /* SHMVIEW_USER, SHMVIEW_GROUP */
    uint32_t right;   /* 0: nothing, SHMVIEW_READ or SHMVIEW_WRITE */
    const char *name; /* of the user or group; or its number, "1000" */
};

/* The members of struct shmview_access_change that count; the others are
 * ignored. */
#define SHMVIEW_SET_MODE    1u
#define SHMVIEW_SET_OWNER   2u
#define SHMVIEW_SET_GROUP   4u
#define SHMVIEW_SET_ENTRIES 8u

/* A change of the rights. Set struct_bytes to sizeof, so that later versions can
 * add members. */
struct shmview_access_change {
    uint32_t struct_bytes;
    uint32_t set;  /* SHMVIEW_SET_*, or-ed together */
    uint32_t mode; /* 0 to 0666, without execute bits */
    /* uid and gid. */
    uint32_t owner, group;
    /* At most 32 entries, which replace all earlier ones; 0 removes them. */
    uint32_t n_entries;
    const struct shmview_access_entry *entries;
};

/* Changes who may use the segment called name. Attachments that exist stay.
 *
 * Only the owner and administrators may call it. An owner who is not an
 * administrator cannot name another owner, nor a group to which that owner does
 * not belong. The segment is charged to its new owner. change and all it points to
 * are borrowed for the call. The library looks up the names in entries in the
 * user and group databases of this system (getpwnam(3), getgrnam(3)), which may
 * block. Then blocks as a request (shmview.h). Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_FOUND if there is no such
 * segment or this user has no right to see it, _DENIED if this user may not
 * make this change, _QUOTA if it does not fit into the new owner's quota, _INVALID
 * for a wrong argument or a name that no user or group has, _SYSTEM if a database
 * cannot be read, or an error of requests. */
int shmview_set_access(struct shmview_connection *connection, const char *name,
                       const struct shmview_access_change *change);

/* Ties the lifetime of a segment to process pid instead of to this client, so that the results of a
 * worker outlive the worker. This client must have created the segment with SHMVIEW_CREATOR. The
 * process must be this one or an ancestor, not process 1, and belong to the same user. Blocks as a
 * request. Any thread.
 *
 * Returns 0 on success. On failure nothing has changed: returns -SHMVIEW_ERR_DENIED if the process
 * or the segment is not as described, _NOT_FOUND if the segment's name was removed, _INVALID for a
 * pid that cannot be one or foreign memory, or an error of requests. */
int shmview_entrust(struct shmview_segment *segment, uint32_t pid);

#ifdef __cplusplus
}
#endif
#endif
