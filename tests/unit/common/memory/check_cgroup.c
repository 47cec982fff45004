/* SPDX-License-Identifier: Apache-2.0 */
/* Checks cgroup.c of the daemon on machines that are directories of files. */
#include "common/memory/cgroup.h"

#include <limits.h>

#include "unit/unit.h"

#define MIB 1048576ull

static char root[64];

static void put(const char *path, const char *text)
{
    char where[PATH_MAX];
    snprintf(where, sizeof where, "%s%s", root, path);
    for (char *at = where + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        ck_assert(mkdir(where, 0755) == 0 || errno == EEXIST);
    }
    FILE *f = fopen(where, "we");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void put_mib(const char *path, unsigned mib)
{
    char text[32];
    snprintf(text, sizeof text, "%llu\n", mib * MIB);
    put(path, text);
}

static void begin(const char *mounts, const char *groups)
{
    snprintf(root, sizeof root, "/tmp/shmview-cgroup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    put("/proc/self/mountinfo", mounts);
    put("/proc/self/cgroup", groups);
    cgroup_init(root);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

static void expect(unsigned swap_mib, uint64_t free, uint64_t limit)
{
    struct cgroup_space space = cgroup_space(swap_mib * MIB);
    ck_assert_uint_eq(space.free, free);
    ck_assert_uint_eq(space.limit, limit);
}

/* Returns the bytes left in a group that uses so many MiB of its limit. */
static uint64_t left(unsigned mib, unsigned limit_mib)
{
    return mib * MIB - limit_mib * MIB / 32;
}

#define V2_MOUNT                                                                                   \
    "24 1 8:1 / / rw shared:1 - ext4 /dev/sda rw\n"                                                \
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

START_TEST(no_group_has_a_limit)
{
    expect(0, UINT64_MAX, UINT64_MAX);
    begin(V2_MOUNT, "0::/a/b\n");
    expect(0, UINT64_MAX, UINT64_MAX);
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.high", "max\n");
    expect(7, UINT64_MAX, UINT64_MAX);
    end();
    cgroup_init(root); /* no file exists */
    expect(0, UINT64_MAX, UINT64_MAX);
}
END_TEST

START_TEST(the_least_of_all_groups_counts)
{
    begin(V2_MOUNT, "0::/a/b\n");
    put_mib("/sys/fs/cgroup/a/b/memory.max", 512);
    put_mib("/sys/fs/cgroup/a/b/memory.current", 12);
    expect(0, left(500, 512), 512 * MIB);
    put_mib("/sys/fs/cgroup/a/memory.max", 640);
    put_mib("/sys/fs/cgroup/a/memory.current", 600);
    expect(0, left(40, 640), 640 * MIB);
    put_mib("/sys/fs/cgroup/memory.max", 64);
    put_mib("/sys/fs/cgroup/memory.current", 54);
    expect(0, left(10, 64), 64 * MIB);
    put_mib("/sys/fs/cgroup/memory.current", 70);
    expect(0, 0, 64 * MIB);
    end();
}
END_TEST

START_TEST(high_counts_as_max_does)
{
    begin(V2_MOUNT, "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    put_mib("/sys/fs/cgroup/a/memory.high", 128);
    put_mib("/sys/fs/cgroup/a/memory.current", 28);
    expect(0, left(100, 128), 128 * MIB);
    end();
}
END_TEST

START_TEST(files_in_memory_can_be_dropped)
{
    char text[128];
    begin(V2_MOUNT, "0::/a\n");
    put_mib("/sys/fs/cgroup/a/memory.max", 128);
    put_mib("/sys/fs/cgroup/a/memory.current", 128);
    snprintf(text, sizeof text, "anon 5\nactive_file %llu\ninactive_file %llu\nx\n", 20 * MIB,
             30 * MIB);
    put("/sys/fs/cgroup/a/memory.stat", text);
    expect(0, left(40, 128), 128 * MIB);
    end();
}
END_TEST

START_TEST(swap_counts_as_far_as_there_is_some)
{
    begin(V2_MOUNT, "0::/a\n");
    put_mib("/sys/fs/cgroup/a/memory.max", 128);
    put_mib("/sys/fs/cgroup/a/memory.current", 100);
    expect(1000, left(28, 128), 128 * MIB); /* the kernel has no swap limit for groups */
    put_mib("/sys/fs/cgroup/a/memory.swap.max", 50);
    put_mib("/sys/fs/cgroup/a/memory.swap.current", 10);
    expect(1000, left(68, 128), 128 * MIB);
    expect(30, left(58, 128), 128 * MIB);
    put("/sys/fs/cgroup/a/memory.swap.max", "max\n");
    expect(30, left(58, 128), 128 * MIB);
    end();
}
END_TEST

/* A group is mounted, as in a container, while the process sees the path of the host. */
START_TEST(a_group_that_is_mounted)
{
    begin("30 24 0:26 /box/1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/box/1/a\n");
    put_mib("/sys/fs/cgroup/memory.max", 64);
    put_mib("/sys/fs/cgroup/a/memory.max", 32);
    expect(0, left(32, 32), 32 * MIB);
    put("/proc/self/cgroup", "0::/box/12\n"); /* another one */
    expect(0, left(64, 64), 64 * MIB);
    put("/proc/self/cgroup", "0::/../2\n");
    expect(0, left(64, 64), 64 * MIB);
    end();
}
END_TEST

START_TEST(version_1)
{
    char text[128];
    begin("33 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
          "34 31 0:32 / /sys/fs/c\\040m rw - cgroup cgroup rw,memory\n"
          "40 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
          "9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n");
    put("/sys/fs/c m/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/c m/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    expect(0, UINT64_MAX, UINT64_MAX);
    put_mib("/sys/fs/c m/a/memory.limit_in_bytes", 64);
    put_mib("/sys/fs/c m/a/memory.usage_in_bytes", 44);
    snprintf(text, sizeof text, "inactive_file 1\ntotal_inactive_file %llu\n", 2 * MIB);
    put("/sys/fs/c m/a/memory.stat", text);
    expect(0, left(22, 64), 64 * MIB);
    expect(100, left(122, 64), 64 * MIB);
    put_mib("/sys/fs/c m/a/memory.memsw.limit_in_bytes", 80);
    put_mib("/sys/fs/c m/a/memory.memsw.usage_in_bytes", 46);
    expect(100, left(36, 64), 64 * MIB);
    end();
}
END_TEST

START_TEST(rubbish_limits_nothing)
{
    begin("\n1 2 3\n30 24 0:26 / - cgroup2\n30 24 0:26 / - cgroup2 a b\n" V2_MOUNT,
          "\n0\n0:\nx::/a\n0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "");
    expect(0, UINT64_MAX, UINT64_MAX);
    put("/sys/fs/cgroup/a/memory.max", "0\n");
    expect(0, 0, 0);
    end();
}
END_TEST

UNIT_MAIN("cgroup", UNIT_TEST(no_group_has_a_limit), UNIT_TEST(the_least_of_all_groups_counts),
          UNIT_TEST(high_counts_as_max_does), UNIT_TEST(files_in_memory_can_be_dropped),
          UNIT_TEST(swap_counts_as_far_as_there_is_some), UNIT_TEST(a_group_that_is_mounted),
          UNIT_TEST(version_1), UNIT_TEST(rubbish_limits_nothing))
