/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of objects that contain a link. It grows by one bucket for each object that is added
 * (linear hashing: W. Litwin, "Linear hashing: a new tool for file and table addressing", 1980), so
 * that no addition moves all objects: to double a table of 100,000 segments would stop the loop for
 * some milliseconds. An object takes 24 bytes, its link and its part of the buckets.
 *
 *     struct thing { int key; struct table_link link; };
 *     for (l = table_first(&t, hash_of(key)); l; l = table_next(l))
 *         if (CONTAINER_OF(l, struct thing, link)->key == key)
 *
 * For use on one thread. */
#ifndef DAEMON_TABLE_H
#define DAEMON_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* In each object; a table at a time may have it. */
struct table_link {
    struct table_link *next; /* of the same bucket */
    uint32_t hash;
};

/* Zeroes are an empty table. */
struct table {
    struct table_link *only;     /* the bucket, while there is only one */
    struct table_link **buckets; /* all of them; NULL: there is only one */
    uint32_t n_more, capacity;   /* buckets after the first one; buckets that have memory */
    size_t n;                    /* objects */
};

/* Adds an object under the hash of its key. Cannot fail: if memory is short, the table does not
 * grow, and becomes slower. The object must stay where it is until table_remove(). */
void table_add(struct table *table, struct table_link *link, uint32_t hash);

/* Removes an object, which must be in the table. A table that becomes empty frees its memory. */
void table_remove(struct table *table, struct table_link *link);

/* Return an object with the hash, and another one after it; or NULL. Objects with different keys
 * may have one hash, so the caller compares keys. */
struct table_link *table_first(const struct table *table, uint32_t hash);
struct table_link *table_next(const struct table_link *link);

/* Return the hash of a number, and of bytes. The latter depends on a random number of the process,
 * because a client could otherwise choose names that all have one hash. */
uint32_t table_hash_number(uint64_t number);
uint32_t table_hash_bytes(const void *bytes, size_t n);

#endif
