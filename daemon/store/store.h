/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: segments, layouts and attachments, which must outlive the daemon. It is an LMDB
 * file beside the socket. Every call is one transaction: a daemon that is killed at any instruction
 * leaves either the state before the call or the state after it.
 *
 * LMDB maps the file for writing and never syncs it, so a commit is a memory operation and takes
 * half a microsecond. This is safe against the death of the daemon, because the next process finds
 * everything that a killed process wrote to a shared map, in the order of its instructions. A power
 * failure can lose or damage the file; but the memory that the file describes is then lost, too.
 *
 * A write to a hole of a mapped file raises SIGBUS if the file system is full. Therefore the file
 * is always filled before LMDB maps it for writing (store_room.h).
 *
 * A NULL store keeps nothing, and no call fails for it; tests use that. Loop only. */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "daemon/rights/access.h"

struct store;

/* The client that holds an attachment or created a segment. The kernel reports the process;
 * `client` is a number that is different for each connection of that process. */
struct store_holder {
    uint64_t birth; /* distinguishes processes that had the same pid; 0: unknown */
    uint64_t client;
    uint32_t pid; /* 0 if it is in a pid namespace that the daemon cannot see */
    uint32_t uid;
};

/* What a segment got of huge pages and nodes: the members of struct placement of daemon/memory. */
struct store_placement {
    uint8_t huge, numa, by, missing;
    uint32_t node;
    uint64_t huge_bytes;
    uint64_t nodes;
};

#define STORE_LOCK   1u
#define STORE_NAMED  2u
#define STORE_SEALED 4u  /* its objects are memfds, which are kept elsewhere */
#define STORE_OWN    8u  /* its creator has made the data object */
#define STORE_PLACED 16u /* it has a placement */

/* The record of a segment. Written as store_record.h describes. */
struct store_segment {
    uint64_t id;
    uint64_t size;
    uint64_t device;
    uint64_t inode[3]; /* data, control, liveness; 0 if there is no such object */
    uint64_t maker;    /* with STORE_OWN: the uid of the creator; otherwise undefined */
    struct store_holder creator;
    uint32_t lifetime;
    uint32_t flags;
    struct access access;              /* only the used entries are written */
    char name[LIMIT_NAME_BYTES + 1];   /* only the bytes up to the NUL are written */
    char label[LIMIT_LABEL_BYTES + 1]; /* up to the NUL, too; "" is not written */
    struct store_placement placement;  /* with STORE_PLACED only, as the last bytes of a record */
};

/* The record of an attachment, written as it is. */
struct store_attachment {
    uint64_t id;
    uint64_t segment;
    struct store_holder holder;
    uint32_t access;
    uint32_t slot;       /* UINT32_MAX: none */
    uint32_t generation; /* of the slot */
    uint32_t uid;        /* the user who is charged */
};

/* Opens the file called name in the directory dir, or makes it. dir is borrowed until
 * store_close(). The file is checked as store_file.h describes; check is ended in any case, and may
 * be NULL.
 *
 * A file that cannot be used is renamed to NAME.bad and a new one is made; then *ret_was_bad is
 * true. This holds for a file that is damaged, has another version, is not an LMDB file, belongs to
 * another user or is writable by others. Returns 0, and the caller owes store_close(); or -errno.
 */
struct store_check;
int store_open(int dir, const char *name, struct store_check *check, struct store **ret,
               bool *ret_was_bad);

/* Closes the store, which may be NULL. Also removes the file if `remove` is true. Returns NULL. */
struct store *store_close(struct store *store, bool remove);

/* Write a record, and replace an older one with the same id. Return 0 or -errno: -ENOSPC if the
 * file system is full. A layout gets -ENOSPC earlier, because some room is kept for small records
 * (see store_room.h). */
int store_put_segment(struct store *store, const struct store_segment *segment);
int store_put_attachment(struct store *store, const struct store_attachment *attachment);
/* text is the layout as JSON; index is its place in the segment. */
int store_put_layout(struct store *store, uint64_t segment, uint32_t index, const char *text);

/* Lets the file grow now if a record of n bytes may need that, because growing takes as long as the
 * largest record. After an error the record is put, or refused, as without this call. */
void store_make_room(struct store *store, size_t n);

/* Delete a record, if it exists; with a segment also its layouts. Return 0 or -errno. */
int store_delete_segment(struct store *store, uint64_t id);
int store_delete_attachment(struct store *store, uint64_t id);

/* The highest id that a segment ever had, and how often the store was opened. From these and the
 * time the daemon makes ids that no earlier segment or attachment had. */
uint64_t store_last_id(const struct store *store);
uint64_t store_starts(const struct store *store);

/* Call visit() for all records in the order of their ids. For a record that is not valid, visit()
 * gets NULL and the id, so that the caller can delete it afterwards. visit() must not change the
 * store. Return 0 or -errno. */
int store_each_segment(struct store *store,
                       void (*visit)(void *arg, uint64_t id, const struct store_segment *),
                       void *arg);
int store_each_attachment(struct store *store,
                          void (*visit)(void *arg, uint64_t id, const struct store_attachment *),
                          void *arg);
/* Visits the layouts of a segment in order. text is borrowed for the call and ends with a NUL. */
int store_each_layout(struct store *store, uint64_t segment,
                      void (*visit)(void *arg, uint32_t index, const char *text), void *arg);

#endif
