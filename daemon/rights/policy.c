/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rights/policy.h"

#include <shmview/shmview.h>

#define ALL (ACCESS_READ | ACCESS_WRITE)

bool policy_is_member(const struct who *who, gid_t group)
{
    if (who->gid == group)
        return true;
    for (size_t i = 0; i < who->n_groups; i++)
        if (who->groups[i] == group)
            return true;
    return false;
}

static bool names(const struct access_entry *entry, const struct who *who)
{
    return entry->kind == ACCESS_USER ? entry->id == who->uid : policy_is_member(who, entry->id);
}

bool policy_is_among(const struct who *who, const struct access_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (names(&entries[i], who))
            return true;
    return false;
}

/* The permissions of all groups of the user together, or -1 if the segment names none of them. */
static int groups_perms(const struct access *access, const struct who *who)
{
    bool found = policy_is_member(who, access->gid);
    unsigned perms = found ? access->mode >> 3 : 0;
    for (uint32_t i = 0; i < access->n_entries; i++)
        if (access->entries[i].kind == ACCESS_GROUP && names(&access->entries[i], who)) {
            perms |= access->entries[i].perms;
            found = true;
        }
    return found ? (int)(perms & ALL) : -1;
}

/* The permissions by the most specific rule. */
static unsigned perms_of(const struct access *access, const struct who *who)
{
    if (who->is_admin)
        return ALL;
    if (who->uid == access->uid)
        return access->mode >> 6 & ALL;
    for (uint32_t i = 0; i < access->n_entries; i++)
        if (access->entries[i].kind == ACCESS_USER && names(&access->entries[i], who))
            return access->entries[i].perms & ALL;
    int perms = groups_perms(access, who);
    return perms >= 0 ? (unsigned)perms : access->mode & ALL;
}

unsigned policy_rights(const struct access *access, const struct who *who)
{
    unsigned perms = perms_of(access, who);
    return perms & ACCESS_READ ? perms : 0;
}

bool policy_manages(const struct access *access, const struct who *who)
{
    return who->is_admin || who->uid == access->uid;
}

bool policy_may_see(const struct access *access, const struct who *who)
{
    return policy_manages(access, who) || policy_rights(access, who);
}

bool policy_may_attach(const struct access *access, const struct who *who, int64_t attachment)
{
    unsigned need = attachment == SHMVIEW_WRITE ? ALL : ACCESS_READ;
    return (policy_rights(access, who) & need) == need;
}

bool policy_may_change(const struct access *from, const struct access *to, const struct who *who)
{
    if (who->is_admin)
        return true;
    /* only an administrator may name another owner, because the owner's quota pays; other users may
     * name only groups to which they belong */
    return who->uid == from->uid && to->uid == from->uid &&
           (to->gid == from->gid || policy_is_member(who, to->gid));
}
