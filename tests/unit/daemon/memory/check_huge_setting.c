/* SPDX-License-Identifier: Apache-2.0 */
/* Checks huge_setting.c against texts in place of the kernel's files: the pool of huge pages, the
 * settings of memfds and mounts, and the huge pages of a mapping. */
#include "unit/unit.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "daemon/memory/huge_setting.h"
#include "unit/faults.h"

#define POOL    "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define SETTING "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define MOUNTS  "/proc/self/mountinfo"
#define SMAPS   "/proc/self/smaps"
#define HUGE    ((uint64_t)2 << 20)

/* --- The pool ------------------------------------------------------------ */

/* Returns how many pages huge_pool_free() finds. */
static uint64_t free_pages(const char *n_free, const char *reserved, const char *overcommit,
                           const char *surplus)
{
    faults_file(POOL "free_hugepages", n_free);
    faults_file(POOL "resv_hugepages", reserved);
    faults_file(POOL "nr_overcommit_hugepages", overcommit);
    faults_file(POOL "surplus_hugepages", surplus);
    uint64_t bytes = huge_pool_free();
    ck_assert_uint_eq(bytes % HUGE, 0);
    return bytes / HUGE;
}

START_TEST(pool_without_what_is_reserved)
{
    ck_assert_uint_eq(free_pages("0\n", "0\n", "0\n", "0\n"), 0);
    ck_assert_uint_eq(free_pages("7\n", "0\n", "0\n", "0\n"), 7);
    ck_assert_uint_eq(free_pages("7\n", "2\n", "0\n", "0\n"), 5);
    ck_assert_uint_eq(free_pages("7\n", "7\n", "0\n", "0\n"), 0);
    /* the files are read one after another, so a page may have been taken in between */
    ck_assert_uint_eq(free_pages("7\n", "8\n", "0\n", "0\n"), 0);
    ck_assert_uint_eq(free_pages("3000000\n", "0\n", "0\n", "0\n"), 3000000); /* beyond 4 GiB */
}
END_TEST

START_TEST(pool_with_what_the_kernel_may_add)
{
    ck_assert_uint_eq(free_pages("0\n", "0\n", "5\n", "0\n"), 5);
    ck_assert_uint_eq(free_pages("0\n", "0\n", "5\n", "2\n"), 3);
    ck_assert_uint_eq(free_pages("4\n", "1\n", "5\n", "2\n"), 6);
    /* an administrator has lowered the limit below the pages that were added */
    ck_assert_uint_eq(free_pages("4\n", "0\n", "1\n", "3\n"), 4);
    ck_assert_uint_eq(free_pages("4\n", "6\n", "5\n", "2\n"), 3);
}
END_TEST

/* Nothing is free that the kernel does not report: other architectures have no such files. */
START_TEST(pool_that_cannot_be_read)
{
    ck_assert_uint_eq(free_pages(NULL, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(free_pages("", "", "", ""), 0);
    ck_assert_uint_eq(free_pages("many\n", "0\n", "few\n", "0\n"), 0);
    ck_assert_uint_eq(free_pages("6\n", NULL, "", "x"), 6);
    faults_begin_call("fopen", 1, EMFILE, true);
    ck_assert_uint_eq(free_pages("6\n", "0\n", "6\n", "0\n"), 0);
    ck_assert(faults_end());
}
END_TEST

/* --- Transparent huge pages ---------------------------------------------- */

static bool memfd_allowed(const char *setting)
{
    faults_file(SETTING, setting);
    return huge_is_allowed(-1, true);
}

START_TEST(setting_of_memfds)
{
    ck_assert(memfd_allowed("[always] within_size advise never deny force\n"));
    ck_assert(memfd_allowed("always [within_size] advise never deny force\n"));
    ck_assert(memfd_allowed("always within_size [advise] never deny force\n"));
    ck_assert(memfd_allowed("always within_size advise never deny [force]\n"));
    ck_assert(!memfd_allowed("always within_size advise [never] deny force\n"));
    ck_assert(!memfd_allowed("always within_size advise never [deny] force\n"));
}
END_TEST

/* A kernel without transparent huge pages has no such file. */
START_TEST(setting_that_cannot_be_read)
{
    ck_assert(!memfd_allowed(NULL));
    ck_assert(!memfd_allowed(""));
    ck_assert(!memfd_allowed("always within_size advise never deny force\n"));
    ck_assert(!memfd_allowed("[]\n"));
}
END_TEST

static const char *const ordinary = "always within_size advise [never] deny force\n";

/* Returns the result for a file whose mount has this line, with # for the number of its device.
 * Other mounts are before and after it. */
static bool file_allowed(const char *line)
{
    static char text[2000];
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/file", unit_directory());
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600), before = (int)strcspn(line, "#");
    ck_assert_int_ge(fd, 0);
    unlink(path);
    ck_assert_int_eq(fstat(fd, &st), 0);
    snprintf(text, sizeof text,
             "22 1 254:77 / / rw,relatime - ext4 /dev/root rw\n"
             "23 22 999:777 / /huge rw shared:7 - tmpfs tmpfs rw,huge=always\n"
             "%.*s%u:%u%s\n"
             "31 22 999:778 / /other rw - tmpfs tmpfs rw,huge=within_size\n",
             before, line, major(st.st_dev), minor(st.st_dev), line + before + 1);
    faults_file(MOUNTS, text);
    bool allowed = huge_is_allowed(fd, false);
    close(fd);
    return allowed;
}

START_TEST(option_of_a_mount)
{
    faults_file(SETTING, ordinary);
    ck_assert(file_allowed("30 22 # / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=1k,huge=always"));
    ck_assert(file_allowed("30 22 # / /dev/shm rw shared:2 - tmpfs tmpfs rw,huge=within_size"));
    ck_assert(file_allowed("30 22 # / /dev/shm rw - tmpfs tmpfs rw,huge=advise,inode64"));
    ck_assert(!file_allowed("30 22 # / /dev/shm rw - tmpfs tmpfs rw,huge=never,inode64"));
    ck_assert(!file_allowed("30 22 # / /dev/shm rw - tmpfs tmpfs rw,size=1k"));
}
END_TEST

/* Other mounts with huge pages are of no use to the file. */
START_TEST(option_of_other_mounts)
{
    faults_file(SETTING, ordinary);
    ck_assert(!file_allowed("30 22 1# / /dev/shm rw - tmpfs tmpfs rw,huge=always"));
    ck_assert(!file_allowed("30 22 #1 / /dev/shm rw - tmpfs tmpfs rw,huge=always"));
    ck_assert(!file_allowed("30 22 # / /huge=always rw - tmpfs tmpfs rw"));
    ck_assert(!file_allowed("30 22 # / /dev/shm rw,huge=always"));
}
END_TEST

START_TEST(mounts_that_cannot_be_read)
{
    faults_file(SETTING, ordinary);
    faults_file(MOUNTS, "30 22 0:1 / /dev/shm rw - tmpfs tmpfs rw,huge=always\n");
    ck_assert(!huge_is_allowed(-1, false));
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    faults_file(MOUNTS, NULL);
    ck_assert(!huge_is_allowed(fd, false));
    faults_file(MOUNTS, "");
    ck_assert(!huge_is_allowed(fd, false));
    close(fd);
}
END_TEST

/* These two settings override the options of all mounts. */
START_TEST(setting_of_all_mounts)
{
    const char *always = "30 22 # / /dev/shm rw - tmpfs tmpfs rw,huge=always";
    const char *none = "30 22 # / /dev/shm rw - tmpfs tmpfs rw";
    faults_file(SETTING, "always within_size advise never [deny] force\n");
    ck_assert(!file_allowed(always));
    faults_file(SETTING, "always within_size advise never deny [force]\n");
    ck_assert(file_allowed(none));
    faults_file(SETTING, "[always] within_size advise never deny force\n");
    ck_assert(!file_allowed(none));
    faults_file(SETTING, NULL);
    ck_assert(file_allowed(always));
}
END_TEST

/* --- Mappings ------------------------------------------------------------ */

/* A mapping may have become several in the kernel, because a part of it was advised. */
START_TEST(huge_pages_of_a_mapping)
{
    faults_file(SMAPS, "7f0000000000-7f0000200000 rw-s 00000000 00:01 5 /memfd:before\n"
                       "Rss:                2048 kB\n"
                       "ShmemPmdMapped:     2048 kB\n"
                       "7f0000200000-7f0000600000 rw-s 00000000 00:01 6 /memfd:data\n"
                       "ShmemPmdMapped:     4096 kB\n"
                       "FilePmdMapped:         0 kB\n"
                       "7f0000600000-7f0000900000 rw-s 00400000 00:01 6 /memfd:data\n"
                       "ShmemPmdMapped:        0 kB\n"
                       "FilePmdMapped:      2048 kB\n"
                       "7f0000900000-7f0000a00000 rw-s 00000000 00:01 7 /memfd:after\n"
                       "ShmemPmdMapped:     1024 kB\n"
                       "VmFlags: rd wr sh\n");
    char *at = (char *)(uintptr_t)0x7f0000200000;
    ck_assert_uint_eq(huge_mapped(at, 7 << 20), 3 * HUGE);
    ck_assert_uint_eq(huge_mapped(at, 4 << 20), 2 * HUGE);
    ck_assert_uint_eq(huge_mapped(at - HUGE, 2 << 20), HUGE);
    ck_assert_uint_eq(huge_mapped(at, 3 << 20), 0); /* a mapping that extends beyond the range */
    ck_assert_uint_eq(huge_mapped(at + (8 << 20), 4096), 0);
}
END_TEST

START_TEST(mappings_that_cannot_be_read)
{
    const char *at = (char *)(uintptr_t)0x7f0000200000;
    faults_file(SMAPS, NULL);
    ck_assert_uint_eq(huge_mapped(at, HUGE), 0);
    faults_file(SMAPS, "");
    ck_assert_uint_eq(huge_mapped(at, HUGE), 0);
    faults_file(SMAPS, "7f0000200000-7f0000400000 rw-s 00000000 00:01 5 /memfd:data\n"
                       "ShmemPmdMapped: none\n");
    ck_assert_uint_eq(huge_mapped(at, HUGE), 0);
}
END_TEST

/* The kernel's own file: this mapping has base pages only. */
START_TEST(base_pages)
{
    const size_t bytes = 4096;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    at[0] = 1;
    ck_assert_uint_eq(huge_mapped(at, bytes), 0);
    munmap(at, bytes);
}
END_TEST

UNIT_MAIN("huge_setting", UNIT_TEST(pool_without_what_is_reserved),
          UNIT_TEST(pool_with_what_the_kernel_may_add), UNIT_TEST(pool_that_cannot_be_read),
          UNIT_TEST(setting_of_memfds), UNIT_TEST(setting_that_cannot_be_read),
          UNIT_TEST(option_of_a_mount), UNIT_TEST(option_of_other_mounts),
          UNIT_TEST(mounts_that_cannot_be_read), UNIT_TEST(setting_of_all_mounts),
          UNIT_TEST(huge_pages_of_a_mapping), UNIT_TEST(mappings_that_cannot_be_read),
          UNIT_TEST(base_pages))
