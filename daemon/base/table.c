/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define CAPACITY_FIRST 16

static struct table_link **all(const struct table *t)
{
    return t->buckets ? t->buckets : (struct table_link **)(uintptr_t)&t->only;
}

/* Returns the highest power of two that is at most the number of buckets. */
static uint32_t power(const struct table *t)
{
    return (uint32_t)1 << (31 - __builtin_clz(t->n_more + 1));
}

/* While the buckets from `power` on are added one by one, those that have not been split yet have
 * the objects of two. */
static struct table_link **bucket(const struct table *t, uint32_t hash)
{
    const uint32_t low = power(t) - 1, i = hash & (low << 1 | 1);
    return &all(t)[i <= t->n_more ? i : hash & low];
}

/* Makes room for one more bucket. Returns 0 or -1. */
static int reserve(struct table *t)
{
    if (t->buckets && t->n_more + 1 < t->capacity)
        return 0;
    if (t->n_more == UINT32_MAX / 4)
        return -1;
    const uint32_t capacity = t->buckets ? t->capacity + t->capacity / 2 : CAPACITY_FIRST;
    struct table_link **buckets = realloc(t->buckets, capacity * sizeof(struct table_link *));
    if (!buckets)
        return -1;
    if (!t->buckets)
        buckets[0] = t->only;
    t->buckets = buckets;
    t->capacity = capacity;
    return 0;
}

/* Adds a bucket, and moves to it what belongs there from the one bucket that has it. */
static void split(struct table *t)
{
    if (reserve(t))
        return;
    const uint32_t low = power(t) - 1, added = t->n_more + 1, mask = low << 1 | 1;
    struct table_link **from = &t->buckets[added & low], **to = &t->buckets[added];
    *to = NULL;
    while (*from) {
        struct table_link *link = *from;
        if ((link->hash & mask) != added) {
            from = &link->next;
            continue;
        }
        *from = link->next;
        *to = link;
        link->next = NULL;
        to = &link->next;
    }
    t->n_more++;
}

void table_add(struct table *table, struct table_link *link, uint32_t hash)
{
    if (table->n++ > table->n_more)
        split(table);
    struct table_link **at = bucket(table, hash);
    *link = (struct table_link){.next = *at, .hash = hash};
    *at = link;
}

void table_remove(struct table *table, struct table_link *link)
{
    struct table_link **at = bucket(table, link->hash);
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    if (--table->n)
        return;
    free(table->buckets);
    *table = (struct table){.n = 0};
}

static struct table_link *with(struct table_link *link, uint32_t hash)
{
    while (link && link->hash != hash)
        link = link->next;
    return link;
}

struct table_link *table_first(const struct table *table, uint32_t hash)
{
    return with(*bucket(table, hash), hash);
}

struct table_link *table_next(const struct table_link *link)
{
    return with(link->next, link->hash);
}

/* The middle bits of a product with an odd number depend on all bits below them. */
uint32_t table_hash_number(uint64_t number)
{
    return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

uint32_t table_hash_bytes(const void *bytes, size_t n)
{
    uint64_t hash;
    memcpy(&hash, (const void *)getauxval(AT_RANDOM), sizeof hash); /* the kernel sets it */
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3); /* as FNV-1a */
    return table_hash_number(hash ^ hash >> 32);
}
