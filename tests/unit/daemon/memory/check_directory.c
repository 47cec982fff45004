/* SPDX-License-Identifier: Apache-2.0 */
/* Checks directory.c: it makes the directory, finds it again, and refuses that of another user. */
#include <limits.h>

#include "unit/unit.h"

#include "daemon/memory/directory.h"
#include "unit/faults.h"

/* The fixture has opened it already. */
START_TEST(made_and_removed)
{
    struct stat st;
    ck_assert_str_eq(directory_path(), unit_object_directory());
    ck_assert_int_eq(lstat(unit_object_directory(), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    ck_assert_int_eq(fcntl(directory_fd(), F_GETFD), FD_CLOEXEC);
    directory_close();
    ck_assert_int_eq(access(unit_object_directory(), F_OK), -1);
    ck_assert_int_eq(directory_open(unit_prefix() + strlen("shmview.")), 0);
}
END_TEST

START_TEST(what_is_in_it_keeps_it)
{
    close(open(unit_object("a"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    directory_close();
    ck_assert_int_eq(chmod(unit_object_directory(), 0777), 0);
    ck_assert_int_eq(directory_open(unit_prefix() + strlen("shmview.")), 0);
    struct stat st;
    ck_assert_int_eq(fstat(directory_fd(), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    ck_assert_int_eq(unlink(unit_object("a")), 0);
}
END_TEST

/* If the name is taken the directory gets a random one, by which it is found again. */
START_TEST(the_name_is_taken)
{
    char path[128];
    const char *instance = unit_prefix() + strlen("shmview.");
    directory_close();
    ck_assert_int_eq(symlink("/tmp", unit_object_directory()), 0);
    ck_assert_int_eq(directory_open(instance), 0);
    snprintf(path, sizeof path, "%s", directory_path());
    ck_assert_str_ne(path, unit_object_directory());
    close(openat(directory_fd(), "a", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (int i = 0; i < 2; i++) {
        directory_close();
        if (i == 1)
            unlink(unit_object_directory());
        ck_assert_int_eq(directory_open(instance), 0);
        ck_assert_str_eq(directory_path(), path);
    }
    ck_assert_int_eq(unlinkat(directory_fd(), "a", 0), 0);
}
END_TEST

/* A temporary error must not lead to a second directory. */
START_TEST(every_call_fails)
{
    const char *instance = unit_prefix() + strlen("shmview.");
    for (int is_there = 0; is_there < 2; is_there++) {
        int r = 0;
        directory_close();
        if (is_there)
            ck_assert_int_eq(mkdir(unit_object_directory(), 0700), 0);
        unsigned before = unit_fds();
        faults_errno(EMFILE);
        for (unsigned n = 1;
             faults_begin(FAULTS_SYSTEM, n), r = directory_open(instance), faults_end(); n++) {
            ck_assert_int_eq(r, -EMFILE);
            ck_assert_uint_eq(unit_fds(), before);
        }
        ck_assert_int_eq(r, 0);
        ck_assert_str_eq(directory_path(), unit_object_directory());
    }
}
END_TEST

START_TEST(an_instance_with_a_long_name)
{
    char name[NAME_MAX + 1];
    memset(name, 'a', sizeof name);
    name[NAME_MAX] = '\0';
    directory_close();
    ck_assert_int_eq(directory_open(name), -ENAMETOOLONG);
    ck_assert_int_eq(directory_open(unit_prefix() + strlen("shmview.")), 0);
}
END_TEST

UNIT_MAIN("directory", UNIT_TEST(made_and_removed), UNIT_TEST(what_is_in_it_keeps_it),
          UNIT_TEST(the_name_is_taken), UNIT_TEST(every_call_fails),
          UNIT_TEST(an_instance_with_a_long_name))
