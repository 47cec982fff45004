/* SPDX-License-Identifier: Apache-2.0 */
/* Checks listener.c: it opens its socket, replaces a stale one, and leaves alone what belongs to
 * others. */
#include "unit/unit.h"

#include <ctype.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "daemon/clients/listener.h"
#include "unit/faults.h"

/* Returns tail below the test's directory. */
static const char *at(const char *tail)
{
    static char paths[4][300];
    static unsigned turn;
    char *p = paths[turn++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", unit_directory(), tail);
    return p;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Connects. Returns 0 or -errno. */
static int try_connect(const char *path)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(address_fill(&address, path), 0);
    int r = connect(fd, (struct sockaddr *)&address, sizeof address) ? -errno : 0;
    close(fd);
    return r;
}

/* Leaves a socket with a name on which no process listens. */
static void leave_stale(const char *path)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(address_fill(&address, path), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

/* Opens the listener and discards what is logged. */
static int open_quietly(struct listener *l, const char *path)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = dup(2);
    dup2(null, 2);
    int r = listener_open(l, path);
    dup2(saved, 2);
    close(saved);
    close(null);
    return r;
}

START_TEST(open_connect_close)
{
    struct listener l;
    umask(0);
    ck_assert_int_eq(listener_open(&l, at("a/b/s")), 0);
    ck_assert_str_eq(l.path, at("a/b/s"));
    ck_assert_uint_eq(mode_of(at("a")), 0700);
    ck_assert_uint_eq(mode_of(at("a/b")), 0700);
    ck_assert_uint_eq(mode_of(at("a/b/s")), 0600);
    ck_assert_int_eq(fcntl(l.fd, F_GETFD), FD_CLOEXEC);
    ck_assert(fcntl(l.fd, F_GETFL) & O_NONBLOCK);
    ck_assert_uint_eq(umask(022), 0); /* as it was */
    ck_assert_int_eq(try_connect(l.path), 0);
    int fd = accept(l.fd, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    close(fd);
    listener_close(&l);
    ck_assert_int_eq(l.fd, -1);
    ck_assert(!exists(at("a/b/s")));
    ck_assert(exists(at("a/b")));
    listener_close(&l); /* a second call does nothing */
    ck_assert_int_eq(listener_open(&l, at("a/b/s")), 0);
    listener_close(&l);
}
END_TEST

START_TEST(relative_path)
{
    struct listener l;
    ck_assert_int_eq(chdir(unit_directory()), 0);
    ck_assert_int_eq(listener_open(&l, "s"), 0);
    ck_assert(exists(at("s")));
    listener_close(&l);
    ck_assert_int_eq(listener_open(&l, "x/y"), 0);
    ck_assert(exists(at("x/y")));
    listener_close(&l);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(stale_socket_is_replaced)
{
    struct listener l;
    leave_stale(at("s"));
    ck_assert_int_eq(try_connect(at("s")), -ECONNREFUSED);
    ck_assert_int_eq(listener_open(&l, at("s")), 0);
    ck_assert_int_eq(try_connect(at("s")), 0);
    listener_close(&l);
}
END_TEST

START_TEST(served_socket_is_left_alone)
{
    struct listener first, second;
    ck_assert_int_eq(listener_open(&first, at("s")), 0);
    ck_assert_int_eq(open_quietly(&second, at("s")), -EADDRINUSE);
    ck_assert_int_eq(second.fd, -1);
    listener_close(&second);
    ck_assert_int_eq(try_connect(at("s")), 0);
    listener_close(&first);
}
END_TEST

/* A socket whose queue is full is still served by a process. */
START_TEST(busy_socket_is_left_alone)
{
    struct listener l;
    struct sockaddr_un address;
    int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), clients[4], n = 0;
    ck_assert_int_eq(address_fill(&address, at("s")), 0);
    ck_assert_int_eq(bind(busy, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(busy, 0), 0);
    while (n < 4) {
        clients[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(clients[n++], (struct sockaddr *)&address, sizeof address))
            break;
    }
    ck_assert_int_lt(n, 4);
    ck_assert_int_eq(open_quietly(&l, at("s")), -EADDRINUSE);
    ck_assert(exists(at("s")));
    while (n > 0)
        close(clients[--n]);
    close(busy);
}
END_TEST

START_TEST(what_is_no_socket_is_left_alone)
{
    struct listener l;
    close(open(at("file"), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    ck_assert_int_eq(open_quietly(&l, at("file")), -EEXIST);
    ck_assert(exists(at("file")));
    ck_assert_int_eq(open_quietly(&l, at("file/s")), -ENOTDIR);
    ck_assert_int_eq(mkdir(at("dir"), 0700), 0);
    ck_assert_int_eq(open_quietly(&l, at("dir")), -EEXIST);
    leave_stale(at("stale"));
    ck_assert_int_eq(symlink(at("stale"), at("link")), 0);
    ck_assert_int_eq(open_quietly(&l, at("link")), -EEXIST);
    ck_assert_int_eq(symlink("/nowhere/at/all", at("dangling")), 0);
    ck_assert_int_eq(open_quietly(&l, at("dangling")), -EEXIST);
    ck_assert(exists(at("stale")) && exists(at("link")) && exists(at("dangling")));
}
END_TEST

START_TEST(bad_paths)
{
    struct listener l;
    char path[200];
    ck_assert_int_eq(open_quietly(&l, ""), -EINVAL);
    memset(path, 'p', sizeof path);
    path[108] = '\0';
    ck_assert_int_eq(open_quietly(&l, path), -ENAMETOOLONG);
    ck_assert_int_eq(open_quietly(&l, at("trailing/")), -EEXIST);
    ck_assert_int_eq(open_quietly(&l, "/proc/nothing/s"), -ENOENT);
}
END_TEST

/* The daemon must not remove a name that another process has taken over. */
START_TEST(close_leaves_a_foreign_socket)
{
    struct listener l;
    ck_assert_int_eq(listener_open(&l, at("s")), 0);
    ck_assert_int_eq(unlink(at("s")), 0);
    leave_stale(at("s"));
    listener_close(&l);
    ck_assert(exists(at("s")));
    ck_assert_int_eq(listener_open(&l, at("s")), 0);
    ck_assert_int_eq(unlink(at("s")), 0);
    listener_close(&l); /* nothing is there */
}
END_TEST

START_TEST(every_call_fails)
{
    struct listener l;
    const char *path = at("d/s");
    unsigned before = unit_fds();
    int r = 0;
    for (int stale = 0; stale < 2; stale++) {
        unsigned n = 0;
        bool failed = true;
        while (failed) {
            unlink(at("d/s"));
            rmdir(at("d"));
            if (stale)
                ck_assert_int_eq(mkdir(at("d"), 0700), 0);
            if (stale)
                leave_stale(at("d/s"));
            faults_errno(EACCES);
            int null = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = dup(2);
            dup2(null, 2);
            faults_begin(FAULTS_SYSTEM, ++n);
            r = listener_open(&l, path);
            failed = faults_end();
            dup2(saved, 2);
            close(saved);
            close(null);
            if (r) {
                ck_assert_int_eq(l.fd, -1);
                ck_assert_uint_eq(unit_fds(), before);
                ck_assert_msg(stale || !exists(path), "%s() fails and the socket's name is left",
                              faults_name());
            } else {
                listener_close(&l);
            }
        }
        ck_assert_int_eq(r, 0);
        ck_assert_uint_gt(n, 4);
    }
}
END_TEST

START_TEST(names_of_instances)
{
    listener_instance a, b;
    char wanted[64];
    listener_instance_of(ADDRESS_SYSTEM, a);
    ck_assert_str_eq(a, "system");
    /* FNV-1a of "a" is af63dc4c8601ec8c, of "foobar" 85944171f73967e8 */
    listener_instance_of("a", a);
    snprintf(wanted, sizeof wanted, "%u-af63dc4c8601ec8c", geteuid());
    ck_assert_str_eq(a, wanted);
    listener_instance_of("foobar", b);
    snprintf(wanted, sizeof wanted, "%u-85944171f73967e8", geteuid());
    ck_assert_str_eq(b, wanted);
    listener_instance_of("\xc3\xa9/\xff", a);
    for (const char *p = a; *p; p++)
        ck_assert(isalnum((unsigned char)*p) || *p == '-');
    char path[108];
    memset(path, 'p', 107);
    path[107] = '\0';
    listener_instance_of(path, a);
    ck_assert_uint_lt(strlen(a), sizeof a);
}
END_TEST

static void replace_by_directory(void)
{
    ck_assert_int_eq(unlink("s"), 0);
    ck_assert_int_eq(mkdir("s", 0700), 0);
}

static void remove_socket(void)
{
    ck_assert_int_eq(unlink("s"), 0);
}

/* Another process changes the stale socket while the daemon tests it. */
START_TEST(stale_socket_is_changed)
{
    struct listener l;
    ck_assert_int_eq(chdir(unit_directory()), 0);
    leave_stale(at("s"));
    faults_hook("connect", replace_by_directory);
    int r = open_quietly(&l, at("s"));
    ck_assert_int_eq(r, -EISDIR);
    ck_assert_int_eq(l.fd, -1);
    ck_assert_int_eq(rmdir(at("s")), 0);
    leave_stale(at("s"));
    faults_hook("connect", remove_socket);
    ck_assert_int_eq(listener_open(&l, at("s")), 0);
    ck_assert_int_eq(try_connect(at("s")), 0);
    listener_close(&l);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* Adopts the socket and discards what is logged. */
static int adopt_quietly(struct listener *l, int fd)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = dup(2);
    dup2(null, 2);
    int r = listener_adopt(l, fd);
    dup2(saved, 2);
    close(saved);
    close(null);
    return r;
}

/* Returns a listening socket whose path has n bytes, by components that lead nowhere. */
static int listen_at_length(size_t n)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t used = (size_t)sprintf(address.sun_path, "%s/", unit_directory());
    memset(address.sun_path + used, '/', n - used);
    address.sun_path[n - 1] = 's';
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    unlink(at("s"));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, bytes), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(sockets_that_are_passed)
{
    struct listener l;
    unsigned before = unit_fds();
    int fd = listen_at_length(107);
    ck_assert_int_eq(listener_adopt(&l, fd), 0);
    ck_assert_uint_eq(strlen(l.path), 107);
    ck_assert_int_eq(fcntl(l.fd, F_GETFD), FD_CLOEXEC);
    ck_assert(fcntl(l.fd, F_GETFL) & O_NONBLOCK);
    ck_assert_int_eq(try_connect(l.path), 0);
    listener_close(&l);
    ck_assert(exists(at("s"))); /* the socket belongs to the one that passed it */
    fd = listen_at_length(108); /* such a path has no NUL, and no client can name it */
    ck_assert_int_eq(adopt_quietly(&l, fd), -EINVAL);
    ck_assert_int_eq(l.fd, -1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(listen(fd, 1), -1);
    ck_assert_int_eq(adopt_quietly(&l, fd), -EINVAL); /* it does not listen */
    for (unsigned n = 1; n <= 3; n++) {
        fd = listen_at_length(100);
        faults_begin_call("getsockopt", n, EIO, false);
        ck_assert_int_eq(adopt_quietly(&l, fd), -EINVAL);
        ck_assert(faults_end());
    }
    ck_assert_uint_eq(unit_fds(), before);
    unlink(at("s"));
}
END_TEST

UNIT_MAIN("listener", UNIT_TEST(stale_socket_is_changed), UNIT_TEST(sockets_that_are_passed),
          UNIT_TEST(open_connect_close), UNIT_TEST(relative_path),
          UNIT_TEST(stale_socket_is_replaced), UNIT_TEST(served_socket_is_left_alone),
          UNIT_TEST(busy_socket_is_left_alone), UNIT_TEST(what_is_no_socket_is_left_alone),
          UNIT_TEST(bad_paths), UNIT_TEST(close_leaves_a_foreign_socket),
          UNIT_TEST(every_call_fails), UNIT_TEST(names_of_instances))
