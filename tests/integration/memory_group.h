/* SPDX-License-Identifier: Apache-2.0 */
/* A control group with a limit of memory, for a test that may make one. Each test includes this
 * once. */
#ifndef INTEGRATION_MEMORY_GROUP_H
#define INTEGRATION_MEMORY_GROUP_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "support/await.h"

#define MIB   ((uint64_t)1 << 20)
#define LIMIT (96 * MIB)

static const char *const tops[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};

static char group[128], before[256];

static inline bool put(const char *directory, const char *file, uint64_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *f = fopen(path, "we");
    bool good = f && fprintf(f, "%llu\n", (unsigned long long)n) > 0;
    return f && fclose(f) == 0 && good;
}

/* The directory of the group that this process is in, below top. */
static inline bool find_own(const char *top, bool is_v1)
{
    char line[512];
    FILE *f = fopen("/proc/self/cgroup", "re");
    before[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        char *path = strrchr(line, ':');
        line[strcspn(line, "\n")] = '\0';
        if (path && (is_v1 ? strstr(line, ":memory:") != NULL : strncmp(line, "0::", 3) == 0))
            snprintf(before, sizeof before, "%s%.200s", top, path + 1);
    }
    if (f)
        fclose(f);
    return before[0];
}

/* Enters a group of its own with that limit, and whatever it starts from now on. Returns false
 * where it may not. */
static inline bool enter_group(void)
{
    for (int i = 0; i < 2; i++) {
        snprintf(group, sizeof group, "%s/shmview-test-%d", tops[i], (int)getpid());
        if (!find_own(tops[i], i == 0) || mkdir(group, 0755))
            continue;
        if (put(group, limits[i], LIMIT) && put(group, "cgroup.procs", (uint64_t)getpid()))
            return true;
        rmdir(group);
    }
    fprintf(stderr, "no control group of one's own with a limit: %s\n", strerror(errno));
    return false;
}

/* Goes back. What it has started stays in the group. */
static inline void step_out_of_group(void)
{
    ck_assert(put(before, "cgroup.procs", (uint64_t)getpid()));
}

/* Goes back, and removes the group, in which nothing may run any longer. */
static inline void leave_group(void)
{
    step_out_of_group();
    AWAIT(rmdir(group) == 0);
}

/* How much memory the group is charged for. */
static inline uint64_t group_usage(void)
{
    static const char *const files[] = {"memory.usage_in_bytes", "memory.current"};
    unsigned long long n = 0;
    char path[256];
    FILE *f = NULL;
    for (int i = 0; i < 2 && !f; i++) {
        snprintf(path, sizeof path, "%s/%s", group, files[i]);
        f = fopen(path, "re");
    }
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%llu", &n), 1);
    fclose(f);
    return n;
}

#endif
