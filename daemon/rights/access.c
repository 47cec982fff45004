/* SPDX-License-Identifier: Apache-2.0 */
static _Thread_local int hash_failed;
#define HASH_NONFATAL_OOM            1
#define uthash_nonfatal_oom(element) (hash_failed = 1)

#include "daemon/rights/access.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "common/base/util.h"

/* --- Sharing ------------------------------------------------------------- */

struct shared {
    struct access access;
    size_t n; /* users */
    UT_hash_handle hh;
};

static struct shared *table;

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
    size_t n = used_bytes(access);
    HASH_FIND(hh, table, access, n, s);
    if (s) {
        s->n++;
        return &s->access;
    }
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    memcpy(&s->access, access, n);
    s->n = 1;
    hash_failed = 0;
    HASH_ADD_KEYPTR(hh, table, &s->access, n, s);
    if (hash_failed) {
        free(s);
        return NULL;
    }
    return &s->access;
}

const struct access *access_unshare(const struct access *access)
{
    struct shared *s =
        access ? CONTAINER_OF((struct access *)(uintptr_t)access, struct shared, access) : NULL;
    if (s && --s->n == 0) {
        HASH_DELETE(hh, table, s);
        free(s);
    }
    return NULL;
}

/* --- To and from requests ------------------------------------------------ */

static const uint16_t perms_of[] = {0, 0, ACCESS_READ, ACCESS_READ | ACCESS_WRITE};

static int read_entry(const struct wire_acl_entry *e, struct access *access,
                      struct wire_fault *fault)
{
    if (e->is_user == e->is_group)
        return wire_fault_set(fault, "acl", "has an entry that names not one user or group");
    struct access_entry entry = {
        .id = (uint32_t)(e->is_user ? e->user : e->group),
        .kind = e->is_user ? ACCESS_USER : ACCESS_GROUP,
        .perms = perms_of[e->right],
    };
    for (uint32_t i = 0; i < access->n_entries; i++)
        if (access->entries[i].id == entry.id && access->entries[i].kind == entry.kind)
            return wire_fault_set(fault, "acl", "has two entries for %s %u",
                                  entry.kind == ACCESS_USER ? "user" : "group", entry.id);
    access->entries[access->n_entries++] = entry;
    return 0;
}

int access_change(struct access *access, const struct wire_grant *want, struct wire_fault *fault)
{
    if (want->mode != WIRE_ABSENT && want->mode & ~(int64_t)ACCESS_MODES)
        return wire_fault_set(fault, "mode", "is 0%o, it has bits of 0%o only",
                              (unsigned)want->mode, ACCESS_MODES);
    if (want->mode != WIRE_ABSENT)
        access->mode = (uint32_t)want->mode;
    if (want->owner != WIRE_ABSENT)
        access->uid = (uint32_t)want->owner;
    if (want->group != WIRE_ABSENT)
        access->gid = (uint32_t)want->group;
    if (!want->acl)
        return 0;
    access->n_entries = 0;
    for (size_t i = 0; i < want->n_acl; i++)
        if (read_entry(&want->acl[i], access, fault))
            return -1;
    return 0;
}

/* What a right of write without read is worth: nothing. */
static int64_t right_of(unsigned perms)
{
    return !(perms & ACCESS_READ) ? WIRE_RIGHT_NONE
           : perms & ACCESS_WRITE ? WIRE_RIGHT_WRITE
                                  : WIRE_RIGHT_READ;
}

void access_tell(const struct access *access, struct wire_acl_entry *room, struct wire_grant *ret)
{
    *ret = (struct wire_grant){
        .mode = access->mode,
        .owner = access->uid,
        .group = access->gid,
        .acl = room,
        .n_acl = access->n_entries,
    };
    for (uint32_t i = 0; i < access->n_entries; i++) {
        const struct access_entry *e = &access->entries[i];
        room[i] = (struct wire_acl_entry){
            .user = e->id,
            .group = e->id,
            .is_user = e->kind == ACCESS_USER,
            .is_group = e->kind == ACCESS_GROUP,
            .right = right_of(e->perms),
        };
    }
}
