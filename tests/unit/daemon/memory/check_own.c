/* SPDX-License-Identifier: Apache-2.0 */
/* Checks own.c: what a client may hand over as the memory of a segment. Also sealed.c with memory
 * of another user. */
#include "daemon/memory/own.h"

#include "unit/unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/memory/sealed.h"
#include "unit/faults.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static char why[200];

static int memory(size_t size, int seals)
{
    int fd = memfd_create("shmview:unit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(posix_fallocate(fd, 0, (off_t)size), 0);
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static int check(int fd, uint64_t size, struct stat *ret)
{
    why[0] = '\0';
    return own_check(fd, size, geteuid(), ret, why, sizeof why);
}

/* Closes fd. */
static void refused(int fd, uint64_t size, const char *part)
{
    struct stat st;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(check(fd, size, &st), -EINVAL);
    unit_assert_holds(why, part);
    close(fd);
}

START_TEST(good_memory)
{
    const size_t sizes[] = {1, 4095, 4096, 4097, 1 << 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct stat st;
        int fd = memory(sizes[i], SEALS);
        ck_assert_msg(check(fd, sizes[i], &st) == 0, "%s", why);
        ck_assert_int_eq(st.st_size, (off_t)sizes[i]);
        close(fd);
    }
}
END_TEST

/* The first check makes a memfd to compare with. */
START_TEST(no_descriptor_to_compare_with)
{
    struct stat st;
    struct rlimit all;
    int fd = memory(10, SEALS);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){1, all.rlim_max}), 0);
    ck_assert_int_eq(check(fd, 10, &st), -EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
    ck_assert_str_eq(why, "");
    ck_assert_msg(check(fd, 10, &st) == 0, "%s", why);
    close(fd);
}
END_TEST

START_TEST(memory_that_cannot_be_executed)
{
    struct stat st;
    int fd = memfd_create("shmview:unit", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0)
        return; /* before Linux 6.3 */
    ck_assert_int_eq(posix_fallocate(fd, 0, 10), 0);
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    ck_assert_msg(check(fd, 10, &st) == 0, "%s", why);
    close(fd);
}
END_TEST

START_TEST(wrong_memory)
{
    struct stat st;
    int fd = memory(5000, SEALS);
    ck_assert_int_eq(own_check(fd, 5000, geteuid() + 1, &st, why, sizeof why), -EINVAL);
    unit_assert_holds(why, "belongs to uid");
    close(fd);
    refused(memory(5000, SEALS), 4999, "has 5000 bytes, not 4999");
    refused(memory(5000, SEALS), 5001, "has 5000 bytes, not 5001");
    refused(memory(5000, F_SEAL_GROW), 5000, "has not the seals");
    refused(memory(5000, SEALS | F_SEAL_SEAL), 5000, "has seals (0x7)");
    refused(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), 5000, "is not a memfd");
    refused(open("/dev/shm", O_RDONLY | O_CLOEXEC | O_DIRECTORY), 5000, "is not a memfd");
    fd = memory(5000, SEALS);
    ck_assert_int_eq(fchmod(fd, 0664), 0);
    refused(fd, 5000, "has the mode 0664");
}
END_TEST

START_TEST(no_object_twice)
{
    struct stat st;
    int fd = memory(10, SEALS);
    ck_assert_int_eq(check(fd, 10, &st), 0);
    ck_assert_int_eq(sealed_take_over(fd, &st), 0);
    ck_assert_int_eq(check(fd, 10, &st), -EINVAL);
    unit_assert_holds(why, "is the memory of a segment already");
    ck_assert_int_eq(sealed_take_over(fd, &st), -EEXIST);
    ck_assert_int_eq(sealed_take(st.st_ino), fd);
    ck_assert_int_eq(check(fd, 10, &st), 0);
    close(fd);
}
END_TEST

START_TEST(no_room)
{
    struct stat st;
    int fd = memory(10, SEALS);
    ck_assert_int_eq(check(fd, 10, &st), 0);
    sealed_limit(0);
    ck_assert_int_eq(sealed_take_over(fd, &st), -EMFILE);
    sealed_limit(1);
    faults_begin(FAULTS_MEMORY, 1);
    ck_assert_int_eq(sealed_take_over(fd, &st), -ENOMEM);
    ck_assert(faults_end());
    close(fd);
}
END_TEST

/* The owner of an object can set a lease, for which an open() would wait. */
START_TEST(a_lease_delays_nobody)
{
    struct stat st;
    char path[64];
    int fd = memory(10, SEALS), reader;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_assert_int_eq(check(fd, 10, &st), 0);
    ck_assert_int_eq(sealed_take_over(fd, &st), 0);
    reader = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    if (fcntl(reader, F_SETLEASE, F_RDLCK) == 0) {
        int64_t start = now_ns();
        signal(SIGIO, SIG_IGN);
        ck_assert_int_eq(sealed_open(st.st_ino, O_RDWR), -EAGAIN); /* it is this user's */
        int other = sealed_open(st.st_ino, O_RDONLY);
        ck_assert_int_ge(other, 0);
        close(other);
        ck_assert_int_lt(now_ns() - start, 5000000000);
    }
    close(reader);
    close(sealed_take(st.st_ino));
}
END_TEST

UNIT_MAIN("own", UNIT_TEST(no_descriptor_to_compare_with), UNIT_TEST(good_memory),
          UNIT_TEST(memory_that_cannot_be_executed), UNIT_TEST(wrong_memory),
          UNIT_TEST(no_object_twice), UNIT_TEST(no_room), UNIT_TEST(a_lease_delays_nobody))
