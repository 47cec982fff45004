/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: what a segment gets of huge pages and nodes is reported, a wish that cannot be met
 * falls back, and a requirement is refused with the reason. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/describe.h>
#include <shmview/many.h>
#include <shmview/placement.h>
#include <shmview/stats.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

#define PAGE 4096
#define HUGE ((uint64_t)2 << 20)

static struct daemon d;
static struct shmview_connection *conn;

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* Mounts a /dev/shm for this test alone. Returns whether that is possible. */
static bool mount_shm(const char *options)
{
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", "/dev/shm", "tmpfs", 0, options) == 0)
        return true;
    puts("skipped: only root can mount a tmpfs, and the kernel needs huge pages for its option");
    return false;
}

static int create(const char *name, uint64_t size, uint32_t backing,
                  const struct shmview_placement *wanted, struct shmview_segment **ret)
{
    const struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .lifetime = SHMVIEW_MANUAL,
        .backing = backing,
        .placement = wanted,
    };
    return shmview_create(conn, name, size, &options, ret);
}

static int create_huge(const char *name, uint64_t size, uint32_t backing, uint32_t huge,
                       struct shmview_segment **ret)
{
    const struct shmview_placement wanted = {.struct_bytes = sizeof wanted, .huge = huge};
    return create(name, size, backing, &wanted, ret);
}

static void drop(struct shmview_segment *s)
{
    char name[64];
    snprintf(name, sizeof name, "%s", shmview_name(s));
    OK(shmview_detach(s));
    OK(shmview_remove(conn, name));
}

/* Asserts that handle, description and figures report the same. */
static struct shmview_placed placed(struct shmview_segment *s)
{
    struct shmview_placed p;
    const struct shmview_description *told;
    const struct shmview_stats *stats;
    shmview_placement_get(s, &p);
    OK(shmview_describe(conn, shmview_name(s), &told));
    ck_assert_uint_eq(told->huge, p.huge);
    ck_assert_uint_eq(told->huge_by, p.huge_by);
    ck_assert_uint_eq(told->huge_missing, p.huge_missing);
    ck_assert_uint_eq(told->numa, p.numa);
    ck_assert_int_eq(told->huge_bytes, p.huge ? (int64_t)p.huge_bytes : -1);
    ck_assert_int_eq(told->nodes, p.numa ? (int64_t)p.nodes : -1);
    const char *name = shmview_name(s);
    const struct shmview_stats_options one = {
        .struct_bytes = sizeof one, .names = &name, .n_names = 1};
    OK(shmview_stats_get(conn, &one, &stats));
    ck_assert_uint_eq(stats->n_segments, 1);
    ck_assert_uint_eq(stats->segments[0]->huge_by, p.huge_by);
    ck_assert_uint_eq(stats->segments[0]->huge_missing, p.huge_missing);
    ck_assert_int_eq(stats->segments[0]->huge_bytes, told->huge_bytes);
    ck_assert_int_eq(stats->segments[0]->nodes, told->nodes);
    shmview_stats_free(stats);
    shmview_description_free(told);
    return p;
}

/* How many bytes at this address are mapped by huge pages here. */
static uint64_t mapped_huge(const void *at)
{
    char line[512], begin_of[32];
    unsigned long long kib, from, to;
    uint64_t sum = 0;
    bool within = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    ck_assert_ptr_nonnull(f);
    snprintf(begin_of, sizeof begin_of, "%lx-", (unsigned long)at);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
            within = strncmp(line, begin_of, strlen(begin_of)) == 0;
        else if (within && (sscanf(line, "ShmemPmdMapped: %llu", &kib) == 1 ||
                            sscanf(line, "FilePmdMapped: %llu", &kib) == 1 ||
                            sscanf(line, "Shared_Hugetlb: %llu", &kib) == 1 ||
                            sscanf(line, "Private_Hugetlb: %llu", &kib) == 1))
            sum += kib << 10;
    }
    fclose(f);
    return sum;
}

/* Returns the signal that ends a process which writes this byte; 0: it can. */
static int signal_of(char *byte)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        signal(SIGBUS, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)byte = 1;
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void assert_zeroed(const char *data, uint64_t bytes)
{
    ck_assert(data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0);
}

/* --- Fallbacks ------------------------------------------------------------ */

START_TEST(none_wanted)
{
    begin();
    struct shmview_segment *s = client_create(conn, "plain", 3 * HUGE);
    struct shmview_placed p = placed(s);
    const struct shmview_placed nothing = {0};
    ck_assert_mem_eq(&p, &nothing, sizeof p);
    OK(shmview_detach(s));
    end();
}
END_TEST

START_TEST(a_system_without_huge_pages)
{
    struct shmview_segment *s;
    if (!mount_shm("huge=never"))
        return;
    begin();
    OK(create_huge("wanted", 3 * HUGE, SHMVIEW_BACKING_FILE, SHMVIEW_HUGE_WANTED, &s));
    struct shmview_placed p = placed(s);
    ck_assert_uint_eq(p.huge, SHMVIEW_HUGE_WANTED);
    ck_assert_uint_eq(p.huge_by, 0);
    ck_assert_uint_eq(p.huge_missing, SHMVIEW_HUGE_DISABLED);
    ck_assert_uint_eq(p.huge_bytes, 0);
    assert_zeroed(shmview_data(s), 3 * HUGE);
    drop(s);
    for (int i = 0; i < 2; i++) /* the name is free again */
        REFUSED(create_huge("required", 3 * HUGE, SHMVIEW_BACKING_FILE, SHMVIEW_HUGE_REQUIRED, &s),
                NO_SPACE, "segment 'required' requires huge pages: the system allows none");
    AWAIT(daemon_objects(&d) == 0); /* a thread gives the memory back */
    end();
}
END_TEST

START_TEST(smaller_than_a_huge_page)
{
    struct shmview_segment *s;
    begin();
    for (uint32_t backing = SHMVIEW_BACKING_FILE; backing <= SHMVIEW_BACKING_SEALED; backing++) {
        OK(create_huge("small", HUGE - 1, backing, SHMVIEW_HUGE_WANTED, &s));
        ck_assert_uint_eq(placed(s).huge_missing, SHMVIEW_HUGE_SMALL);
        assert_zeroed(shmview_data(s), HUGE - 1);
        drop(s);
        REFUSED(create_huge("small", HUGE - 1, backing, SHMVIEW_HUGE_REQUIRED, &s), NO_SPACE,
                "smaller than a huge page");
    }
    end();
}
END_TEST

START_TEST(wrong_wishes)
{
    struct shmview_segment *s;
    static const struct shmview_placement wrong[] = {
        {.struct_bytes = 4},
        {.struct_bytes = sizeof wrong[0], .huge = 3},
        {.struct_bytes = sizeof wrong[0], .numa = 4},
        {.struct_bytes = sizeof wrong[0], .numa = SHMVIEW_NUMA_NODE, .node = 63},
        {.struct_bytes = sizeof wrong[0], .numa = SHMVIEW_NUMA_LOCAL, .node = 1},
    };
    begin();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        REFUSED(create("wrong", PAGE, 0, &wrong[i], &s), INVALID, "placement");
    end();
}
END_TEST

/* --- Huge pages ----------------------------------------------------------- */

/* Asserts that a segment of these bytes got huge pages, maps them, and ends where it ends. */
static void check_huge(struct shmview_segment *s, uint64_t size, uint32_t by)
{
    struct shmview_placed p = placed(s);
    char *data = shmview_data(s);
    uint64_t whole = size / HUGE * HUGE, last = (size + PAGE - 1) / PAGE * PAGE;
    ck_assert_uint_eq(p.huge_by, by);
    ck_assert_uint_eq(p.huge_missing, 0);
    ck_assert_uint_eq(p.huge_bytes, by == SHMVIEW_HUGE_BY_HUGETLB ? size : whole);
    ck_assert_uint_eq((uintptr_t)data % HUGE, 0);
    assert_zeroed(data, size);
    ck_assert_uint_ge(mapped_huge(data), whole);
    if (by == SHMVIEW_HUGE_BY_HUGETLB) { /* its last page is accessible as a whole */
        ck_assert_int_eq(signal_of(data + (size + HUGE - 1) / HUGE * HUGE), SIGSEGV);
    } else {
        ck_assert_int_eq(signal_of(data + last - 1), 0);
        ck_assert_int_eq(signal_of(data + last), SIGBUS);
    }
    data[size - 1] = 5;
}

/* Sizes with nothing, one page, and all but one page after the last whole huge page; a guard page
 * would complete the last one to a huge page. */
static const uint64_t sizes[] = {2 * HUGE, 2 * HUGE + 1, 3 * HUGE - PAGE};

static void check_sizes(uint32_t backing, uint32_t by)
{
    struct shmview_segment *s, *again;
    for (size_t i = 0; i < 3; i++) {
        OK(create_huge("huge", sizes[i], backing, SHMVIEW_HUGE_REQUIRED, &s));
        check_huge(s, sizes[i], by);
        again = client_attach(conn, "huge", SHMVIEW_READ);
        ck_assert_uint_eq((uintptr_t)shmview_data(again) % HUGE, 0);
        OK(shmview_populate(again, 0, sizes[i]));
        ck_assert_uint_ge(mapped_huge(shmview_data(again)), 2 * HUGE);
        ck_assert_int_eq(((char *)shmview_data(again))[sizes[i] - 1], 5);
        OK(shmview_detach(again));
        drop(s);
    }
}

/* Another daemon takes the segment over, and reports what it got. */
static void check_restart(uint32_t backing, uint32_t by)
{
    struct shmview_segment *s;
    OK(create_huge("kept", 2 * HUGE + 1, backing, SHMVIEW_HUGE_WANTED, &s));
    daemon_kill(&d);
    daemon_restart(&d);
    OK(shmview_ping(conn));
    struct shmview_segment *after = client_attach(conn, "kept", SHMVIEW_READ);
    struct shmview_placed p = placed(after);
    ck_assert_uint_eq(p.huge, SHMVIEW_HUGE_WANTED);
    ck_assert_uint_eq(p.huge_by, by);
    ck_assert_uint_eq(p.huge_bytes, by == SHMVIEW_HUGE_BY_HUGETLB ? 2 * HUGE + 1 : 2 * HUGE);
    ck_assert(!daemon_said(&d, "it is repaired"));
    OK(shmview_detach(after));
    drop(s);
}

START_TEST(of_a_mount_that_allows_advice)
{
    if (!mount_shm("huge=advise"))
        return;
    begin();
    check_sizes(SHMVIEW_BACKING_FILE, SHMVIEW_HUGE_BY_THP);
    check_restart(SHMVIEW_BACKING_FILE, SHMVIEW_HUGE_BY_THP);
    end();
}
END_TEST

START_TEST(of_a_mount_with_huge_pages_within_size)
{
    if (!mount_shm("huge=within_size"))
        return;
    begin();
    check_sizes(SHMVIEW_BACKING_FILE, SHMVIEW_HUGE_BY_THP);
    end();
}
END_TEST

/* Several steps of the daemon, each by several threads. */
START_TEST(of_many_steps)
{
    struct shmview_segment *s;
    const uint64_t size = 80 * HUGE + 5 * PAGE;
    if (!mount_shm("huge=advise"))
        return;
    begin();
    OK(create_huge("steps", size, SHMVIEW_BACKING_FILE, SHMVIEW_HUGE_REQUIRED, &s));
    ck_assert_uint_eq(placed(s).huge_bytes, 80 * HUGE);
    OK(shmview_populate(s, 0, size));
    ck_assert_uint_eq(mapped_huge(shmview_data(s)), 80 * HUGE);
    drop(s);
    end();
}
END_TEST

/* Returns the number in a file, or the setting in brackets as its first letter. */
static unsigned long read_setting(const char *path)
{
    char line[128] = "";
    unsigned long n = 0;
    FILE *f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f)) {
        const char *word = strchr(line, '[');
        n = word ? (unsigned long)word[1] : strtoul(line, NULL, 10);
    }
    if (f)
        fclose(f);
    return n;
}

START_TEST(of_the_pool)
{
    unsigned long n = read_setting("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    if (n < 8) {
        printf("skipped: vm.nr_hugepages leaves %lu free huge pages, 8 are needed\n", n);
        return;
    }
    begin();
    check_sizes(SHMVIEW_BACKING_SEALED, SHMVIEW_HUGE_BY_HUGETLB);
    check_restart(SHMVIEW_BACKING_SEALED, SHMVIEW_HUGE_BY_HUGETLB);
    shmview_trim();
    AWAIT(read_setting("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") == n);
    end();
}
END_TEST

START_TEST(of_memfds)
{
    struct shmview_segment *s;
    unsigned long setting = read_setting("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    bool allowed = setting == 'a' || setting == 'w' || setting == 'f';
    if (read_setting("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >= 2) {
        puts("skipped: the pool has huge pages, which come first");
        return;
    }
    begin();
    if (allowed) {
        check_sizes(SHMVIEW_BACKING_SEALED, SHMVIEW_HUGE_BY_THP);
        check_restart(SHMVIEW_BACKING_SEALED, SHMVIEW_HUGE_BY_THP);
    } else {
        puts("without huge pages, because shmem_enabled allows none");
        OK(create_huge("sealed", 2 * HUGE, SHMVIEW_BACKING_SEALED, SHMVIEW_HUGE_WANTED, &s));
        ck_assert_uint_eq(placed(s).huge_missing, SHMVIEW_HUGE_DISABLED);
        drop(s);
        REFUSED(create_huge("sealed", 2 * HUGE, SHMVIEW_BACKING_SEALED, SHMVIEW_HUGE_REQUIRED, &s),
                NO_SPACE, "the system allows none");
    }
    end();
}
END_TEST

START_TEST(of_declared_segments)
{
    static const char *const wrong[] = {
        "'huge': 'maybe'", "'numa': 'far'", "'numa': -1", "'numa': 63", "'huge': true",
    };
    char text[300];
    if (!mount_shm("huge=advise"))
        return;
    daemon_configure(
        "{'segments': [{'name': 'big', 'size': 4194304, 'huge': 'required', 'numa': 0},"
        "{'name': 'all', 'size': 10, 'huge': 'wanted', 'numa': 'interleaved'},"
        "{'name': 'far', 'size': 10, 'numa': 62}]}");
    daemon_start_configured(&d, daemon_config_path());
    conn = client_connect(&d);
    struct shmview_segment *s = client_attach(conn, "big", SHMVIEW_WRITE);
    check_huge(s, 2 * HUGE, SHMVIEW_HUGE_BY_THP);
    ck_assert_uint_eq(placed(s).numa, SHMVIEW_NUMA_NODE);
    OK(shmview_detach(s));
    s = client_attach(conn, "all", SHMVIEW_WRITE);
    ck_assert_uint_eq(placed(s).huge_missing, SHMVIEW_HUGE_SMALL);
    ck_assert_uint_eq(placed(s).numa, SHMVIEW_NUMA_INTERLEAVED);
    OK(shmview_detach(s));
    ck_assert(daemon_said(&d, "this machine has no memory of node 62"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "{'segments': [{'name': 'a', 'size': 10, %s}]}", wrong[i]);
        daemon_configure(text);
        daemon_reload(&d);
    }
    ck_assert(daemon_said(&d, "must be \"wanted\" or \"required\""));
    ck_assert(daemon_said(&d, "must be \"interleaved\" or the number of a node"));
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
    end();
}
END_TEST

/* --- Nodes ---------------------------------------------------------------- */

START_TEST(nodes)
{
    struct shmview_segment *s;
    struct shmview_placement wanted = {.struct_bytes = sizeof wanted, .numa = SHMVIEW_NUMA_NODE};
    uint64_t all = 0;
    char path[64];
    for (unsigned i = 0; i < 63; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", i);
        all |= access(path, F_OK) == 0 ? (uint64_t)1 << i : 0;
    }
    begin();
    OK(create("first", HUGE, 0, &wanted, &s));
    struct shmview_placed p = placed(s);
    ck_assert_uint_eq(p.numa, SHMVIEW_NUMA_NODE);
    if (p.nodes == 0) {
        puts("nodes are not measured: shmviewd is built without libnuma, or the kernel has none");
        all = 0;
    } else {
        ck_assert_uint_eq(p.nodes, 1);
    }
    drop(s);
    for (wanted.node = 1; wanted.node < 63 && all; wanted.node++) {
        if (all >> wanted.node & 1) {
            OK(create("node", HUGE, SHMVIEW_BACKING_SEALED, &wanted, &s));
            ck_assert_uint_eq(placed(s).nodes, (uint64_t)1 << wanted.node);
            drop(s);
        } else {
            REFUSED(create("node", PAGE, 0, &wanted, &s), INVALID, "of which this machine has no");
        }
    }
    wanted.node = 0;
    wanted.numa = SHMVIEW_NUMA_INTERLEAVED;
    OK(create("all", 4 * HUGE, 0, &wanted, &s));
    ck_assert_uint_eq(placed(s).nodes, all);
    assert_zeroed(shmview_data(s), 4 * HUGE);
    drop(s);
    wanted.numa = SHMVIEW_NUMA_LOCAL;
    OK(create("local", HUGE, 0, &wanted, &s));
    p = placed(s);
    ck_assert_uint_eq(p.nodes & (p.nodes - 1), 0); /* one */
    drop(s);
    printf("nodes 0x%llx\n", (unsigned long long)all);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(none_wanted),
        SUITE_TEST(a_system_without_huge_pages),
        SUITE_TEST(smaller_than_a_huge_page),
        SUITE_TEST(wrong_wishes),
        SUITE_TEST(of_a_mount_that_allows_advice),
        SUITE_TEST(of_a_mount_with_huge_pages_within_size),
        SUITE_TEST(of_many_steps),
        SUITE_TEST(of_the_pool),
        SUITE_TEST(of_memfds),
        SUITE_TEST(of_declared_segments),
        SUITE_TEST(nodes),
        SUITE_END,
    };
    return suite_main("placement", tests);
}
