/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon whose control group has a limit refuses segments that would reach it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define MIB   ((uint64_t)1 << 20)
#define LIMIT (96 * MIB)

static const char *const tops[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};

static struct daemon d;
static char group[128], before[256];

static bool put(const char *directory, const char *file, uint64_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *f = fopen(path, "we");
    bool good = f && fprintf(f, "%llu\n", (unsigned long long)n) > 0;
    return f && fclose(f) == 0 && good;
}

/* The directory of the group that this process is in, below top. */
static bool find_own(const char *top, bool is_v1)
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
static bool enter_group(void)
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

static void leave_group(void)
{
    ck_assert(put(before, "cgroup.procs", (uint64_t)getpid()));
    AWAIT(rmdir(group) == 0);
}

START_TEST(more_than_the_group_may_have_is_refused)
{
    if (!enter_group())
        return;
    struct raw raw;
    daemon_start(&d);
    raw_connect(&raw, d.socket);
    raw_send_call(&raw, "Create", "{'name': 'big', 'size': 134217728}");
    json_t *p = raw_receive_error(&raw, "NoSpace", "the daemon's control group may have 100663296");
    ck_assert_int_eq(raw_int(p, "asked"), 134217728);
    ck_assert_int_eq(raw_int(p, "limit"), (json_int_t)LIMIT);
    ck_assert_int_lt(raw_int(p, "free"), (json_int_t)LIMIT);
    json_decref(p);
    unsigned n = 0;
    for (bool full = false; !full; n += !full) { /* small and large in turn */
        char parameters[128];
        snprintf(parameters, sizeof parameters, "{'name': 's%u', 'size': %u%s}", n,
                 n % 16 ? 65536 : 8 << 20,
                 n % 16 ? ", 'access': 'write', 'lifetime': 'manual'" : "");
        raw_send_call(&raw, "Create", parameters);
        char *reply = raw_receive(&raw);
        ck_assert_ptr_nonnull(reply);
        full = strstr(reply, "NoSpace") != NULL;
        ck_assert(full || !strstr(reply, "error"));
        free(reply);
        raw_close_fds(&raw);
    }
    ck_assert_uint_gt(n, 64);
    ck_assert_uint_lt(n, 192);
    raw_do(&raw, "Ping", NULL);
    raw_close(&raw);
    daemon_stop(&d);
    leave_group();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(more_than_the_group_may_have_is_refused),
        SUITE_END,
    };
    return suite_main("memory_group", tests);
}
