/* SPDX-License-Identifier: Apache-2.0 */
/* Access of segments: checks a change, converts names of users and groups to numbers, and sends
 * shmview_set_access(). */
#include "client/segment/access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/error.h"
#include "common/base/name.h"
#include "common/base/util.h"

#define ALL_CHANGES (SHMVIEW_SET_MODE | SHMVIEW_SET_OWNER | SHMVIEW_SET_GROUP | SHMVIEW_SET_ENTRIES)
/* The largest buffer for getpwnam_r() and getgrnam_r(). A group with many members needs more than
 * the usual size. */
#define LOOKUP_BYTES_MOST ((size_t)1 << 20)

/* --- Names --------------------------------------------------------------- */

/* Converts a name that begins with a digit, without a lookup. Returns false if it is not a number
 * or no possible id; UINT32_MAX stands for "no id" in the kernel. */
static bool is_number(const char *name, int64_t *ret)
{
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return false;
    errno = 0;
    unsigned long long n = strtoull(name, &end, 10);
    *ret = (int64_t)n;
    return *end == '\0' && errno == 0 && n < UINT32_MAX;
}

/* Looks a name up with one size of buffer. Returns 0, ENOENT if there is no such name, ERANGE if
 * the buffer is too small, or another errno. */
static int look_up_once(uint32_t kind, const char *name, char *room, size_t bytes, int64_t *ret)
{
    if (kind == SHMVIEW_USER) {
        struct passwd entry, *found;
        int r = getpwnam_r(name, &entry, room, bytes, &found);
        if (r == 0 && found)
            *ret = found->pw_uid;
        return r ? r : found ? 0 : ENOENT;
    }
    struct group entry, *found;
    int r = getgrnam_r(name, &entry, room, bytes, &found);
    if (r == 0 && found)
        *ret = found->gr_gid;
    return r ? r : found ? 0 : ENOENT;
}

/* Looks a name up with growing buffers. Returns 0 or an error. */
static int look_up(uint32_t kind, const char *name, int64_t *ret)
{
    const char *what = kind == SHMVIEW_USER ? "user" : "group";
    int r = ERANGE;
    for (size_t n = 1024; r == ERANGE && n <= LOOKUP_BYTES_MOST; n *= 4) {
        CLEANUP_FREE char *room = malloc(n);
        if (!room)
            return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
        r = look_up_once(kind, name, room, n, ret);
    }
    /* the databases report a missing name by any of these (getpwnam(3)) */
    if (r == ENOENT || r == ESRCH || r == EBADF || r == EPERM)
        return fail(SHMVIEW_ERR_INVALID, "there is no %s '%.64s'", what, name);
    return r ? fail_errno(what, r) : 0;
}

/* --- Changes ------------------------------------------------------------- */

/* Checks and converts one entry. Returns 0 or an error. */
static int read_entry(const struct shmview_access_entry *e, struct wire_acl_entry *ret)
{
    int64_t id = 0;
    bool user = e->kind == SHMVIEW_USER;
    if ((!user && e->kind != SHMVIEW_GROUP) || !e->name || !e->name[0])
        return fail(SHMVIEW_ERR_INVALID, "an access entry of kind %u, name '%.64s'", e->kind,
                    e->name ? e->name : "(null)");
    if (e->right && e->right != SHMVIEW_READ && e->right != SHMVIEW_WRITE)
        return fail(SHMVIEW_ERR_INVALID,
                    "right %u for '%.64s': it is 0, SHMVIEW_READ or SHMVIEW_WRITE", e->right,
                    e->name);
    int r = is_number(e->name, &id) ? 0 : look_up(e->kind, e->name, &id);
    *ret = (struct wire_acl_entry){
        .user = id,
        .group = id,
        .is_user = user,
        .is_group = !user,
        .right = e->right == SHMVIEW_WRITE  ? WIRE_RIGHT_WRITE
                 : e->right == SHMVIEW_READ ? WIRE_RIGHT_READ
                                            : WIRE_RIGHT_NONE,
    };
    return r;
}

int access_grant(const struct shmview_access_change *change, struct wire_grant *ret)
{
    struct wire_grant grant = {.mode = WIRE_ABSENT, .owner = WIRE_ABSENT, .group = WIRE_ABSENT};
    const struct shmview_access_change *c = change;
    int r = 0;
    NOT_CANCELLED; /* look-ups of names can be cancelled */
    *ret = grant;
    if (!c)
        return 0;
    if (c->struct_bytes != sizeof *c || c->set & ~ALL_CHANGES)
        return fail(SHMVIEW_ERR_INVALID,
                    "an access change of %u bytes, set 0x%x; this library knows %zu and 0x%x",
                    c->struct_bytes, c->set, sizeof *c, ALL_CHANGES);
    if (c->set & SHMVIEW_SET_MODE && c->mode > 0777)
        return fail(SHMVIEW_ERR_INVALID, "mode 0%o", c->mode);
    if (c->set & SHMVIEW_SET_ENTRIES &&
        (c->n_entries > LIMIT_ACL_ENTRIES || (c->n_entries && !c->entries)))
        return fail(SHMVIEW_ERR_INVALID, "%u access entries, the limit is %d", c->n_entries,
                    LIMIT_ACL_ENTRIES);
    if (c->set & SHMVIEW_SET_MODE)
        grant.mode = c->mode;
    if (c->set & SHMVIEW_SET_OWNER)
        grant.owner = c->owner;
    if (c->set & SHMVIEW_SET_GROUP)
        grant.group = c->group;
    if (c->set & SHMVIEW_SET_ENTRIES) {
        grant.acl = calloc(c->n_entries ? c->n_entries : 1, sizeof *grant.acl);
        if (!grant.acl)
            return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
        while (r == 0 && grant.n_acl < c->n_entries) {
            r = read_entry(&c->entries[grant.n_acl], &grant.acl[grant.n_acl]);
            grant.n_acl++;
        }
    }
    if (r)
        free(grant.acl);
    else
        *ret = grant;
    return r;
}

int shmview_set_access(struct shmview_connection *connection, const char *name,
                       const struct shmview_access_change *change)
{
    struct reply reply;
    struct wire_set_access set = {.name = name, .id = WIRE_ABSENT};
    NOT_CANCELLED;
    int r = check_segment_name(name);
    if (r)
        return r;
    if (!change)
        return fail(SHMVIEW_ERR_INVALID, "no access change");
    r = access_grant(change, &set.grant);
    if (r)
        return r;
    r = connection_call(connection, "io.shmview.SetAccess", wire_set_access_text(&set), &reply);
    free(set.grant.acl);
    if (r == 0)
        reply_deinit(&reply);
    return r;
}
