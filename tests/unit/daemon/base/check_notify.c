/* SPDX-License-Identifier: Apache-2.0 */
/* Checks notify.c: a service manager that reads nothing does not stop the daemon, what is sent to
 * one that reads, and what it passed. */
#include "daemon/base/notify.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/util.h"
#include "unit/faults.h"
#include "unit/unit.h"

static uv_loop_t loop;
static struct notify notify;
static int manager;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static int log_fd;

/* Lets this test log into memory. */
static void capture(void)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    dup2(log_fd, 2);
}

/* Returns whether something was logged since capture(). */
static bool has_logged(void)
{
    struct stat st;
    ck_assert_int_eq(fstat(log_fd, &st), 0);
    close(log_fd);
    return st.st_size > 0;
}

/* Opens the socket of a manager, and returns a socket that is connected to it. */
static int open_manager(bool is_abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[sizeof address.sun_path];
    snprintf(path, sizeof path, "%s%s/n", is_abstract ? "@" : "", unit_directory());
    memcpy(address.sun_path, path, sizeof path);
    if (is_abstract)
        address.sun_path[0] = '\0';
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, n), 0);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, n), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    return fd;
}

/* Begins with a manager whose queue is full. */
static void begin(bool is_abstract)
{
    int filler = open_manager(is_abstract);
    while (send(filler, "x", 1, 0) == 1)
        continue;
    ck_assert_int_eq(errno, EAGAIN);
    close(filler);
    ck_assert_int_eq(notify_init(&notify, &loop), 0);
}

/* Begins with a manager whose queue is empty. */
static void begin_empty(void)
{
    close(open_manager(false));
    ck_assert_int_eq(notify_init(&notify, &loop), 0);
}

static void end(void)
{
    alarm_close(&notify.again, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    close(manager);
    unit_sweep(unit_directory(), "n");
}

/* Returns the next message after those that filled the queue, or "". */
static const char *receive(void)
{
    static char text[200];
    ssize_t n;
    do
        n = recv(manager, text, sizeof text - 1, 0);
    while (n == 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void try_status(bool is_abstract)
{
    begin(is_abstract);
    notify_status(&notify, (struct notify_status){.n_segments = 2, .n_clients = 1});
    ck_assert_str_eq(receive(), "");
    int64_t until = now_ns() + 20000000000;
    const char *text = "";
    while (!text[0] && now_ns() < until) {
        uv_run(&loop, UV_RUN_ONCE);
        text = receive();
    }
    ck_assert_str_eq(text, "STATUS=2 segments, 1 client");
    end();
}

START_TEST(a_status_is_sent_later)
{
    try_status(false);
    try_status(true);
}
END_TEST

START_TEST(a_change_of_state_waits_for_a_moment)
{
    begin(false);
    capture();
    notify_ready();
    ck_assert(has_logged());
    ck_assert_str_eq(receive(), "");
    notify_ready();
    ck_assert_str_eq(receive(), "READY=1");
    end();
}
END_TEST

/* --- A manager that reads ------------------------------------------------ */

/* Runs the loop until the next message, and returns it. */
static const char *await(void)
{
    const char *text = receive();
    while (!text[0]) {
        uv_run(&loop, UV_RUN_ONCE);
        text = receive();
    }
    return text;
}

static void status(unsigned n_segments, unsigned n_clients)
{
    notify_status(&notify, (struct notify_status){n_segments, n_clients});
}

/* The first change is sent at once, and the last one of a second after it. */
START_TEST(a_status_at_most_once_a_second)
{
    begin_empty();
    int64_t before = now_ns();
    status(1, 0);
    ck_assert_str_eq(receive(), "STATUS=1 segment, 0 clients");
    status(1, 0);
    status(5, 5);
    status(2, 1);
    ck_assert_str_eq(receive(), "");
    ck_assert_str_eq(await(), "STATUS=2 segments, 1 client");
    ck_assert_int_ge(now_ns() - before, 1000000000);
    end();
}
END_TEST

/* Numbers that are the same again after a second are not sent. */
START_TEST(a_status_that_has_changed_back)
{
    begin_empty();
    status(0, 1);
    ck_assert_str_eq(receive(), "STATUS=0 segments, 1 client");
    status(5, 5);
    status(0, 1);
    while (notify.again.is_set)
        uv_run(&loop, UV_RUN_ONCE);
    ck_assert_str_eq(receive(), "");
    status(0, 1);
    ck_assert(!notify.again.is_set);
    ck_assert_str_eq(receive(), "");
    status(0, 2);
    ck_assert_str_eq(receive(), "STATUS=0 segments, 2 clients");
    end();
}
END_TEST

START_TEST(a_status_after_the_end)
{
    begin_empty();
    alarm_close(&notify.again, NULL);
    status(1, 1);
    ck_assert_str_eq(receive(), "");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    close(manager);
}
END_TEST

START_TEST(changes_of_state)
{
    long long usec;
    begin_empty();
    int64_t before = now_ns() / 1000;
    notify_ready();
    ck_assert_str_eq(receive(), "READY=1");
    notify_reloading();
    ck_assert_int_eq(sscanf(receive(), "RELOADING=1\nMONOTONIC_USEC=%lld", &usec), 1);
    ck_assert_int_ge(usec, before);
    ck_assert_int_le(usec, now_ns() / 1000);
    notify_stopping();
    ck_assert_str_eq(receive(), "STOPPING=1");
    end();
}
END_TEST

START_TEST(descriptors_are_stored)
{
    char control[CMSG_SPACE(sizeof(int))], text[100];
    struct iovec iov = {.iov_base = text, .iov_len = sizeof text};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int passed, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct stat st, wanted;
    begin_empty();
    ck_assert_int_eq(notify_store(null, UINT64_MAX, 0), 0);
    ssize_t n = recvmsg(manager, &m, MSG_CMSG_CLOEXEC);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_str_eq(text, "FDSTORE=1\nFDPOLL=0\nFDNAME=memory-18446744073709551615");
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    ck_assert_ptr_nonnull(c);
    memcpy(&passed, CMSG_DATA(c), sizeof passed);
    ck_assert_int_eq(fstat(passed, &st), 0);
    ck_assert_int_eq(fstat(null, &wanted), 0);
    ck_assert_uint_eq(st.st_rdev, wanted.st_rdev);
    close(passed);
    ck_assert_int_eq(notify_unstore(7, 0), 0);
    ck_assert_str_eq(receive(), "FDSTOREREMOVE=1\nFDNAME=memory-7");
    faults_begin_call("socket", 1, EMFILE, false);
    ck_assert_int_eq(notify_store(null, 1, 0), -EMFILE);
    ck_assert(faults_end());
    ck_assert_str_eq(receive(), "");
    close(null);
    end();
}
END_TEST

/* --- No manager ---------------------------------------------------------- */

START_TEST(addresses_of_no_manager)
{
    char longest[200], path[100];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    snprintf(path, sizeof path, "%s/nobody", unit_directory());
    begin_empty();
    ck_assert_int_eq(chdir(unit_directory()), 0);
    const char *const addresses[] = {"", "/", "@", "./n", longest, path};
    capture();
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        setenv("NOTIFY_SOCKET", addresses[i], 1);
        ck_assert_int_eq(notify_unstore(7, 0), -ENOENT);
        notify_ready();
    }
    ck_assert(!has_logged());
    ck_assert_str_eq(receive(), ""); /* a relative path is none, although the socket is there */
    ck_assert_int_eq(chdir("/"), 0);
    end();
}
END_TEST

START_TEST(no_manager_is_wanted)
{
    notify_ignore();
    ck_assert(!notify_is_managed());
    capture();
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(notify_init(&notify, &loop), 0);
    status(1, 1);
    ck_assert(!notify.again.is_set);
    notify_ready();
    notify_stopping();
    ck_assert_int_eq(notify_unstore(7, 0), -ENOENT);
    ck_assert_int_eq(notify_take_socket(), -1);
    ck_assert(!has_logged());
    alarm_close(&notify.again, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

/* --- The watchdog -------------------------------------------------------- */

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    uv_close(handle, NULL);
}

/* A time of less than two milliseconds is still one that the loop can keep. */
START_TEST(watchdog)
{
    setenv("WATCHDOG_USEC", "1", 1);
    begin_empty();
    if (notify_is_managed())
        for (int i = 0; i < 3; i++)
            ck_assert_str_eq(await(), "WATCHDOG=1");
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    close(notify.again.fd);
    if (notify_is_managed())
        close(notify.watchdog.fd);
    close(manager);
}
END_TEST

START_TEST(no_descriptors_for_the_clock)
{
    struct rlimit before, limit;
    close(open_manager(false));
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int more = 0; more < (notify_is_managed() ? 2 : 1); more++) {
        limit = (struct rlimit){(rlim_t)(next + more), before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert_int_eq(notify_init(&notify, &loop), -EMFILE);
        setenv("WATCHDOG_USEC", "1000000", 1); /* which needs a second alarm */
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert(!notify.watchdog.is_set);
        if (more)
            alarm_close(&notify.again, NULL);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    close(manager);
}
END_TEST

/* --- Descriptors that were passed ---------------------------------------- */

static uint64_t taken[8];
static int taken_fds[8], n_taken, failing = -1;

static int take(int fd, uint64_t number)
{
    taken[n_taken] = number;
    taken_fds[n_taken++] = fd;
    return fd == failing ? -EBADF : 0;
}

/* Passes so many descriptors with these names, and returns what notify_take_socket() does. */
static int pass(const char *n, const char *names)
{
    char pid[16];
    int first = dup(2), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", n, 1);
    setenv("LISTEN_FDNAMES", names, 1);
    dup2(null, 2); /* an error is logged */
    int r = notify_take_socket();
    dup2(first, 2);
    close(null);
    close(first);
    n_taken = 0;
    return r;
}

/* Descriptors 3 to 6 are those that were passed. What this process has there is moved. */
START_TEST(what_was_passed)
{
    setenv("NOTIFY_SOCKET", "/nowhere", 1);
    if (!notify_is_managed())
        return;
    unsigned n_before = unit_fds();
    int saved[4], low = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int null = fcntl(low, F_DUPFD_CLOEXEC, 30);
    close(low);
    for (int i = 0; i < 4; i++)
        saved[i] = fcntl(3 + i, F_DUPFD_CLOEXEC, 20);
    for (int i = 0; i < 4; i++)
        dup2(null, 3 + i);
    ck_assert_int_eq(pass("1", "web"), 3);
    ck_assert_int_eq(notify_each_stored(take), 0);
    ck_assert_int_eq(n_taken, 0);
    ck_assert_int_eq(pass("4", "memory-7:memory-:web:memory-18446744073709551615"), 5);
    ck_assert_int_eq(notify_each_stored(take), 0);
    ck_assert_int_eq(n_taken, 3);
    ck_assert(taken[0] == 7 && taken[1] == 0 && taken[2] == UINT64_MAX);
    ck_assert(taken_fds[0] == 3 && taken_fds[1] == 4 && taken_fds[2] == 6);
    ck_assert_int_eq(notify_each_stored(take), 0); /* once */
    ck_assert_int_eq(n_taken, 3);
    /* the others are offered, too, if one cannot be taken */
    ck_assert_int_eq(pass("2", "memory-1:memory-2"), -1);
    failing = 3;
    ck_assert_int_eq(notify_each_stored(take), -EBADF);
    ck_assert_int_eq(n_taken, 2);
    ck_assert_int_eq(pass("3", "web:memory-1:other"), -E2BIG);
    ck_assert_int_eq(notify_each_stored(take), 0);
    ck_assert_int_eq(n_taken, 1);
    ck_assert_int_eq(pass("many", "web"), -E2BIG);
    ck_assert_int_eq(notify_each_stored(take), 0);
    ck_assert_int_eq(n_taken, 0);
    close(null);
    for (int i = 0; i < 4; i++) {
        close(3 + i);
        if (saved[i] < 0)
            continue;
        dup2(saved[i], 3 + i);
        close(saved[i]);
    }
    ck_assert_uint_eq(unit_fds(), n_before);
}
END_TEST

UNIT_MAIN("notify", UNIT_TEST(a_status_is_sent_later),
          UNIT_TEST(a_change_of_state_waits_for_a_moment),
          UNIT_TEST(a_status_at_most_once_a_second), UNIT_TEST(a_status_that_has_changed_back),
          UNIT_TEST(a_status_after_the_end), UNIT_TEST(changes_of_state),
          UNIT_TEST(descriptors_are_stored), UNIT_TEST(addresses_of_no_manager),
          UNIT_TEST(no_manager_is_wanted), UNIT_TEST(watchdog),
          UNIT_TEST(no_descriptors_for_the_clock), UNIT_TEST(what_was_passed))
