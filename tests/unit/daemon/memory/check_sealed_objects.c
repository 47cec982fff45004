/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the objects of sealed.c: how they are made, limited and opened again, and that nothing is
 * left of one whose creation fails. */
#include "daemon/memory/sealed.h"

#include "unit/unit.h"

#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/base/table.h"
#include "unit/faults_memfd.h"

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define HUGE_PAGE  (UINT64_C(2) << 20)

/* Creates an object and closes the descriptor. Returns its inode. */
static ino_t create(uint64_t bytes)
{
    struct stat st;
    int fd = sealed_create(bytes, false, &st);
    ck_assert_msg(fd >= 0, "%s", strerror(-fd));
    close(fd);
    return st.st_ino;
}

static void drop(ino_t inode)
{
    ck_assert_int_eq(close(sealed_take(inode)), 0);
}

/* Returns a sealed memfd, as a client makes it. */
static int client_memfd(unsigned flags, uint64_t bytes, struct stat *ret)
{
    int fd = memfd_create("unit", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd < 0)
        return -1;
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SIZE_SEALS), 0);
    ck_assert_int_eq(sealed_mark(fd, ret), 0);
    return fd;
}

/* Asserts that the module has no such object. */
static void assert_absent(ino_t inode)
{
    struct stat st;
    struct statx stx;
    ck_assert(!sealed_has(inode));
    ck_assert_int_eq(sealed_open(inode, O_RDONLY), -ENOENT);
    ck_assert_int_eq(sealed_stat(inode, &st), -ENOENT);
    ck_assert_int_eq(sealed_statx(inode, STATX_MODE, &stx), -ENOENT);
    ck_assert_int_eq(sealed_seals(inode), -ENOENT);
    ck_assert_int_eq(sealed_take(inode), -ENOENT);
    sealed_claim(inode); /* has no effect */
}

/* Whether both descriptors have one description, and so one position. */
static bool share_a_description(int a, int b)
{
    return lseek(a, 1, SEEK_CUR) == lseek(b, 0, SEEK_CUR);
}

/* --- Creation ------------------------------------------------------------ */

START_TEST(created_as_promised)
{
    char link[64] = "", path[32];
    struct stat st, other;
    struct statx stx;
    int fd = sealed_create(5000, false, &st);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
    ck_assert_int_eq(st.st_size, 5000);
    ck_assert_int_eq(st.st_blocks, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & (SIZE_SEALS | F_SEAL_SEAL), SIZE_SEALS);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_assert_int_gt(readlink(path, link, sizeof link - 1), 0);
    ck_assert_int_eq(strncmp(link, SEALED_LINK, strlen(SEALED_LINK)), 0);
    ck_assert(sealed_has(st.st_ino));
    ck_assert_int_eq(sealed_stat(st.st_ino, &other), 0);
    ck_assert(other.st_ino == st.st_ino && other.st_dev == st.st_dev && other.st_size == 5000);
    ck_assert_int_eq(sealed_statx(st.st_ino, STATX_SIZE, &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 5000);
    ck_assert_int_eq(sealed_seals(st.st_ino), fcntl(fd, F_GET_SEALS));
    close(fd);
    drop(st.st_ino);
    assert_absent(st.st_ino);
}
END_TEST

/* With all seals nobody can add one; otherwise clients can. */
START_TEST(fully_sealed_or_not)
{
    for (int fully = 0; fully < 2; fully++) {
        struct stat st;
        int fd = sealed_create(1, fully, &st);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), fully ? -1 : 0);
        ck_assert_int_eq(!(sealed_seals(st.st_ino) & F_SEAL_WRITE), fully);
        close(fd);
        drop(st.st_ino);
    }
}
END_TEST

/* Each receiver has a description of its own, of which it can change the flags. */
START_TEST(descriptions_are_not_shared)
{
    struct stat st;
    int first = sealed_create(10, false, &st);
    int reader = sealed_open(st.st_ino, O_RDONLY), writer = sealed_open(st.st_ino, O_RDWR);
    ck_assert(first >= 0 && reader >= 0 && writer >= 0);
    ck_assert_int_eq(fcntl(reader, F_GETFL) & O_ACCMODE, O_RDONLY);
    ck_assert_int_eq(fcntl(writer, F_GETFL) & O_ACCMODE, O_RDWR);
    int own = sealed_take(st.st_ino);
    ck_assert(!share_a_description(first, reader) && !share_a_description(first, writer));
    ck_assert(!share_a_description(first, own) && !share_a_description(writer, reader));
    ck_assert_int_eq(pwrite(writer, "x", 1, 3), 1);
    char byte;
    ck_assert(pread(reader, &byte, 1, 3) == 1 && byte == 'x');
    close(first);
    close(reader);
    close(writer);
    close(own);
}
END_TEST

START_TEST(nothing_is_left_of_a_failure)
{
    static const struct {
        const char *call;
        int error;
    } calls[] = {{"memfd_create", EMFILE}, {"fchmod", EIO},  {"ftruncate", EFBIG}, {"fcntl", EPERM},
                 {"fstat", EIO},           {"open", EMFILE}, {"malloc", ENOMEM}};
    sealed_limit(5);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct stat st = {.st_ino = 77};
        faults_begin_call(calls[i].call, 1, calls[i].error, false);
        int r = sealed_create(10, true, &st);
        ck_assert_msg(faults_end(), "%s is not called", calls[i].call);
        ck_assert_msg(r == -calls[i].error, "%s: %d", calls[i].call, r);
        ck_assert_uint_eq(st.st_ino, 77);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
        ck_assert_uint_eq(sealed_room().free, 5);
    }
    struct stat st;
    ck_assert_int_eq(sealed_create(UINT64_C(1) << 63, false, &st), -EINVAL);
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
    ck_assert_uint_eq(sealed_room().free, 5);
    sealed_limit(UINT_MAX);
}
END_TEST

/* Linux before 6.3 returns EINVAL for a flag that it does not know. */
START_TEST(a_kernel_without_noexec)
{
    struct stat st;
    faults_begin_call("memfd_create", 1, EINVAL, false);
    int fd = sealed_create(10, false, &st);
    ck_assert(faults_end());
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
    ck_assert_int_eq(sealed_seals(st.st_ino) & (SIZE_SEALS | F_SEAL_SEAL), SIZE_SEALS);
    close(fd);
    drop(st.st_ino);
    faults_begin_call("memfd_create", 1, EINVAL, true);
    ck_assert_int_eq(sealed_create(10, false, &st), -EINVAL);
    ck_assert(faults_end());
}
END_TEST

/* --- Room ---------------------------------------------------------------- */

START_TEST(room_is_limited)
{
    struct stat st, own;
    ck_assert_uint_eq(sealed_room().most, UINT_MAX);
    sealed_limit(2);
    ino_t a = create(1), b = create(1);
    ck_assert_uint_eq(sealed_room().most, 2);
    ck_assert_uint_eq(sealed_room().free, 0);
    unsigned n = unit_fds();
    ck_assert_int_eq(sealed_create(1, false, &st), -EMFILE);
    ck_assert_uint_eq(unit_fds(), n);
    int fd = client_memfd(0, 1, &own);
    ck_assert_int_eq(sealed_take_over(fd, &own), -EMFILE);
    sealed_limit(1); /* as after a reload; all that are there stay */
    ck_assert_uint_eq(sealed_room().free, 0);
    ck_assert(sealed_has(a) && sealed_has(b));
    drop(a);
    ck_assert_int_eq(sealed_take_over(fd, &own), -EMFILE);
    drop(b);
    ck_assert_uint_eq(sealed_room().free, 1);
    ck_assert_int_eq(sealed_take_over(fd, &own), 0);
    ck_assert_int_eq(sealed_take(own.st_ino), fd);
    close(fd);
    sealed_limit(UINT_MAX);
}
END_TEST

/* Memory that is here already is not taken over, and the descriptor stays the caller's. */
START_TEST(taken_over_once)
{
    struct stat st;
    int fd = client_memfd(0, 10, &st), again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    ck_assert_int_eq(sealed_take_over(fd, &st), 0);
    ck_assert_int_eq(sealed_take_over(again, &st), -EEXIST);
    ck_assert_int_eq(fcntl(again, F_GETFD), FD_CLOEXEC);
    close(again);
    drop(st.st_ino);
}
END_TEST

/* The table finds an object by its number, also if others have the same hash. */
START_TEST(equal_hashes)
{
    struct stat st[3];
    int fds[3];
    for (unsigned i = 0; i < 3; i++) {
        fds[i] = client_memfd(0, i + 1, &st[i]);
        /* the inverse of the factor of the hash */
        st[i].st_ino = (i + 1) * UINT64_C(17428512612931826493);
        ck_assert_uint_eq(table_hash_number(st[i].st_ino), table_hash_number(0));
        ck_assert_int_eq(sealed_take_over(fds[i], &st[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct stat found;
        ck_assert_int_eq(sealed_stat(st[i].st_ino, &found), 0);
        ck_assert_int_eq(found.st_size, i + 1);
    }
    assert_absent(0);
    for (unsigned i = 0; i < 3; i++)
        drop(st[i].st_ino);
}
END_TEST

/* --- Opening ------------------------------------------------------------- */

/* Runs the function in another process, as an ordinary user. Returns its result, which is 0 to 99;
 * the number of the first promise that does not hold. */
static int as_ordinary_user(int (*run)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
                               setresuid(65534, 65534, 65534)))
            _exit(100);
        prctl(PR_SET_DUMPABLE, 1); /* or /proc/self would belong to root */
        _exit(run());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int open_after_chmod(void)
{
    struct stat st;
    int fd = sealed_create(10, false, &st);
    if (fd < 0 || fchmod(fd, 0))
        return 1;
    if (sealed_open(st.st_ino, O_RDWR) < 0)
        return 2;
    if (fchmod(fd, 0) || sealed_open(st.st_ino, O_RDONLY) < 0)
        return 3;
    return fstat(fd, &st) || st.st_mode != (S_IFREG | 0600) ? 4 : 0;
}

/* A client can change the mode of an object of its user. The daemon opens it all the same. */
START_TEST(a_client_has_changed_the_mode)
{
    ck_assert_int_eq(as_ordinary_user(open_after_chmod), 0);
    ino_t inode = create(10);
    faults_begin_call("open", 1, EACCES, false);
    int fd = sealed_open(inode, O_RDWR);
    ck_assert(faults_end());
    ck_assert_int_ge(fd, 0);
    close(fd);
    faults_begin_call("open", 1, EACCES, true);
    ck_assert_int_eq(sealed_open(inode, O_RDWR), -EACCES);
    faults_begin_call("open", 1, EMFILE, false);
    ck_assert_int_eq(sealed_open(inode, O_RDWR), -EMFILE);
    ck_assert(faults_end());
    drop(inode);
}
END_TEST

static int foreign_fd;
static struct stat foreign;

static int open_foreign(void)
{
    if (sealed_take_over(foreign_fd, &foreign))
        return 1;
    int reader = sealed_open(foreign.st_ino, O_RDONLY);
    if (reader < 0 || share_a_description(foreign_fd, reader))
        return 2;
    int writer = sealed_open(foreign.st_ino, O_RDWR);
    if (writer < 0 || !share_a_description(foreign_fd, writer))
        return 3;
    if (fcntl(writer, F_GETFD) != FD_CLOEXEC)
        return 4;
    struct stat st;
    return fstat(writer, &st) || st.st_mode != (S_IFREG | 0644) ? 5 : 0;
}

/* The daemon may only read memory of another user. Writers get the description of that user. */
START_TEST(memory_of_another_user)
{
    struct rlimit limit;
    foreign_fd = client_memfd(0, 10, &foreign);
    if (geteuid() == 0)
        ck_assert_int_eq(as_ordinary_user(open_foreign), 0);
    foreign.st_uid = geteuid() + 1;
    ck_assert_int_eq(sealed_take_over(foreign_fd, &foreign), 0);
    faults_begin_call("open", 1, EACCES, true);
    int writer = sealed_open(foreign.st_ino, O_RDWR);
    ck_assert_int_eq(sealed_open(foreign.st_ino, O_RDONLY), -EACCES);
    ck_assert(faults_end());
    struct stat st;
    ck_assert_int_eq(fstat(foreign_fd, &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0644); /* fchmod() could wait for the owner */
    ck_assert_int_ge(writer, 0);
    ck_assert(share_a_description(foreign_fd, writer));
    close(writer);
    writer = sealed_open(foreign.st_ino, O_RDWR); /* if the kernel lets it, one of its own */
    ck_assert(writer >= 0 && !share_a_description(foreign_fd, writer));

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = sealed_open(foreign.st_ino, O_RDWR);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert(r == -EMFILE || r == -EINVAL); /* of fcntl, whose least number is too large then */
    close(writer);
    drop(foreign.st_ino);
}
END_TEST

/* A client can have a lease of memory that it has made. Then open() would wait for 45 s. */
START_TEST(a_lease_makes_nobody_wait)
{
    struct stat st;
    int fd = client_memfd(0, 10, &st);
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    close(fd); /* there is a lease for readers only while nobody can write */
    signal(SIGIO, SIG_IGN);
    if (fcntl(reader, F_SETLEASE, F_RDLCK)) { /* this kernel knows none of a memfd */
        close(reader);
        return;
    }
    ck_assert_int_eq(sealed_take_over(reader, &st), 0);
    int64_t begin = now_ns();
    ck_assert_int_eq(sealed_open(st.st_ino, O_RDWR), -EWOULDBLOCK);
    ck_assert_int_lt(now_ns() - begin, 2000000000);
    drop(st.st_ino);
}
END_TEST

/* The kernel's error is returned, and the object stays. */
START_TEST(facts_that_cannot_be_read)
{
    struct stat st;
    struct statx stx;
    ino_t inode = create(10);
    faults_begin_call("fstat", 1, EIO, false);
    ck_assert_int_eq(sealed_stat(inode, &st), -EIO);
    faults_begin_call("statx", 1, EIO, false);
    ck_assert_int_eq(sealed_statx(inode, STATX_SIZE, &stx), -EIO);
    faults_begin_call("fcntl", 1, EIO, false);
    ck_assert_int_eq(sealed_seals(inode), -EIO);
    faults_end();
    ck_assert_int_eq(sealed_stat(inode, &st), 0);
    drop(inode);
}
END_TEST

/* --- Huge pages ---------------------------------------------------------- */

static unsigned long free_huge_pages(void)
{
    unsigned long n = 0;
    FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
    if (f && fscanf(f, "%lu", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

/* The kernel can give the number of a memfd of huge pages to another memfd. */
START_TEST(huge_pages_have_numbers_of_their_own)
{
    struct stat huge, small, raw;
    int fd = client_memfd(MFD_HUGETLB | MFD_HUGE_2MB, HUGE_PAGE, &huge);
    if (fd < 0)
        return; /* this kernel has none */
    ck_assert_int_eq(fstat(fd, &raw), 0);
    ck_assert_uint_eq(huge.st_ino, raw.st_ino | SEALED_HUGE);
    ck_assert_int_eq(sealed_take_over(fd, &huge), 0);
    int other = client_memfd(0, 10, &small);
    ck_assert(!(small.st_ino & SEALED_HUGE));
    small.st_ino = raw.st_ino;
    ck_assert_int_eq(sealed_take_over(other, &small), 0);
    ck_assert_int_eq(sealed_stat(huge.st_ino, &raw), 0);
    ck_assert(raw.st_ino == huge.st_ino && raw.st_size == (off_t)HUGE_PAGE);
    ck_assert_int_eq(sealed_stat(small.st_ino, &raw), 0);
    ck_assert_int_eq(raw.st_size, 10);
    drop(huge.st_ino);
    ck_assert(sealed_has(small.st_ino));
    drop(small.st_ino);
}
END_TEST

START_TEST(huge_pages_are_reserved)
{
    struct stat st;
    unsigned long n = free_huge_pages();
    int fd = memfd_create("unit", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
    if (fd < 0)
        return; /* this kernel has none */
    close(fd);
    /* more than any machine has */
    ck_assert_int_eq(sealed_create_huge(HUGE_PAGE << 24, &st), -ENOSPC);
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
    if (n == 0)
        return;
    fd = sealed_create_huge(HUGE_PAGE, &st);
    if (fd == -ENOSPC)
        return; /* another process has reserved it */
    ck_assert_int_ge(fd, 0);
    ck_assert(st.st_ino & SEALED_HUGE);
    ck_assert_int_eq(st.st_size, (off_t)HUGE_PAGE);
    ck_assert_int_eq(sealed_seals(st.st_ino) & (SIZE_SEALS | F_SEAL_SEAL), SIZE_SEALS);
    close(fd);
    drop(st.st_ino);
}
END_TEST

START_TEST(nothing_is_left_of_a_huge_failure)
{
    static const struct {
        const char *call;
        int error, result;
    } calls[] = {{"memfd_create", ENODEV, -ENODEV},
                 {"ftruncate", EFBIG, -EFBIG},
                 {"mmap", ENOMEM, -ENOSPC}, /* so the kernel reports that the pool has too few */
                 {"mmap", EAGAIN, -EAGAIN}};
    int fd = memfd_create("unit", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
    bool has_huge = fd >= 0;
    close(fd);
    sealed_limit(5);
    for (size_t i = 0; i < (has_huge ? 4 : 1); i++) {
        struct stat st = {.st_ino = 77};
        faults_begin_call(calls[i].call, 1, calls[i].error, false);
        int r = sealed_create_huge(HUGE_PAGE, &st);
        ck_assert_msg(faults_end(), "%s is not called", calls[i].call);
        ck_assert_msg(r == calls[i].result, "%s: %d", calls[i].call, r);
        ck_assert_uint_eq(st.st_ino, 77);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
        ck_assert_uint_eq(sealed_room().free, 5);
    }
    sealed_limit(UINT_MAX);
}
END_TEST

UNIT_MAIN("sealed_objects", UNIT_TEST(created_as_promised), UNIT_TEST(fully_sealed_or_not),
          UNIT_TEST(descriptions_are_not_shared), UNIT_TEST(nothing_is_left_of_a_failure),
          UNIT_TEST(a_kernel_without_noexec), UNIT_TEST(room_is_limited),
          UNIT_TEST(taken_over_once), UNIT_TEST(equal_hashes),
          UNIT_TEST(a_client_has_changed_the_mode), UNIT_TEST(memory_of_another_user),
          UNIT_TEST(a_lease_makes_nobody_wait), UNIT_TEST(facts_that_cannot_be_read),
          UNIT_TEST(huge_pages_have_numbers_of_their_own), UNIT_TEST(huge_pages_are_reserved),
          UNIT_TEST(nothing_is_left_of_a_huge_failure))
