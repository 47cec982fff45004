/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the paths of sockets: those of the runtime directory, of a user without one, and of the
 * greatest length. */
#include "unit/unit.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base/address.h"

#define ROOM (sizeof(address_path) - 1) /* bytes of the longest possible path */

START_TEST(below_the_runtime_directory)
{
    address_path path;
    setenv("XDG_RUNTIME_DIR", "/run/user/12345", 1);
    ck_assert_int_eq(address_user(path), 0);
    ck_assert_str_eq(path, "/run/user/12345/shmviewd/io.shmview");
    ck_assert_int_eq(address_session(path), 0);
    ck_assert_str_eq(path, "/run/user/12345/shmviewd/session/io.shmview");
}
END_TEST

/* If the variable is missing, empty or relative, the path is this user's own. */
START_TEST(without_a_runtime_directory)
{
    const char *bad[] = {NULL, "", "relative/dir", "./x", " /x"};
    struct stat st;
    char run[64], wanted[108];
    snprintf(run, sizeof run, "/run/user/%u", geteuid());
    bool mine = lstat(run, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
    if (!mine)
        snprintf(run, sizeof run, "/tmp/shmview-%u", geteuid());
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        address_path path;
        if (bad[i])
            setenv("XDG_RUNTIME_DIR", bad[i], 1);
        else
            unsetenv("XDG_RUNTIME_DIR");
        ck_assert_int_eq(address_user(path), 0);
        snprintf(wanted, sizeof wanted, "%s/shmviewd/io.shmview", run);
        ck_assert_str_eq(path, wanted);
        ck_assert_int_eq(address_session(path), 0);
        snprintf(wanted, sizeof wanted, "%s/shmviewd/session/io.shmview", run);
        ck_assert_str_eq(path, wanted);
    }
}
END_TEST

/* su may leave the variable of another user in place. Its directory is not used, so that neither
 * user's daemon answers the other one. */
START_TEST(runtime_directory_of_another_user)
{
    char dir[] = "/tmp/check_address.XXXXXX";
    const bool is_root = geteuid() == 0;
    address_path path, own, kept;
    unsetenv("XDG_RUNTIME_DIR");
    ck_assert_int_eq(address_user(own), 0);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    setenv("XDG_RUNTIME_DIR", dir, 1);
    ck_assert_int_eq(address_user(kept), 0);
    ck_assert_int_eq(strncmp(kept, dir, strlen(dir)), 0);
    if (!is_root) {
        setenv("XDG_RUNTIME_DIR", "/etc", 1); /* root's */
    } else if (chown(dir, 65534, 65534)) {
        ck_assert_int_eq(rmdir(dir), 0);
        return; /* a namespace of one user */
    }
    ck_assert_int_eq(address_user(path), 0);
    ck_assert_str_eq(path, own);
    ck_assert_int_eq(address_session(path), 0);
    ck_assert_int_eq(strncmp(path, own, (size_t)(strrchr(own, '/') - own)), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

static void set_directory_of(size_t n)
{
    char dir[512];
    memset(dir, 'd', n);
    dir[0] = '/';
    dir[n] = '\0';
    setenv("XDG_RUNTIME_DIR", dir, 1);
}

START_TEST(longest_directory)
{
    const size_t user = strlen("/shmviewd/io.shmview"),
                 session = strlen("/shmviewd/session/io.shmview");
    address_path path;
    set_directory_of(ROOM - user);
    ck_assert_int_eq(address_user(path), 0);
    ck_assert_uint_eq(strlen(path), ROOM);
    ck_assert_int_eq(address_session(path), -ENAMETOOLONG);
    set_directory_of(ROOM - user + 1);
    ck_assert_int_eq(address_user(path), -ENAMETOOLONG);
    set_directory_of(ROOM - session);
    ck_assert_int_eq(address_session(path), 0);
    ck_assert_uint_eq(strlen(path), ROOM);
    set_directory_of(400);
    ck_assert_int_eq(address_user(path), -ENAMETOOLONG);
    ck_assert_int_eq(address_session(path), -ENAMETOOLONG);
}
END_TEST

START_TEST(fill_from_every_length)
{
    char path[200];
    for (size_t n = 0; n < sizeof path; n++) {
        struct sockaddr_un address;
        memset(&address, 0x5a, sizeof address);
        memset(path, 'p', n);
        path[n] = '\0';
        int r = address_fill(&address, path);
        ck_assert_int_eq(r, n == 0 ? -EINVAL : n > ROOM ? -ENAMETOOLONG : 0);
        if (r)
            continue;
        ck_assert_int_eq(address.sun_family, AF_UNIX);
        ck_assert_str_eq(address.sun_path, path);
        /* no earlier bytes may reach the kernel */
        for (size_t i = n; i <= ROOM; i++)
            ck_assert_int_eq(address.sun_path[i], 0);
    }
}
END_TEST

START_TEST(system_address_fits)
{
    struct sockaddr_un address;
    ck_assert_int_eq(address_fill(&address, ADDRESS_SYSTEM), 0);
    ck_assert_str_eq(address.sun_path, "/run/shmviewd/io.shmview");
}
END_TEST

UNIT_MAIN("address", UNIT_TEST(below_the_runtime_directory), UNIT_TEST(without_a_runtime_directory),
          UNIT_TEST(runtime_directory_of_another_user), UNIT_TEST(longest_directory),
          UNIT_TEST(fill_from_every_length), UNIT_TEST(system_address_fits))
