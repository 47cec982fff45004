/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that shmviewd sends to a service manager, and the socket that it may get from it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/suite.h"

struct manager {
    int notify;   /* receives the daemon's messages */
    int listener; /* what it gets; -1: nothing */
    int second;   /* one too many; -1: none */
    const char *watchdog_usec;
    const char *option; /* one argument and its value, or NULL */
    const char *value;
};

static void fill_address(struct sockaddr_un *address, const char *name)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", place_directory(), name);
}

/* A socket of that type with a name in the test's directory. */
static int bound(const char *name, int type)
{
    struct sockaddr_un address;
    fill_address(&address, name);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int listening(const char *name)
{
    int fd = bound(name, SOCK_STREAM);
    ck_assert_int_eq(listen(fd, 16), 0);
    return fd;
}

static void manager_open(struct manager *m)
{
    *m = (struct manager){.notify = bound("notify", SOCK_DGRAM), .listener = -1, .second = -1};
}

static void forget(int *fd, const char *name)
{
    struct sockaddr_un address;
    fill_address(&address, name);
    unlink(address.sun_path);
    close(*fd);
    *fd = -1;
}

static void manager_close(struct manager *m)
{
    if (m->listener >= 0)
        forget(&m->listener, "passed");
    forget(&m->notify, "notify");
}

static void set_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* In the child. 3 and 4 are what is passed: nothing of check may be called here, whose
 * descriptors they are. */
static void become_service(const struct manager *m, const char *program, const char *log)
{
    struct sockaddr_un address;
    int n = (m->listener >= 0) + (m->second >= 0);
    fill_address(&address, "notify");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(out, STDERR_FILENO);
    int first = fcntl(m->listener, F_DUPFD_CLOEXEC, 10);
    int second = fcntl(m->second, F_DUPFD_CLOEXEC, 10);
    if (first >= 0)
        dup2(first, 3);
    if (second >= 0)
        dup2(second, 4);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    if (m->watchdog_usec)
        setenv("WATCHDOG_USEC", m->watchdog_usec, 1);
    if (n > 0) {
        set_number("LISTEN_FDS", n);
        set_number("LISTEN_PID", (int)getpid());
    }
    execl(program, program, m->option, m->value, (char *)NULL);
    _exit(127);
}

static pid_t launch(const struct manager *m, struct daemon *d, const char *socket)
{
    const char *program = daemon_program();
    *d = (struct daemon){0};
    snprintf(d->socket, sizeof d->socket, "%s/%s", place_directory(), socket);
    snprintf(d->log, sizeof d->log, "%s.log", d->socket);
    d->pid = fork();
    ck_assert_int_ge(d->pid, 0);
    if (d->pid == 0)
        become_service(m, program, d->log);
    return d->pid;
}

/* The next message, which is text. Those of the watchdog are passed over. */
static const char *message(const struct manager *m)
{
    static char text[512];
    do {
        await_readable(m->notify);
        ssize_t n = recv(m->notify, text, sizeof text - 1, 0);
        ck_assert_int_gt(n, 0);
        text[n] = '\0';
    } while (strcmp(text, "WATCHDOG=1") == 0);
    return text;
}

static bool has_message(const struct manager *m)
{
    char byte;
    return recv(m->notify, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0;
}

/* Finds the instance in the message that the daemon sends at its start. */
static void note_instance(struct daemon *d)
{
    char line[512];
    FILE *f = fopen(d->log, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, ", instance ");
        if (at)
            ck_assert_int_eq(sscanf(at, ", instance %63[^,]", d->instance), 1);
    }
    fclose(f);
    ck_assert_str_ne(d->instance, "");
    place_note_instance(d->instance);
}

static void start(const struct manager *m, struct daemon *d, const char *socket)
{
    launch(m, d, socket);
    ck_assert_str_eq(message(m), "READY=1");
    note_instance(d);
}

/* Ends the daemon, and reads its messages until then. */
static void end(const struct manager *m, struct daemon *d, int signal)
{
    ck_assert_int_eq(kill(d->pid, signal), 0);
    while (strcmp(message(m), "STOPPING=1") != 0)
        ;
    ck_assert_int_eq(process_wait(d->pid), 0);
}

START_TEST(a_passed_socket_is_served)
{
    struct manager m;
    struct daemon d;
    manager_open(&m);
    m.listener = listening("passed");
    start(&m, &d, "passed");
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create_with(conn, "seg", 10, SHMVIEW_MANUAL, 0);
    /* it leaves: the socket is the manager's, and who connects now waits */
    end(&m, &d, SIGTERM);
    ck_assert_int_eq(access(d.socket, F_OK), 0);
    ck_assert_uint_gt(place_objects(d.instance, NULL, 0), 0);
    start(&m, &d, "passed");
    OK(shmview_ping(conn));
    struct shmview_connection *other = client_connect(&d);
    struct shmview_segment *same = client_attach(other, "seg", SHMVIEW_READ);
    OK(shmview_detach(same));
    OK(shmview_disconnect(other));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    end(&m, &d, SIGINT);
    ck_assert_int_eq(access(d.socket, F_OK), 0);
    ck_assert_uint_eq(place_objects(d.instance, NULL, 0), 0);
    manager_close(&m);
}
END_TEST

START_TEST(who_connects_before_it_starts_is_served)
{
    struct manager m;
    struct daemon d;
    struct sockaddr_un address;
    manager_open(&m);
    m.listener = listening("passed");
    fill_address(&address, "passed");
    int early = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(early, (struct sockaddr *)&address, sizeof address), 0);
    const char call[] = "{\"method\":\"io.shmview.Ping\"}";
    ck_assert_int_eq(write(early, call, sizeof call), sizeof call);
    start(&m, &d, "passed");
    await_readable(early);
    char reply[64];
    ck_assert_int_gt(read(early, reply, sizeof reply), 0);
    ck_assert_int_eq(reply[0], '{');
    close(early);
    end(&m, &d, SIGINT);
    manager_close(&m);
}
END_TEST

/* Expects a daemon launched as m describes to exit with status 1 and log the reason. */
static void expect_refusal(struct manager *m, const char *socket, const char *why)
{
    struct daemon d;
    launch(m, &d, socket);
    ck_assert_int_eq(process_wait(d.pid), 1 << 8);
    ck_assert_msg(daemon_said(&d, why), "it does not say '%s'; see %s", why, d.log);
    ck_assert(!has_message(m));
    forget(&m->listener, socket);
}

static int listening_inet(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

/* Listens without a path: the kernel gives it an abstract name. */
static int listening_abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(what_cannot_be_served_is_refused)
{
    struct manager m;
    manager_open(&m);
    m.listener = open("/dev/null", O_RDWR | O_CLOEXEC);
    expect_refusal(&m, "file", "it is not a Unix stream socket");
    m.listener = bound("datagram", SOCK_DGRAM);
    expect_refusal(&m, "datagram", "it is not a Unix stream socket");
    m.listener = listening_inet();
    expect_refusal(&m, "inet", "it is not a Unix stream socket");
    m.listener = bound("silent", SOCK_STREAM);
    expect_refusal(&m, "silent", "it does not listen");
    m.listener = listening_abstract();
    expect_refusal(&m, "abstract", "it has no path");
    m.listener = listening("first");
    m.second = listening("second");
    expect_refusal(&m, "first", "2 sockets were passed, but the daemon can serve only one");
    forget(&m.second, "second");
    m.listener = listening("here");
    m.option = "--socket";
    m.value = "/somewhere/else";
    expect_refusal(&m, "here", "but --socket names /somewhere/else");
    manager_close(&m);
}
END_TEST

START_TEST(status_is_told_at_a_bounded_rate)
{
    struct manager m;
    struct daemon d;
    unsigned n = 0;
    manager_open(&m);
    m.listener = listening("passed");
    int64_t began = await_now_ns();
    start(&m, &d, "passed");
    ck_assert_str_eq(message(&m), "STATUS=0 segments, 0 clients");
    for (int i = 0; i < 300; i++)
        OK(shmview_disconnect(client_connect(&d)));
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "seg", 10);
    while (strcmp(message(&m), "STATUS=1 segment, 1 client") != 0)
        n++;
    int64_t seconds = (await_now_ns() - began) / 1000000000;
    ck_assert_msg(n <= seconds + 1, "%u messages in %d s", n, (int)seconds);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    end(&m, &d, SIGINT);
    manager_close(&m);
}
END_TEST

START_TEST(the_watchdog_is_told_as_long_as_it_lives)
{
    struct manager m;
    struct daemon d;
    char text[64];
    manager_open(&m);
    m.listener = listening("passed");
    m.watchdog_usec = "200000";
    start(&m, &d, "passed");
    for (int n = 0; n < 5;) {
        await_readable(m.notify);
        ssize_t bytes = recv(m.notify, text, sizeof text - 1, 0);
        text[bytes > 0 ? bytes : 0] = '\0';
        n += strcmp(text, "WATCHDOG=1") == 0;
    }
    end(&m, &d, SIGINT);
    manager_close(&m);
}
END_TEST

/* A session is started by a library in some program, which may be a service. */
START_TEST(a_session_says_nothing)
{
    struct manager m;
    struct daemon d;
    struct sockaddr_un address;
    char arguments[200], text[1000];
    manager_open(&m);
    fill_address(&address, "notify");
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "1000", 1);
    fill_address(&address, "session");
    snprintf(arguments, sizeof arguments, "--session --idle-exit 600 --socket %s",
             address.sun_path);
    ck_assert_int_eq(daemon_run(arguments, text, sizeof text), 0);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    daemon_adopt(&d, address.sun_path);
    struct shmview_connection *conn = client_connect(&d);
    OK(shmview_ping(conn));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    ck_assert(!has_message(&m));
    manager_close(&m);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_passed_socket_is_served),
        SUITE_TEST(who_connects_before_it_starts_is_served),
        SUITE_TEST(what_cannot_be_served_is_refused),
        SUITE_TEST(status_is_told_at_a_bounded_rate),
        SUITE_TEST(the_watchdog_is_told_as_long_as_it_lives),
        SUITE_TEST(a_session_says_nothing),
        SUITE_END,
    };
    const char *has = getenv("SHMVIEW_HAS_SYSTEMD");
    if (has && strcmp(has, "0") == 0) {
        puts("the daemon was built without libsystemd");
        return 77;
    }
    return suite_main("activation", tests);
}
