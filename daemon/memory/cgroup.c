/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESERVE_PART 32

/* A hierarchy in which a memory controller can be. */
struct mount {
    char point[PATH_MAX]; /* "": there is none */
    char root[PATH_MAX];  /* the group that lies there */
};
enum version {
    V1,
    V2,
    N_VERSIONS
};
static struct mount mounts[N_VERSIONS];
static char proc_file[PATH_MAX];

/* --- Where groups are ---------------------------------------------------- */

/* Turns the octal escapes of mountinfo into the bytes they stand for, in place. */
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

static bool has_option(char *options, const char *wanted)
{
    char *rest;
    for (char *o = strtok_r(options, ",\n", &rest); o; o = strtok_r(NULL, ",\n", &rest))
        if (strcmp(o, wanted) == 0)
            return true;
    return false;
}

/* One line of mountinfo: id parent device ROOT POINT options [optional ...] - TYPE source OPTIONS
 */
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

/* Returns absent where there is no such file; UINT64_MAX for "max". */
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

/* Pages of files that the kernel would drop before it kills anybody; those in use count half. */
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

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Of one group. */
static struct cgroup_space space_v2(const char *group, uint64_t swap_free)
{
    /* at "high" the kernel slows its processes down until they hardly run */
    uint64_t limit =
        least(number(group, "memory.max", UINT64_MAX), number(group, "memory.high", UINT64_MAX));
    if (limit == UINT64_MAX)
        return (struct cgroup_space){UINT64_MAX, UINT64_MAX};
    uint64_t used = less(number(group, "memory.current", 0), reclaimable(group, V2));
    uint64_t swap =
        less(number(group, "memory.swap.max", 0), number(group, "memory.swap.current", 0));
    return (struct cgroup_space){sum_of(less(limit, used), least(swap, swap_free)), limit};
}

static struct cgroup_space space_v1(const char *group, uint64_t swap_free)
{
    uint64_t limit = number(group, "memory.limit_in_bytes", UINT64_MAX);
    if (limit > INT64_MAX / 2) /* its word for unlimited depends on the page size */
        return (struct cgroup_space){UINT64_MAX, UINT64_MAX};
    uint64_t spare = reclaimable(group, V1);
    uint64_t used = less(number(group, "memory.usage_in_bytes", 0), spare);
    uint64_t used_with_swap = less(number(group, "memory.memsw.usage_in_bytes", 0), spare);
    uint64_t with_swap = number(group, "memory.memsw.limit_in_bytes", UINT64_MAX);
    uint64_t free = sum_of(less(limit, used), swap_free);
    return (struct cgroup_space){least(free, less(with_swap, used_with_swap)), limit};
}

static void narrow(struct cgroup_space *space, struct cgroup_space by)
{
    if (by.limit == UINT64_MAX)
        return;
    by.free = less(by.free, by.limit / RESERVE_PART);
    if (by.free < space->free)
        *space = by;
}

/* path: the group as /proc/self/cgroup has it; it is cut. */
static void narrow_by_all(struct cgroup_space *space, char *path, enum version version,
                          uint64_t swap_free)
{
    const struct mount *m = &mounts[version];
    char group[2 * PATH_MAX];
    size_t n = strlen(m->root);
    if (!m->point[0])
        return;
    /* a group outside of what is mounted here cannot be seen: only the mounted one can */
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
