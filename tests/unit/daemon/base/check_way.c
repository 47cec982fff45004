/* SPDX-License-Identifier: Apache-2.0 */
/* Checks way.c: directories that are made, and directories that others could change. */
#include "daemon/base/way.h"

#include <sys/mman.h>

#include "unit/faults.h"
#include "unit/unit.h"

static char base[64];
static int log_fd;

/* Begins in a directory of the test, with a log in memory. */
static void begin(void)
{
    snprintf(base, sizeof base, "%s", unit_directory());
    log_fd = memfd_create("log", MFD_CLOEXEC);
    dup2(log_fd, 2);
}

static void end(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    close(log_fd);
}

/* Returns what was logged since the last call. */
static const char *logged(void)
{
    static char text[2000];
    ssize_t n = pread(log_fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    ck_assert_int_eq(ftruncate(log_fd, 0), 0);
    lseek(log_fd, 0, SEEK_SET);
    return text;
}

/* Returns a path below the directory of the test, valid until the next call but one. */
static const char *below(const char *name)
{
    static char paths[2][200];
    static unsigned turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static void assert_is(int fd, const char *directory)
{
    struct stat st, wanted;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(stat(directory, &wanted), 0);
    ck_assert_uint_eq(st.st_ino, wanted.st_ino);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_str_eq(logged(), "");
    close(fd);
}

/* The way must be refused with that error, and with a line that holds the text. */
static void assert_refused(const char *name, int error, const char *text)
{
    ck_assert_int_eq(way_open(below(name)), error);
    unit_assert_holds(logged(), text);
}

static void make(const char *name, mode_t mode)
{
    ck_assert_int_eq(mkdir(below(name), 0700), 0);
    ck_assert_int_eq(chmod(below(name), mode), 0);
}

static unsigned mode_of(const char *name)
{
    struct stat st;
    ck_assert_int_eq(lstat(below(name), &st), 0);
    return st.st_mode & 07777;
}

START_TEST(names)
{
    const char *path = "/run/shmview/socket";
    ck_assert_ptr_eq(way_name(path), path + 13);
    ck_assert_str_eq(way_name("socket"), "socket");
    ck_assert_str_eq(way_name("directory/"), "");
}
END_TEST

START_TEST(directories_that_are_there)
{
    begin();
    make("one", 0755);
    assert_is(way_open(below("one/socket")), below("one"));
    assert_is(way_open(below("socket")), base);
    assert_is(way_open(below("/one///socket")), below("one"));
    assert_is(way_open("/socket"), "/");
    ck_assert_uint_eq(mode_of("one"), 0755);
    end();
}
END_TEST

/* They are for this user alone, whatever the umask, which stays as it was. */
START_TEST(directories_that_are_made)
{
    const mode_t masks[] = {0, 022, 0777};
    begin();
    for (int i = 0; i < 3; i++) {
        mode_t before = umask(masks[i]);
        assert_is(way_open(below("one/two/socket")), below("one/two"));
        ck_assert_uint_eq(umask(before), masks[i]);
        ck_assert_uint_eq(mode_of("one"), 0700);
        ck_assert_uint_eq(mode_of("one/two"), 0700);
        ck_assert_int_eq(access(below("one/two/socket"), F_OK), -1);
        rmdir(below("one/two"));
        rmdir(below("one"));
    }
    end();
}
END_TEST

START_TEST(from_the_current_directory)
{
    begin();
    ck_assert_int_eq(chdir(base), 0);
    assert_is(way_open("socket"), base);
    assert_is(way_open("one/socket"), below("one"));
    ck_assert_int_eq(chdir(below("one")), 0);
    rmdir(below("one"));
    ck_assert_int_eq(way_open("socket"), -ENOENT);
    unit_assert_holds(logged(), "the current directory");
    end();
}
END_TEST

/* Another process makes the directory at the same moment. */
START_TEST(made_by_another)
{
    begin();
    make("one", 0700);
    faults_begin_call("openat", 3, ENOENT, false); /* after /tmp and the directory of the test */
    assert_is(way_open(below("one/socket")), below("one"));
    ck_assert(faults_end());
    end();
}
END_TEST

START_TEST(others_may_write)
{
    begin();
    make("one", 0770);
    assert_refused("one/socket", -EPERM, "others may write to it");
    chmod(below("one"), 0707);
    assert_refused("one/two/socket", -EPERM, "others may write to it");
    ck_assert_int_eq(access(below("one/two"), F_OK), -1);
    chmod(below("one"), 01777); /* as /tmp */
    assert_is(way_open(below("one/socket")), below("one"));
    end();
}
END_TEST

START_TEST(of_another_user)
{
    begin();
    make("one", 0755);
    if (geteuid() == 0) { /* only root can give it away */
        ck_assert_int_eq(chown(below("one"), 12345, (gid_t)-1), 0);
        assert_refused("one/socket", -EPERM, "it belongs to another user");
        chmod(below("one"), 01777);
        assert_refused("one/two/socket", -EPERM, "it belongs to another user");
        chmod(base, 0711);
        ck_assert_int_eq(seteuid(12345), 0); /* those of root are allowed, too */
        assert_is(way_open(below("one/socket")), below("one"));
        ck_assert_int_eq(seteuid(0), 0);
        chmod(base, 0700);
    }
    end();
}
END_TEST

START_TEST(no_directory)
{
    begin();
    close(open(below("file"), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    assert_refused("file/socket", -ENOTDIR, "or a symbolic link, which is not followed");
    make("one", 0700);
    ck_assert_int_eq(symlink(below("one"), below("link")), 0);
    assert_refused("link/socket", -ENOTDIR, "or a symbolic link, which is not followed");
    ck_assert_int_eq(symlink(below("two"), below("dangling")), 0);
    assert_refused("dangling/socket", -ENOTDIR, "cannot use or make the directory");
    ck_assert_int_eq(access(below("two"), F_OK), -1);
    end();
}
END_TEST

/* Each call on the way can fail, and leaves no descriptor. */
START_TEST(every_call_fails)
{
    begin();
    make("one", 0700);
    unsigned n = 1, before = unit_fds();
    faults_errno(EMFILE);
    for (;; n++) {
        faults_begin(FAULTS_SYSTEM, n);
        int fd = way_open(below("one/socket"));
        if (!faults_end()) {
            assert_is(fd, below("one"));
            break;
        }
        ck_assert_int_eq(fd, -EMFILE);
        ck_assert_uint_eq(unit_fds(), before);
        unit_assert_holds(logged(), strerror(EMFILE));
    }
    ck_assert_uint_ge(n, 9); /* of 4 directories, each is opened and checked */
    end();
}
END_TEST

UNIT_MAIN("way", UNIT_TEST(names), UNIT_TEST(directories_that_are_there),
          UNIT_TEST(directories_that_are_made), UNIT_TEST(from_the_current_directory),
          UNIT_TEST(made_by_another), UNIT_TEST(others_may_write), UNIT_TEST(of_another_user),
          UNIT_TEST(no_directory), UNIT_TEST(every_call_fails))
