/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config_value.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"

#define MAX_LOOKUP_BYTES ((size_t)16 * 1024 * 1024) /* for one group with all its members */

/* Parses decimal digits. Refuses a sign and leading space, which strtoull() would accept. *ret_end
 * points after the digits. Returns 0, -EINVAL or -ERANGE. */
static int parse_number(const char *text, const char **ret_end, uint64_t *ret)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    *ret_end = end;
    return -errno;
}

int config_parse_size(const char *text, uint64_t memory, uint64_t *ret_bytes)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    const char *end;
    uint64_t n;
    int r = parse_number(text, &end, &n);
    if (r)
        return r;
    if (memory && strcmp(end, "%") == 0) {
        *ret_bytes = memory / 100 * n;
        return n >= 1 && n <= 100 ? 0 : -ERANGE;
    }
    for (unsigned i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(end, units[i]) == 0) {
            if (n == 0 || n > LIMIT_SEGMENT_BYTES >> (10 * i))
                return -ERANGE;
            *ret_bytes = n << (10 * i);
            return 0;
        }
    return -EINVAL;
}

int config_parse_mode(const char *text, uint32_t *ret_mode)
{
    size_t n = strlen(text);
    if (n < 3 || n > 4 || strspn(text, "01234567") != n)
        return -EINVAL;
    uint32_t mode = (uint32_t)strtoul(text, NULL, 8);
    if (mode & ~ACCESS_MODES)
        return -EINVAL;
    *ret_mode = mode;
    return 0;
}

/* The entry of a large group needs a large buffer: its size grows until the entry fits. */
int config_lookup_system(enum access_kind kind, const char *name, uint32_t *ret_id)
{
    for (size_t bytes = 1024;; bytes *= 4) {
        CLEANUP_FREE char *buffer = malloc(bytes);
        struct passwd user, *found_user = NULL;
        struct group group, *found_group = NULL;
        if (!buffer)
            return -ENOMEM;
        int r = kind == ACCESS_USER ? getpwnam_r(name, &user, buffer, bytes, &found_user)
                                    : getgrnam_r(name, &group, buffer, bytes, &found_group);
        if (r == ERANGE && bytes < MAX_LOOKUP_BYTES)
            continue;
        if (found_user)
            *ret_id = found_user->pw_uid;
        if (found_group)
            *ret_id = found_group->gr_gid;
        if (found_user || found_group)
            return 0;
        /* getpwnam(3) lists these errors as possible results for a name that does not exist */
        return r == 0 || r == ENOENT || r == ESRCH || r == EBADF || r == EPERM ? -ENOENT : -r;
    }
}

int config_parse_id(const char *text, enum access_kind kind, config_lookup *lookup,
                    uint32_t *ret_id)
{
    const char *end;
    uint64_t n;
    if (parse_number(text, &end, &n) == 0 && *end == '\0') {
        if (n >= UINT32_MAX) /* (uid_t)-1 is not a valid id */
            return -ENOENT;
        *ret_id = (uint32_t)n;
        return 0;
    }
    return *text ? lookup(kind, text, ret_id) : -ENOENT;
}

static int parse_perms(const char *text, uint16_t *ret)
{
    static const struct {
        const char *text;
        uint16_t perms;
    } all[] = {
        {"-", 0}, {"r", ACCESS_READ}, {"w", ACCESS_WRITE}, {"rw", ACCESS_READ | ACCESS_WRITE}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (strcmp(text, all[i].text) == 0) {
            *ret = all[i].perms;
            return 0;
        }
    return -EINVAL;
}

int config_parse_entry(const char *text, bool with_perms, config_lookup *lookup,
                       struct access_entry *ret)
{
    char name[256];
    *ret = (struct access_entry){0};
    if (strncmp(text, "user:", 5) == 0)
        ret->kind = ACCESS_USER;
    else if (strncmp(text, "group:", 6) == 0)
        ret->kind = ACCESS_GROUP;
    else
        return -EINVAL;
    text = strchr(text, ':') + 1;
    size_t n = strcspn(text, ":");
    if (n == 0 || n >= sizeof name || (text[n] == ':') != with_perms)
        return -EINVAL;
    if (with_perms && parse_perms(text + n + 1, &ret->perms))
        return -EINVAL;
    memcpy(name, text, n);
    name[n] = '\0';
    return config_parse_id(name, (enum access_kind)ret->kind, lookup, &ret->id);
}
