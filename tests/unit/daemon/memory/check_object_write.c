/* SPDX-License-Identifier: Apache-2.0 */
/* Checks object_write.c: bytes that arrive, and what is missing or refused. That no lock of a
 * client delays it is checked by integration/check_inode_lock. */
#include "daemon/memory/object_write.h"

#include "unit/unit.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "unit/faults.h"

#define PAGE 4096

static int new_object(off_t bytes)
{
    int fd = memfd_create("unit", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, bytes), 0);
    return fd;
}

static uint64_t committed(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/* Asserts that the object has these n bytes at the offset, and zeros everywhere else. */
static void has(int fd, const char *bytes, size_t n, size_t at)
{
    char is[3 * PAGE], should[3 * PAGE] = {0};
    memcpy(should + at, bytes, n);
    ck_assert_int_eq(pread(fd, is, sizeof is, 0), sizeof is);
    ck_assert_mem_eq(is, should, sizeof is);
}

START_TEST(these_bytes_alone)
{
    static const struct {
        size_t n, at;
    } cases[] = {{1, 0},           {8, 24}, {PAGE, PAGE}, {10, PAGE - 5}, {PAGE + 2, PAGE - 1},
                 {7, 3 * PAGE - 7}};
    char bytes[2 * PAGE];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 100 + 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = new_object(3 * PAGE);
        ck_assert_int_eq(object_write(fd, bytes, cases[i].n, cases[i].at), 0);
        has(fd, bytes, cases[i].n, cases[i].at);
        close(fd);
    }
}
END_TEST

START_TEST(missing_pages)
{
    static const char bytes[2 * PAGE] = {1};
    int fd = new_object(PAGE);
    ck_assert_int_eq(object_write(fd, bytes, 8, PAGE), -EIO);
    ck_assert_int_eq(object_write(fd, bytes, 2 * PAGE, 0), -EIO); /* a part of it */
    ck_assert_int_eq(object_populate(fd, 0, 2 * PAGE), -ENOSPC);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(object_write(fd, bytes, 8, 0), -EIO);
    close(fd);
}
END_TEST

START_TEST(where_the_kernel_refuses)
{
    static const int errors[] = {ENOSYS, EPERM};
    int fd;
    for (size_t i = 0; i < 2; i++) {
        fd = new_object(3 * PAGE);
        faults_begin_call("process_vm_writev", 1, errors[i], false);
        ck_assert_int_eq(object_write(fd, "bytes", 5, 4095), 0);
        ck_assert(faults_end());
        has(fd, "bytes", 5, 4095);
        ck_assert_int_eq(ftruncate(fd, PAGE), 0);
        faults_begin_call("process_vm_writev", 1, errors[i], false);
        ck_assert_int_eq(object_write(fd, "bytes", 5, PAGE - 2), -EIO);
        ck_assert(faults_end());
        ck_assert_int_eq(lseek(fd, 0, SEEK_END), PAGE);
        close(fd);
    }
    fd = new_object(3 * PAGE);
    faults_begin_call("process_vm_writev", 1, ENOMEM, false);
    ck_assert_int_eq(object_write(fd, "bytes", 5, 0), -ENOMEM);
    faults_begin_call("mmap", 1, ENOMEM, true);
    ck_assert_int_eq(object_write(fd, "bytes", 5, 0), -ENOMEM);
    ck_assert_int_eq(object_populate(fd, 0, PAGE), -ENOMEM);
    ck_assert(faults_end());
    has(fd, "", 0, 0);
    close(fd);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_lt(object_write(fd, "bytes", 5, 0), 0);
    close(fd);
}
END_TEST

START_TEST(populated)
{
    int fd = new_object(3 * PAGE);
    ck_assert_int_eq(object_populate(fd, PAGE, PAGE + 1), 0);
    ck_assert_uint_eq(committed(fd), PAGE);
    faults_begin_call("madvise", 1, EINTR, false);
    ck_assert_int_eq(object_populate(fd, PAGE + 1, 3 * PAGE), 0);
    ck_assert(faults_end());
    ck_assert_uint_eq(committed(fd), 2 * PAGE);
    has(fd, "", 0, 0);
    faults_begin_call("madvise", 1, EINVAL, false); /* as on a kernel before 5.14 */
    ck_assert_int_eq(object_populate(fd, 0, PAGE), 0);
    ck_assert(faults_end());
    ck_assert_uint_eq(committed(fd), 3 * PAGE);
    faults_begin_call("madvise", 1, ENOMEM, false);
    ck_assert_int_eq(object_populate(fd, 0, PAGE), -ENOMEM);
    ck_assert(faults_end());
    close(fd);
}
END_TEST

UNIT_MAIN("object_write", UNIT_TEST(these_bytes_alone), UNIT_TEST(missing_pages),
          UNIT_TEST(where_the_kernel_refuses), UNIT_TEST(populated))
