/* SPDX-License-Identifier: Apache-2.0 */
/* Checks peer.c: it finds the client of a socket, also if the client has died and its pid was used
 * again, its birth and its groups, with each kernel. */
#include "unit/unit.h"

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/clients/peer.h"
#include "unit/faults.h"

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1 && p.revents & POLLIN;
}

static int listen_at(struct sockaddr_un *ret)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret->sun_path, sizeof ret->sun_path, "%s/s", unit_directory());
    ck_assert_int_eq(bind(fd, (struct sockaddr *)ret, sizeof *ret), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

/* A child that connects and stays until the test ends it. */
struct client {
    pid_t pid;
    int go;
};

static struct client client_start(const struct sockaddr_un *address, int listener, int *ret_socket)
{
    int go[2];
    ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        close(go[1]);
        if (connect(fd, (const struct sockaddr *)address, sizeof *address))
            _exit(1);
        _exit(read(go[0], &byte, 1) == 0 ? 0 : 2);
    }
    close(go[0]);
    *ret_socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(*ret_socket, 0);
    return (struct client){pid, go[1]};
}

static void client_end(struct client *c)
{
    int status;
    close(c->go);
    ck_assert_int_eq(waitpid(c->pid, &status, 0), c->pid);
    ck_assert_int_eq(status, 0);
}

/* Kernels before 6.5 do not have SO_PEERPIDFD, which is the second query. */
static void begin_old_kernel(bool old)
{
    if (old)
        faults_begin_call("getsockopt", 2, ENOPROTOOPT, false);
}

START_TEST(a_living_peer)
{
    struct sockaddr_un address;
    int listener = listen_at(&address);
    for (int old = 0; old < 2; old++) {
        int fd;
        struct peer peer;
        struct client c = client_start(&address, listener, &fd);
        begin_old_kernel(old);
        int r = peer_of(fd, &peer);
        ck_assert_int_eq(faults_end() || !old, 1);
        ck_assert_int_eq(r, 0);
        ck_assert_int_eq(peer.pid, c.pid);
        ck_assert_uint_eq(peer.uid, geteuid());
        ck_assert_uint_eq(peer.gid, getegid());
        ck_assert_int_eq(fcntl(peer.pidfd, F_GETFD), FD_CLOEXEC);
        ck_assert(!readable(peer.pidfd, 0));
        client_end(&c);
        ck_assert(readable(peer.pidfd, 10000)); /* that it died */
        close(peer.pidfd);
        close(fd);
    }
    close(listener);
}
END_TEST

START_TEST(a_dead_peer)
{
    struct sockaddr_un address;
    int listener = listen_at(&address);
    for (int old = 0; old < 2; old++) {
        int fd;
        struct peer peer = {.pidfd = -7};
        struct client c = client_start(&address, listener, &fd);
        client_end(&c);
        begin_old_kernel(old);
        int r = peer_of(fd, &peer);
        faults_end();
        /* newer kernels still name it, and report at once that it is dead */
        ck_assert(r == -ESRCH || (r == 0 && !old));
        if (r == 0) {
            ck_assert_int_eq(peer.pid, c.pid);
            ck_assert(readable(peer.pidfd, 0));
            close(peer.pidfd);
        } else {
            ck_assert_int_eq(peer.pidfd, -7);
        }
        close(fd);
    }
    close(listener);
}
END_TEST

/* The pid was reused between its owner's death and the query. The socket is closed by then, so the
 * pidfd of another process is not believed. */
START_TEST(a_pid_that_was_used_again)
{
    int ends[2];
    struct peer peer = {.pidfd = -7};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[1]); /* its pid is ours, so it still names a process */
    begin_old_kernel(true);
    ck_assert_int_eq(peer_of(ends[0], &peer), -ESRCH);
    ck_assert(faults_end());
    ck_assert_int_eq(peer.pidfd, -7);
    close(ends[0]);
}
END_TEST

START_TEST(what_is_no_peer)
{
    struct peer peer = {.pidfd = -7};
    ck_assert_int_eq(peer_of(-1, &peer), -EBADF);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(peer_of(null, &peer), -ENOTSOCK);
    close(null);
    ck_assert_int_eq(peer.pidfd, -7);
}
END_TEST

START_TEST(every_call_fails)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct peer peer = {.pidfd = -7};
    faults_begin_call("getsockopt", 1, EIO, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EIO);
    ck_assert(faults_end());
    faults_begin_call("getsockopt", 2, EMFILE, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EMFILE);
    ck_assert(faults_end());
    faults_begin_call("getsockopt", 2, EINVAL, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -ESRCH); /* the result of 6.5 for a dead peer */
    ck_assert(faults_end());
    ck_assert_int_eq(peer.pidfd, -7);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static void pidfd_open_fails(void)
{
    faults_begin_call("syscall", 1, EMFILE, false);
}

START_TEST(no_pidfd_to_be_had)
{
    int ends[2];
    struct peer peer = {.pidfd = -7};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    begin_old_kernel(true);
    faults_hook("syscall", pidfd_open_fails);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EMFILE);
    ck_assert(faults_end());
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* Stands for the one of the kernel, which is wrong as often as this has. */
static int n_wrong;

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec t = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    if (n_wrong == 0)
        return (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &t, NULL, (size_t)0);
    n_wrong--;
    fds[0].revents = POLLIN;
    return 1;
}

START_TEST(a_living_process_has_not_ended)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    ck_assert(!peer_has_ended(pidfd));
    n_wrong = 1; /* while a thread calls exec */
    ck_assert(!peer_has_ended(pidfd));
    ck_assert_int_eq(n_wrong, 0);
    close(pidfd);
    ck_assert(!peer_has_ended(-1));
}
END_TEST

/* --- The birth ----------------------------------------------------------- */

#define PIDFS    0x50494446
#define BY_INODE ((uint64_t)1 << 63)

/* Stands for the one of the kernel: pidfds are of pidfs, of another file system, or unknown. */
static enum {
    KERNEL_6_9,
    KERNEL_OLD,
    KERNEL_SILENT
} kernel;

int fstatfs(int fd, struct statfs *ret)
{
    (void)fd;
    *ret = (struct statfs){.f_type = kernel == KERNEL_6_9 ? PIDFS : 0x09041934};
    return kernel == KERNEL_SILENT ? -1 : 0;
}

/* The text of each /proc/PID/stat; NULL: that of the kernel. */
static const char *stat_text;

FILE *fopen(const char *path, const char *mode)
{
    int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
    if (stat_text && strstr(path, "/stat"))
        return fmemopen((void *)(uintptr_t)stat_text, strlen(stat_text), "r");
    int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

static int pidfd_of(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    ck_assert_int_ge(fd, 0);
    return fd;
}

START_TEST(births_by_inode_and_by_clock)
{
    int pidfd = pidfd_of(getpid());
    uint64_t by_inode = peer_birth(pidfd, getpid());
    ck_assert_uint_gt(by_inode, BY_INODE);
    ck_assert_uint_eq(peer_birth(pidfd, getpid()), by_inode);
    kernel = KERNEL_OLD;
    uint64_t by_clock = peer_birth(pidfd, getpid());
    ck_assert_uint_gt(by_clock, 0);
    ck_assert_uint_lt(by_clock, BY_INODE);
    kernel = KERNEL_SILENT;
    ck_assert_uint_eq(peer_birth(pidfd, getpid()), by_clock);
    ck_assert_int_eq(prctl(PR_SET_NAME, "a) S 1 (b"), 0); /* the name is the second field */
    ck_assert_uint_eq(peer_birth(pidfd, getpid()), by_clock);
    ck_assert(peer_descends(getpid(), getppid()));
    stat_text = "7 (a) b) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2222 23";
    ck_assert_uint_eq(peer_birth(pidfd, 7), 2222);
    close(pidfd);
}
END_TEST

/* A text without a birth gives none. */
START_TEST(no_birth_in_the_file)
{
    static const char *const texts[] = {
        "7 no command",
        "7 (ends) S 4 5 6 7 8",
        "7 (ends) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 ",
        "7 (text) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 x 23",
        "7 (first) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 0 23",
    };
    int pidfd = pidfd_of(getpid());
    kernel = KERNEL_OLD;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stat_text = texts[i];
        errno = EIO; /* an older error */
        uint64_t birth = peer_birth(pidfd, getpid());
        int error = errno;
        ck_assert_uint_eq(birth, 0);
        ck_assert_int_eq(error, ESRCH);
        ck_assert(!peer_descends(7, 1000000));
    }
    close(pidfd);
}
END_TEST

/* ESRCH leaves the birth unknown; any other error refuses the connection. */
START_TEST(births_that_cannot_be_read)
{
    static const int errors[] = {ENOENT, EACCES, EPERM, EMFILE, EIO};
    int ends[2], pidfd = pidfd_of(getpid());
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    unsigned before = unit_fds();
    kernel = KERNEL_OLD;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct peer peer = {.pidfd = -7};
        int want = i < 3 ? ESRCH : errors[i];
        faults_begin_call("fopen", 1, errors[i], true);
        uint64_t birth = peer_birth(pidfd, getpid());
        int error = errno, r = peer_of(ends[0], &peer);
        ck_assert(faults_end());
        ck_assert_uint_eq(birth, 0);
        ck_assert_int_eq(error, want);
        ck_assert_int_eq(r, want == ESRCH ? 0 : -want);
        if (r == 0) {
            ck_assert_uint_eq(peer.birth, 0);
            ck_assert_int_eq(peer.pid, getpid());
            peer_deinit(&peer);
        }
        ck_assert_uint_eq(unit_fds(), before);
    }
    kernel = KERNEL_6_9;
    struct peer peer = {.pidfd = -7};
    faults_begin_call("fstat", 1, EMFILE, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EMFILE);
    ck_assert(faults_end());
    ck_assert_int_eq(peer.pidfd, -7);
    ck_assert_uint_eq(unit_fds(), before);
    close(pidfd);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* The process ended after its file was read, so the file may be that of another one. */
START_TEST(ended_while_its_file_was_read)
{
    int pidfd = pidfd_of(getpid());
    kernel = KERNEL_OLD;
    n_wrong = 2;
    uint64_t birth = peer_birth(pidfd, getpid());
    int error = errno;
    ck_assert_uint_eq(birth, 0);
    ck_assert_int_eq(error, ESRCH);
    ck_assert_int_eq(n_wrong, 0);
    ck_assert_uint_gt(peer_birth(pidfd, getpid()), 0);
    close(pidfd);
}
END_TEST

/* --- Groups -------------------------------------------------------------- */

/* Makes the groups of this process known, if it may. Returns their number. */
static size_t set_groups(size_t n)
{
    gid_t groups[64];
    for (size_t i = 0; i < n; i++)
        groups[i] = (gid_t)(5000 + i);
    if (setgroups(n, groups) == 0)
        return n;
    int has = getgroups(0, NULL);
    ck_assert_int_ge(has, 0);
    return (size_t)has;
}

static void groups_are(const struct peer *peer, size_t n)
{
    gid_t groups[1024];
    ck_assert_uint_eq(peer->n_groups, n);
    ck_assert_int_eq(getgroups(1024, groups), (int)n);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(peer->groups[i], groups[i]);
}

START_TEST(few_and_many_groups)
{
    static const size_t numbers[] = {0, 1, 16, 17, 64};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int ends[2];
        struct peer peer;
        size_t n = set_groups(numbers[i]);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        ck_assert_int_eq(peer_of(ends[0], &peer), 0);
        groups_are(&peer, n);
        peer_deinit(&peer);
        close(ends[0]);
        close(ends[1]);
    }
}
END_TEST

static void malloc_fails(void)
{
    faults_begin_call("malloc", 1, ENOMEM, false);
}

/* A peer without groups would have fewer rights, or escape a rule for its group; so groups that
 * exist and cannot be read refuse the connection. */
START_TEST(groups_that_cannot_be_read)
{
    int ends[2];
    struct peer peer = {.pidfd = -7};
    size_t n = set_groups(3);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    unsigned before = unit_fds();
    static const int none[] = {ENOPROTOOPT, ENODATA}; /* kernels before 4.13 */
    for (size_t i = 0; i < 2; i++) {
        faults_begin_call("getsockopt", 3, none[i], false);
        ck_assert_int_eq(peer_of(ends[0], &peer), 0);
        ck_assert(faults_end());
        ck_assert_uint_eq(peer.n_groups, 0);
        peer_deinit(&peer);
        peer = (struct peer){.pidfd = -7};
    }
    faults_begin_call("getsockopt", 3, EIO, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), -EIO);
    ck_assert(faults_end());
    faults_begin_call("getsockopt", 3, ERANGE, true); /* and at the second query */
    ck_assert_int_eq(peer_of(ends[0], &peer), -ERANGE);
    ck_assert(faults_end());
    faults_begin_call("getsockopt", 3, ERANGE, false);
    faults_hook("malloc", malloc_fails);
    ck_assert_int_eq(peer_of(ends[0], &peer), -ENOMEM);
    ck_assert(faults_end());
    ck_assert_int_eq(peer.pidfd, -7);
    ck_assert_uint_eq(unit_fds(), before);
    faults_begin_call("getsockopt", 3, ERANGE, false);
    ck_assert_int_eq(peer_of(ends[0], &peer), 0);
    ck_assert(faults_end());
    groups_are(&peer, n);
    peer_deinit(&peer);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

UNIT_MAIN("peer", UNIT_TEST(births_by_inode_and_by_clock), UNIT_TEST(no_birth_in_the_file),
          UNIT_TEST(births_that_cannot_be_read), UNIT_TEST(ended_while_its_file_was_read),
          UNIT_TEST(few_and_many_groups), UNIT_TEST(groups_that_cannot_be_read),
          UNIT_TEST(a_living_process_has_not_ended), UNIT_TEST(a_living_peer),
          UNIT_TEST(a_dead_peer), UNIT_TEST(a_pid_that_was_used_again), UNIT_TEST(what_is_no_peer),
          UNIT_TEST(every_call_fails), UNIT_TEST(no_pidfd_to_be_had))
