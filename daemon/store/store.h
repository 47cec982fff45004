/* SPDX-License-Identifier: Apache-2.0 */
/* What must outlive the daemon: segments, layouts, attachments. An LMDB file beside
 * the socket; every call is one transaction, so that a daemon that is killed at any
 * instruction leaves the state before it or the one after it.
 *
 * A NULL store keeps nothing and never fails. Not thread-safe: the loop's only. */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "daemon/rights/access.h"

struct store;

/* Who holds an attachment, or created a segment: a process by the kernel's word, and
 * which of its connections, by a number that it chose. */
struct store_holder {
    uint64_t birth; /* tells the process from others that have its pid; 0: none */
    uint64_t client;
    uint32_t pid; /* 0 if it is in a pid namespace that the daemon cannot see */
    uint32_t uid;
};

#define STORE_LOCK  1u
#define STORE_NAMED 2u

struct store_segment {
    uint64_t id;
    uint64_t size;
    uint64_t device;
    uint64_t inode[3]; /* data, control, liveness; 0 where there is none */
    uint64_t control_bytes;
    struct store_holder creator;
    uint32_t lifetime;
    uint32_t flags;
    struct access access;            /* kept with as many entries as it has, before the name */
    char name[LIMIT_NAME_BYTES + 1]; /* kept as long as it is */
};

struct store_attachment {
    uint64_t id;
    uint64_t segment;
    struct store_holder holder;
    uint32_t access;
    uint32_t slot;       /* UINT32_MAX: none */
    uint32_t generation; /* of the slot */
    uint32_t uid;        /* of the client, who is charged for it */
};

/* Opens or makes the file called name in the directory dir, which is borrowed. Takes part of the
 * memory it may need beforehand, so that a full file system is an error and no signal. The file is
 * opened as store_file.h has it; check is ended, and may be NULL. One that is damaged, of another
 * version, no store, another user's or open to others is set aside as NAME.bad and a new one is
 * made; *ret_was_bad tells. Returns 0 and owes store_close(), or -errno. */
struct store_check;
int store_open(int dir, const char *name, struct store_check *check, struct store **ret,
               bool *ret_was_bad);

/* Takes NULL. remove: the file goes too. Returns NULL. */
struct store *store_close(struct store *store, bool remove);

/* Puts a record, new or changed. Returns 0 or -errno: -ENOSPC if the file system is full; for a
 * layout already when what is left is kept for records, see store_room.h. */
int store_put_segment(struct store *store, const struct store_segment *segment);
int store_put_attachment(struct store *store, const struct store_attachment *attachment);
/* text is JSON, a layout; index its place in the segment. */
int store_put_layout(struct store *store, uint64_t segment, uint32_t index, const char *text);

/* Removes what is there. A segment takes its layouts with it. Returns 0 or -errno. */
int store_delete_segment(struct store *store, uint64_t id);
int store_delete_attachment(struct store *store, uint64_t id);

/* The highest id that a segment ever had; how often the store was opened. */
uint64_t store_last_id(const struct store *store);
uint64_t store_starts(const struct store *store);

/* Visits all, by id. A record that does not fit is told as NULL, with its key, and can be
 * deleted afterwards. visit must not change the store. Returns 0 or -errno. */
int store_each_segment(struct store *store,
                       void (*visit)(void *arg, uint64_t id, const struct store_segment *),
                       void *arg);
int store_each_attachment(struct store *store,
                          void (*visit)(void *arg, uint64_t id, const struct store_attachment *),
                          void *arg);
/* The layouts of a segment, in order. text is borrowed and ends with a NUL. */
int store_each_layout(struct store *store, uint64_t segment,
                      void (*visit)(void *arg, uint32_t index, const char *text), void *arg);

#endif
