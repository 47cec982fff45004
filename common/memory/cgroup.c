/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1/32 of a limit is kept free, for what the processes of the group allocate besides. */
#define RESERVE_PART 32

/* Where a hierarchy of control groups is mounted. Written once, by cgroup_init(). */
struct mount {
    char point[PATH_MAX]; /* "" if this version is not mounted */
    char root[PATH_MAX];  /* the group that is visible at point; "" is the root group */
};
enum version {
    V1,
    V2,
    N_VERSIONS
};
static struct mount mounts[N_VERSIONS];
static char proc_file[PATH_MAX];

/* --- Where groups are ---------------------------------------------------- */

/* Replaces the octal escapes of mountinfo (such as \040 for a space) by their bytes, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p; to++) {
        unsigned byte;
        if (sscanf(p, "\\%3o", &byte) == 1) {
            *to = (char)byte;
            p += 4;
        } else {
            *to = *p++;
        }
    }
    *to = '\0';
}

/* Whether the comma-separated list contains wanted. Destroys the list. */
static bool has_option(char *options, const char *wanted)
{
    char *rest;
    for (char *o = strtok_r(options, ",\n", &rest); o; o = strtok_r(NULL, ",\n", &rest))
        if (strcmp(o, wanted) == 0)
            return true;
    return false;
}

/* Stores the mount if it is a hierarchy with a memory controller. A line of mountinfo has the form
 *
 *   id parent device ROOT POINT options [optional ...] - TYPE source OPTIONS */
static void note_mount(char *line, const char *root)
{
    char type[32], options[1024];
    char *dash = strstr(line, " - "), *rest;
    if (!dash || sscanf(dash, " - %31s %*s %1023s", type, options) != 2)
        return;
    bool is_v1 = strcmp(type, "cgroup") == 0 && has_option(options, "memory");
    if (!is_v1 && strcmp(type, "cgroup2") != 0)
        return;
    *dash = '\0';
    char *field[5];
    for (int i = 0; i < 5; i++)
        if (!(field[i] = strtok_r(i ? NULL : line, " ", &rest)))
            return;
    struct mount *m = &mounts[is_v1 ? V1 : V2];
    unescape(field[3]);
    unescape(field[4]);
    snprintf(m->root, sizeof m->root, "%s", strcmp(field[3], "/") == 0 ? "" : field[3]);
    snprintf(m->point, sizeof m->point, "%s%s", root, field[4]);
}

void cgroup_init(const char *root)
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    memset(mounts, 0, sizeof mounts);
    snprintf(proc_file, sizeof proc_file, "%s/proc/self/cgroup", root);
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    while (getline(&line, &room, f) > 0)
        note_mount(line, root);
    free(line);
    fclose(f);
}

/* --- What a group may have ----------------------------------------------- */

/* Reads the number in a file of the group. Returns `absent` if the file cannot be opened, and
 * UINT64_MAX if it contains no number: "max" means unlimited. */
static uint64_t number(const char *group, const char *name, uint64_t absent)
{
    char path[PATH_MAX + 64];
    uint64_t n = absent;
    snprintf(path, sizeof path, "%s/%s", group, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return absent;
    if (fscanf(f, "%" SCNu64, &n) != 1)
        n = UINT64_MAX;
    fclose(f);
    return n;
}

/* Bytes of cached files that the kernel would drop before it kills a process. Active pages count
 * half, because dropping all of them would slow the group down. 0 if the file cannot be read. */
static uint64_t reclaimable(const char *group, enum version version)
{
    static const char *const inactive[] = {"total_inactive_file", "inactive_file"};
    static const char *const active[] = {"total_active_file", "active_file"};
    char path[PATH_MAX + 64], line[128], key[64];
    uint64_t sum = 0, n;
    snprintf(path, sizeof path, "%s/memory.stat", group);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%63s %" SCNu64, key, &n) != 2)
            continue;
        if (strcmp(key, inactive[version]) == 0)
            sum += n;
        else if (strcmp(key, active[version]) == 0)
            sum += n / 2;
    }
    fclose(f);
    return sum;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* a + b, and UINT64_MAX on overflow. */
static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a - b, and 0 if b is larger. */
static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* The space of one group of cgroup v2, without the reserve. Without a file for swap the group may
 * use none. */
static struct cgroup_space space_v2(const char *group, uint64_t swap_free)
{
    /* above memory.high the kernel slows the processes down until they hardly run */
    uint64_t limit =
        least(number(group, "memory.max", UINT64_MAX), number(group, "memory.high", UINT64_MAX));
    if (limit == UINT64_MAX)
        return (struct cgroup_space){UINT64_MAX, UINT64_MAX};
    uint64_t used = less(number(group, "memory.current", 0), reclaimable(group, V2));
    uint64_t swap =
        less(number(group, "memory.swap.max", 0), number(group, "memory.swap.current", 0));
    return (struct cgroup_space){sum_of(less(limit, used), least(swap, swap_free)), limit};
}

/* Like space_v2(), but for cgroup v1, where a second limit holds for memory and swap together. */
static struct cgroup_space space_v1(const char *group, uint64_t swap_free)
{
    uint64_t limit = number(group, "memory.limit_in_bytes", UINT64_MAX);
    if (limit > INT64_MAX / 2) /* "unlimited" is a huge number that depends on the page size */
        return (struct cgroup_space){UINT64_MAX, UINT64_MAX};
    uint64_t spare = reclaimable(group, V1);
    uint64_t used = less(number(group, "memory.usage_in_bytes", 0), spare);
    uint64_t used_with_swap = less(number(group, "memory.memsw.usage_in_bytes", 0), spare);
    uint64_t with_swap = number(group, "memory.memsw.limit_in_bytes", UINT64_MAX);
    uint64_t free = sum_of(less(limit, used), swap_free);
    return (struct cgroup_space){least(free, less(with_swap, used_with_swap)), limit};
}

/* Makes *space that of another group if this group has less free. */
static void narrow(struct cgroup_space *space, struct cgroup_space by)
{
    if (by.limit == UINT64_MAX)
        return;
    by.free = less(by.free, by.limit / RESERVE_PART);
    if (by.free < space->free)
        *space = by;
}

/* Narrows *space by the group at path and by each group above it that is visible here. path is
 * from /proc/self/cgroup; it is destroyed, because each step cuts the last component off. */
static void narrow_by_all(struct cgroup_space *space, char *path, enum version version,
                          uint64_t swap_free)
{
    const struct mount *m = &mounts[version];
    char group[2 * PATH_MAX];
    size_t n = strlen(m->root);
    if (!m->point[0])
        return;
    /* in a container the group may lie outside of the part that is mounted; then only the limit of
     * the mounted group itself is known */
    bool is_below = strncmp(path, m->root, n) == 0 && (path[n] == '/' || path[n] == '\0') &&
                    !strstr(path, "/..");
    char *below = path + (is_below ? n : strlen(path));
    for (char *slash; (slash = strrchr(below, '/')); *slash = '\0') {
        snprintf(group, sizeof group, "%s%s", m->point, below);
        if (slash[1])
            narrow(space, version == V1 ? space_v1(group, swap_free) : space_v2(group, swap_free));
    }
    narrow(space, version == V1 ? space_v1(m->point, swap_free) : space_v2(m->point, swap_free));
}

struct cgroup_space cgroup_space(uint64_t swap_free)
{
    struct cgroup_space space = {UINT64_MAX, UINT64_MAX};
    char *line = NULL, *rest;
    size_t room = 0;
    FILE *f = proc_file[0] ? fopen(proc_file, "re") : NULL;
    if (!f)
        return space;
    while (getline(&line, &room, f) > 0) { /* number:controllers:/path */
        char *controllers = strchr(line, ':');
        rest = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!rest)
            continue;
        *rest++ = *controllers++ = '\0';
        rest[strcspn(rest, "\n")] = '\0';
        if (has_option(controllers, "memory"))
            narrow_by_all(&space, rest, V1, swap_free);
        else if (strcmp(line, "0") == 0)
            narrow_by_all(&space, rest, V2, swap_free);
    }
    free(line);
    fclose(f);
    return space;
}
