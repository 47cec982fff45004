/* SPDX-License-Identifier: Apache-2.0 */
/* Checks placement.c: committing where the kernel refuses a step, and what the data got. The
 * kernel's files have the texts of the test, so that the settings of the machine do not matter;
 * plain memfds stand in for objects of the pool. */
#include "unit/unit.h"

#include <sys/mman.h>

#include "daemon/memory/placement.h"
#include "unit/faults.h"

#define SETTING "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define ALLOWED "always within_size [advise] never deny force\n"
#define REFUSED "always within_size advise [never] deny force\n"
#define SMAPS   "/proc/self/smaps"
#define HUGE    PLACEMENT_HUGE_BYTES
#define MIB     ((uint64_t)1 << 20)

static int object(uint64_t bytes)
{
    int fd = memfd_create("shmview-unit", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

static uint64_t committed(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/* Returns the bytes of address space that this process has. */
static uint64_t address_space(void)
{
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    close(fd);
    return strtoull(text, NULL, 10);
}

/* --- Populating ---------------------------------------------------------- */

static bool plain;

static void note_plain(void)
{
    plain = true;
}

/* A signal, and a kernel that is short of something for a moment, are no reason to give up. */
START_TEST(populating_is_repeated)
{
    const int errors[] = {EINTR, EAGAIN};
    for (size_t i = 0; i < 2; i++) {
        struct placement p = {.numa = SHMVIEW_NUMA_LOCAL};
        int fd = object(MIB);
        faults_hook("posix_fallocate", note_plain);
        faults_begin_call("madvise", 1, errors[i], false);
        ck_assert_int_eq(placement_commit(&p, fd, true, 0, MIB), 0);
        ck_assert(faults_end());
        ck_assert(!plain);
        ck_assert_uint_ge(committed(fd), MIB);
        close(fd);
    }
}
END_TEST

static int commit_unsupported(struct placement *p, uint64_t bytes, unsigned n)
{
    int fd = object(bytes);
    plain = false;
    faults_hook("posix_fallocate", note_plain);
    faults_begin_call("madvise", n, EINVAL, true);
    int r = placement_commit(p, fd, true, 0, bytes);
    ck_assert(faults_end());
    ck_assert(plain);
    ck_assert_uint_ge(committed(fd), bytes);
    close(fd);
    return r;
}

/* A kernel before 5.14 commits by posix_fallocate(), and cannot give transparent huge pages. */
START_TEST(kernel_that_cannot_populate)
{
    struct placement wanted = {.huge = SHMVIEW_HUGE_WANTED};
    ck_assert_int_eq(commit_unsupported(&wanted, 3 * MIB, 2), 0);
    ck_assert_uint_eq(wanted.missing, SHMVIEW_HUGE_UNSUPPORTED);
    ck_assert_uint_eq(wanted.huge_bytes, 0);
    ck_assert_uint_eq(wanted.by, 0);
    struct placement required = {.huge = SHMVIEW_HUGE_REQUIRED};
    ck_assert_int_eq(commit_unsupported(&required, 3 * MIB, 2), -EOPNOTSUPP);
    ck_assert_uint_eq(required.missing, SHMVIEW_HUGE_UNSUPPORTED);
    struct placement numa = {.numa = SHMVIEW_NUMA_INTERLEAVED};
    ck_assert_int_eq(commit_unsupported(&numa, 3 * MIB, 1), 0);
    ck_assert_uint_eq(numa.missing, 0);
    struct placement pool = {.huge = SHMVIEW_HUGE_REQUIRED, .by = SHMVIEW_HUGE_BY_HUGETLB};
    ck_assert_int_eq(commit_unsupported(&pool, 2 * HUGE, 1), 0);
    ck_assert_uint_eq(pool.missing, 0);
    ck_assert_uint_eq(pool.huge_bytes, 2 * HUGE);
}
END_TEST

static const char *failing;
static int failing_error;

/* Lets the call that is about to be made fail once. */
static void fail_now(void)
{
    faults_begin_call(failing, 1, failing_error, false);
}

/* Populating has failed for another reason: committing without a mapping decides. */
START_TEST(populating_fails)
{
    const int errors[] = {ENOMEM, EFAULT, EHWPOISON};
    for (size_t i = 0; i < 3; i++) {
        struct placement p = {.numa = SHMVIEW_NUMA_LOCAL};
        int fd = object(MIB);
        faults_begin_call("madvise", 1, errors[i], true);
        ck_assert_int_eq(placement_commit(&p, fd, true, 0, MIB), 0);
        ck_assert(faults_end());
        ck_assert_uint_ge(committed(fd), MIB);
        close(fd);
    }
}
END_TEST

START_TEST(there_is_no_space)
{
    struct placement p = {.huge = SHMVIEW_HUGE_WANTED, .numa = SHMVIEW_NUMA_LOCAL};
    int fd = object(3 * MIB);
    uint64_t before = address_space();
    failing = "posix_fallocate";
    failing_error = ENOSPC;
    faults_hook("posix_fallocate", fail_now);
    faults_begin_call("madvise", 2, EFAULT, true);
    ck_assert_int_eq(placement_commit(&p, fd, true, 0, 3 * MIB), -ENOSPC);
    ck_assert(faults_end());
    ck_assert_uint_eq(p.huge_bytes, 0);
    ck_assert_uint_eq(p.nodes, 0);
    ck_assert_uint_eq(p.by, 0);
    ck_assert_uint_eq(address_space(), before);
    close(fd);
}
END_TEST

START_TEST(plain_commit_is_interrupted)
{
    struct placement p = {.numa = SHMVIEW_NUMA_LOCAL};
    int fd = object(MIB);
    failing = "posix_fallocate";
    failing_error = EINTR;
    faults_hook("posix_fallocate", fail_now);
    faults_begin_call("madvise", 1, EFAULT, true);
    ck_assert_int_eq(placement_commit(&p, fd, true, 0, MIB), 0);
    ck_assert(faults_end());
    ck_assert_uint_ge(committed(fd), MIB);
    close(fd);
}
END_TEST

/* Each part begins at the byte that the caller has named, and leaves the bytes before it. */
START_TEST(in_steps)
{
    struct placement p = {.numa = SHMVIEW_NUMA_LOCAL};
    int fd = object(3 * HUGE);
    ck_assert_int_eq(placement_commit(&p, fd, true, HUGE, HUGE), 0);
    ck_assert_uint_eq(committed(fd), HUGE);
    ck_assert_int_eq(lseek(fd, 0, SEEK_DATA), (off_t)HUGE);
    ck_assert_int_eq(lseek(fd, (off_t)HUGE, SEEK_HOLE), (off_t)(2 * HUGE));
    close(fd);
}
END_TEST

/* --- Several threads ----------------------------------------------------- */

static void commit_large(void)
{
    struct placement p = {.numa = SHMVIEW_NUMA_LOCAL};
    int fd = object(4 * HUGE + 4096);
    ck_assert_int_eq(placement_commit(&p, fd, true, 0, 4 * HUGE + 4096), 0);
    ck_assert_uint_ge(committed(fd), 4 * HUGE + 4096);
    close(fd);
}

/* A part whose thread cannot start is populated by the caller. */
START_TEST(threads_that_cannot_start)
{
    bool several = sysconf(_SC_NPROCESSORS_ONLN) > 1;
    faults_hook("posix_fallocate", note_plain);
    for (unsigned n = 1; n <= 3; n++) {
        faults_begin_call("pthread_create", n, EAGAIN, true);
        commit_large();
        ck_assert(!faults_end() || several);
        if (n == 1)
            ck_assert_int_eq(several, strcmp(faults_name(), "pthread_create") == 0);
    }
    ck_assert(!plain);
}
END_TEST

/* The error of any part makes the commit a plain one. */
START_TEST(one_part_fails)
{
    for (unsigned n = 1; n <= 2; n++) {
        plain = false;
        faults_hook("posix_fallocate", note_plain);
        faults_begin_call("madvise", n, EHWPOISON, false);
        commit_large();
        ck_assert_int_eq(faults_end(), plain);
        ck_assert(plain || n > 1); /* one processor has one part */
    }
}
END_TEST

static bool threads, nested;

static void note_thread(void)
{
    threads = true;
}

static void commit_beside(void)
{
    nested = true;
    faults_hook("pthread_create", note_thread);
    commit_large();
}

/* While another creation populates, the next one takes no further threads. */
START_TEST(another_creation_populates)
{
    struct placement p = {.numa = SHMVIEW_NUMA_LOCAL};
    int fd = object(HUGE);
    faults_hook("madvise", commit_beside);
    ck_assert_int_eq(placement_commit(&p, fd, true, 0, HUGE), 0);
    ck_assert(nested);
    ck_assert(!threads);
    commit_large(); /* afterwards there are threads again */
    ck_assert_int_eq(threads, sysconf(_SC_NPROCESSORS_ONLN) > 1);
    close(fd);
}
END_TEST

/* --- Mapping ------------------------------------------------------------- */

/* A mapping that the kernel refuses leaves nothing, neither in the process nor in the placement. */
START_TEST(mapping_is_refused)
{
    const struct {
        int error, expected;
        uint8_t by;
    } cases[] = {{ENOMEM, -ENOMEM, 0},
                 {ENODEV, -ENODEV, 0},
                 {ENOMEM, -ENOSPC, SHMVIEW_HUGE_BY_HUGETLB}, /* the pool is too small */
                 {EIO, -EIO, SHMVIEW_HUGE_BY_HUGETLB}};
    int fd = object(2 * HUGE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (unsigned n = 1; n <= 2; n++) {
            struct placement p = {.huge = SHMVIEW_HUGE_REQUIRED, .by = cases[i].by};
            uint64_t before = address_space();
            faults_begin_call("mmap", n, cases[i].error, false);
            ck_assert_int_eq(placement_commit(&p, fd, true, 0, 3 * MIB), cases[i].expected);
            ck_assert(faults_end());
            ck_assert_uint_eq(address_space(), before);
            ck_assert_uint_eq(committed(fd), 0);
            ck_assert_uint_eq(p.huge_bytes, 0);
            ck_assert_uint_eq(p.missing, 0);
            ck_assert_uint_eq(p.by, cases[i].by);
        }
    close(fd);
}
END_TEST

/* --- What it got --------------------------------------------------------- */

static uint64_t kernel_gives; /* bytes of huge pages */

/* Writes an smaps in which the mapping of the object has that many bytes of huge pages. */
static void write_smaps(void)
{
    static char text[400];
    char line[400];
    FILE *f = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) && !strstr(line, "/memfd:shmview-unit"))
        continue;
    fclose(f);
    unit_assert_holds(line, "/memfd:shmview-unit");
    snprintf(text, sizeof text, "%.200sShmemPmdMapped: %llu kB\n", line,
             (unsigned long long)kernel_gives >> 10);
    faults_file(SMAPS, text);
}

/* Commits, where the kernel gives so many bytes of huge pages. */
static int commit_given(struct placement *p, bool sealed, uint64_t from, uint64_t bytes,
                        uint64_t given)
{
    int fd = object(from + bytes);
    kernel_gives = given;
    faults_hook("fopen", write_smaps);
    int r = placement_commit(p, fd, sealed, from, bytes);
    close(fd);
    return r;
}

START_TEST(all_huge_pages)
{
    struct placement p = {.huge = SHMVIEW_HUGE_REQUIRED};
    faults_file(SETTING, ALLOWED);
    ck_assert_int_eq(commit_given(&p, true, 0, 2 * HUGE, 2 * HUGE), 0);
    ck_assert_uint_eq(p.by, SHMVIEW_HUGE_BY_THP);
    ck_assert_uint_eq(p.huge_bytes, 2 * HUGE);
    ck_assert_uint_eq(p.missing, 0);
    /* the next step counts, too, and has a rest that is no whole huge page */
    ck_assert_int_eq(commit_given(&p, true, 2 * HUGE, HUGE + MIB, HUGE), 0);
    ck_assert_uint_eq(p.huge_bytes, 3 * HUGE);
    ck_assert_int_eq(commit_given(&p, true, 3 * HUGE, MIB, 0), 0);
    ck_assert_uint_eq(p.huge_bytes, 3 * HUGE);
    ck_assert_uint_eq(p.missing, 0);
}
END_TEST

START_TEST(too_few_huge_pages)
{
    const struct {
        const char *setting;
        unsigned missing;
    } cases[] = {{ALLOWED, SHMVIEW_HUGE_SHORT}, {REFUSED, SHMVIEW_HUGE_DISABLED}};
    for (size_t i = 0; i < 2; i++) {
        struct placement p = {.huge = SHMVIEW_HUGE_WANTED};
        faults_file(SETTING, cases[i].setting);
        ck_assert_int_eq(commit_given(&p, true, 0, 2 * HUGE, HUGE), 0);
        ck_assert_uint_eq(p.huge_bytes, HUGE);
        ck_assert_uint_eq(p.by, SHMVIEW_HUGE_BY_THP);
        ck_assert_uint_eq(p.missing, cases[i].missing);
        p = (struct placement){.huge = SHMVIEW_HUGE_REQUIRED};
        ck_assert_int_eq(commit_given(&p, true, 0, 2 * HUGE, 0), -EOPNOTSUPP);
        ck_assert_uint_eq(p.by, 0);
        ck_assert_uint_eq(p.missing, cases[i].missing);
    }
}
END_TEST

/* The first reason stays, because it is of the first page that was missing. */
START_TEST(first_reason)
{
    struct placement p = {.huge = SHMVIEW_HUGE_WANTED};
    faults_file(SETTING, ALLOWED);
    ck_assert_int_eq(commit_given(&p, true, 0, HUGE, 0), 0);
    ck_assert_uint_eq(p.missing, SHMVIEW_HUGE_SHORT);
    faults_file(SETTING, REFUSED);
    ck_assert_int_eq(commit_given(&p, true, HUGE, HUGE, 0), 0);
    ck_assert_uint_eq(p.missing, SHMVIEW_HUGE_SHORT);
    ck_assert_int_eq(commit_given(&p, true, 2 * HUGE, HUGE, HUGE), 0);
    ck_assert_uint_eq(p.missing, SHMVIEW_HUGE_SHORT);
    ck_assert_uint_eq(p.huge_bytes, HUGE);
}
END_TEST

START_TEST(smaller_than_a_huge_page)
{
    struct placement p = {.huge = SHMVIEW_HUGE_WANTED};
    faults_file(SETTING, ALLOWED);
    ck_assert_int_eq(commit_given(&p, true, 0, MIB, 0), 0);
    ck_assert_uint_eq(p.missing, SHMVIEW_HUGE_SMALL);
    p = (struct placement){.huge = SHMVIEW_HUGE_REQUIRED};
    ck_assert_int_eq(commit_given(&p, true, 0, MIB, 0), -EOPNOTSUPP);
    ck_assert_uint_eq(p.missing, SHMVIEW_HUGE_SMALL);
}
END_TEST

/* An object of the pool has whole huge pages, but the bytes after the data do not count. */
START_TEST(pages_of_the_pool)
{
    struct placement p = {
        .huge = SHMVIEW_HUGE_REQUIRED, .by = SHMVIEW_HUGE_BY_HUGETLB, .numa = SHMVIEW_NUMA_LOCAL};
    int fd = object(2 * HUGE);
    ck_assert_int_eq(placement_commit(&p, fd, true, 0, 3 * MIB), 0);
    ck_assert_uint_eq(p.by, SHMVIEW_HUGE_BY_HUGETLB);
    ck_assert_uint_eq(p.huge_bytes, 3 * MIB);
    ck_assert_uint_eq(p.missing, 0);
    ck_assert_uint_ge(committed(fd), 2 * HUGE);
    close(fd);
    fd = object(HUGE);
    p.huge_bytes = 0;
    ck_assert_int_eq(placement_commit(&p, fd, true, 0, MIB), 0);
    ck_assert_uint_eq(p.huge_bytes, MIB);
    ck_assert_uint_eq(p.missing, 0);
    close(fd);
}
END_TEST

UNIT_MAIN("placement_commit", UNIT_TEST(populating_is_repeated),
          UNIT_TEST(kernel_that_cannot_populate), UNIT_TEST(populating_fails),
          UNIT_TEST(there_is_no_space), UNIT_TEST(plain_commit_is_interrupted), UNIT_TEST(in_steps),
          UNIT_TEST(threads_that_cannot_start), UNIT_TEST(one_part_fails),
          UNIT_TEST(another_creation_populates), UNIT_TEST(mapping_is_refused),
          UNIT_TEST(all_huge_pages), UNIT_TEST(too_few_huge_pages), UNIT_TEST(first_reason),
          UNIT_TEST(smaller_than_a_huge_page), UNIT_TEST(pages_of_the_pool))
