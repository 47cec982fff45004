/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rights/access.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/base/table.h"

/* --- Sharing ------------------------------------------------------------- */

/* A copy in the table, with the number of its users. The key is the access itself, without the
 * unused entries. */
struct shared {
    struct access access;
    size_t n; /* copies that access_share() returned and that are still in use */
    struct table_link link;
};

static struct table table;

static size_t used_bytes(const struct access *access)
{
    return offsetof(struct access, entries) + access->n_entries * sizeof access->entries[0];
}

static bool has_entry(const struct access *access, const struct access_entry *entry)
{
    for (uint32_t i = 0; i < access->n_entries; i++)
        if (memcmp(&access->entries[i], entry, sizeof *entry) == 0)
            return true;
    return false;
}

bool access_same_entries(const struct access *a, const struct access *b)
{
    for (uint32_t i = 0; i < a->n_entries; i++)
        if (!has_entry(b, &a->entries[i]))
            return false;
    return a->n_entries == b->n_entries;
}

const struct access *access_share(const struct access *access)
{
    struct shared *s;
    const size_t n = used_bytes(access);
    const uint32_t hash = table_hash_bytes(access, n);
    for (struct table_link *l = table_first(&table, hash); l; l = table_next(l)) {
        s = CONTAINER_OF(l, struct shared, link);
        if (used_bytes(&s->access) == n && memcmp(&s->access, access, n) == 0) {
            s->n++;
            return &s->access;
        }
    }
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    memcpy(&s->access, access, n);
    s->n = 1;
    table_add(&table, &s->link, hash);
    return &s->access;
}

const struct access *access_unshare(const struct access *access)
{
    struct shared *s =
        access ? CONTAINER_OF((struct access *)(uintptr_t)access, struct shared, access) : NULL;
    if (s && --s->n == 0) {
        table_remove(&table, &s->link);
        free(s);
    }
    return NULL;
}
