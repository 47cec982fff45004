/* SPDX-License-Identifier: Apache-2.0 */
/* Checks connection.c of the library: how it finds a daemon, and what it does with wrong
 * replies. */
#include "client/link/connection.h"

#include <sys/wait.h>

#include "common/base/util.h"
#include "unit/faults.h"
#include "unit/stub.h"

static struct stub stub;
static struct shmview_connection *conn;

static void begin(const struct stub_step *steps, size_t n)
{
    stub_start(&stub, steps, n);
    int r = shmview_connect(stub.path, 0, &conn);
    ck_assert_msg(r == 0, "%s", shmview_error_text());
}

static void end(void)
{
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}

static void assert_fails(int r, int error, const char *part)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

/* --- Calls --------------------------------------------------------------- */

START_TEST(ping)
{
    const struct stub_step steps[] = {STUB_GREETING, STUB_PONG, STUB_PONG};
    begin(steps, 3);
    ck_assert_int_eq(shmview_ping(conn), 0);
    ck_assert_int_eq(shmview_ping(conn), 0);
    ck_assert_str_eq(stub.requests[1], "{\"method\":\"io.shmview.Ping\",\"parameters\":{}}");
    ck_assert_int_eq(fcntl(conn->fd, F_GETFD), FD_CLOEXEC);
    end();
}
END_TEST

START_TEST(reply_byte_by_byte)
{
    struct stub_step steps[] = {STUB_GREETING, STUB_PONG};
    steps[1].one_by_one = true;
    begin(steps, 2);
    ck_assert_int_eq(shmview_ping(conn), 0);
    end();
}
END_TEST

START_TEST(errors_of_the_daemon)
{
    static const struct {
        const char *reply;
        int error;
        const char *part;
    } cases[] = {
        {"{'error':'io.shmview.SegmentNotFound','parameters':{'name':'a','reason':'none a'}}",
         SHMVIEW_ERR_NOT_FOUND, "none a"},
        {"{'error':'io.shmview.NoSpace','parameters':{}}", SHMVIEW_ERR_NO_SPACE,
         "not enough shared memory"},
        {"{'error':'org.varlink.service.PermissionDenied'}", SHMVIEW_ERR_DENIED, "permission"},
        {"{'error':'io.shmview.Failed','parameters':{'reason':'it hurts'}}", SHMVIEW_ERR_SYSTEM,
         "it hurts"},
        {"{'error':'com.example.New','parameters':{}}", SHMVIEW_ERR_PROTOCOL, "com.example.New"},
        {"{'error':'io.shmview.NoSpace','parameters':{'reason':7}}", SHMVIEW_ERR_NO_SPACE, "not"},
    };
    struct stub_step steps[7] = {STUB_GREETING};
    for (int i = 0; i < 6; i++)
        steps[i + 1] = (struct stub_step){.method = "Ping", .reply = cases[i].reply};
    begin(steps, 7);
    for (int i = 0; i < 6; i++) /* each is a valid reply, so the connection lives */
        assert_fails(shmview_ping(conn), cases[i].error, cases[i].part);
    end();
}
END_TEST

/* Anything else that the daemon sends ends the connection. */
START_TEST(what_is_no_answer)
{
    static const struct {
        const char *reply;
        int error;
        size_t bytes;
        size_t n_fds;
    } cases[] = {
        {"{'parameters':", SHMVIEW_ERR_PROTOCOL, 0, 0},
        {"[]", SHMVIEW_ERR_PROTOCOL, 0, 0},
        {"", SHMVIEW_ERR_PROTOCOL, 0, 0},
        {"{'error':1}", SHMVIEW_ERR_PROTOCOL, 0, 0},
        {"{'parameters':[]}", SHMVIEW_ERR_PROTOCOL, 0, 0},
        {"HTTP/1.1 200 OK\r\n", SHMVIEW_ERR_PROTOCOL, 0, 0},
        {"{\"parameters\":{}}\0{\"parameters\":{}}", SHMVIEW_ERR_PROTOCOL, 36, 0},
        {"{\"parameters\":{}}\0{", SHMVIEW_ERR_PROTOCOL, 19, 0},
    };
    unsigned before = unit_fds();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stub_step steps[2] = {STUB_GREETING};
        steps[1] = (struct stub_step){.method = "Ping",
                                      .reply = cases[i].reply,
                                      .bytes = cases[i].bytes,
                                      .n_fds = cases[i].n_fds};
        begin(steps, 2);
        assert_fails(shmview_ping(conn), cases[i].error, stub.path);
        ck_assert_int_eq(conn->fd, -1);
        end();
        ck_assert_uint_eq(unit_fds(), before);
    }
}
END_TEST

/* A request to a daemon that exits is repeated to the next one. */
START_TEST(a_daemon_that_comes_back)
{
    const struct stub_step hang_up = {.method = "Ping", .reply = NULL};
    const struct stub_step steps[] = {STUB_GREETING, hang_up,       STUB_GREETING,
                                      hang_up,       STUB_GREETING, STUB_PONG};
    begin(steps, 6);
    ck_assert_int_eq(shmview_ping(conn), 0);
    end();
}
END_TEST

START_TEST(a_daemon_that_always_hangs_up)
{
    const struct stub_step hang_up = {.method = "Ping", .reply = NULL};
    const struct stub_step steps[] = {STUB_GREETING, hang_up,       STUB_GREETING,
                                      hang_up,       STUB_GREETING, hang_up};
    begin(steps, 6);
    assert_fails(shmview_ping(conn), SHMVIEW_ERR_DISCONNECTED, stub.path);
    end();
}
END_TEST

/* The library cannot know whether the daemon did it, so it does not ask again. */
START_TEST(what_may_be_done_once)
{
    static const char *const methods[] = {"Create", "Remove", "DefineLayout"};
    for (size_t i = 0; i < 3; i++) {
        struct stub_step steps[] = {STUB_GREETING, {.method = methods[i], .reply = NULL}};
        struct reply reply;
        char method[64];
        begin(steps, 2);
        snprintf(method, sizeof method, "io.shmview.%s", methods[i]);
        assert_fails(connection_call(conn, method, wire_attachment_text(method, 1), &reply),
                     SHMVIEW_ERR_DISCONNECTED, stub.path);
        end();
    }
}
END_TEST

/* Descriptors that come with a reply that should have none are closed. */
START_TEST(descriptors_nobody_asked_for)
{
    struct stub_step steps[] = {STUB_GREETING, STUB_PONG, STUB_PONG};
    steps[1].n_fds = 3; /* three times standard input */
    begin(steps, 3);
    unsigned before = unit_fds();
    ck_assert_int_eq(shmview_ping(conn), 0);
    ck_assert_uint_eq(unit_fds(), before);
    ck_assert_int_eq(shmview_ping(conn), 0);
    end();
}
END_TEST

START_TEST(no_parameters_for_want_of_memory)
{
    const struct stub_step steps[] = {STUB_GREETING, STUB_PONG};
    struct reply reply;
    begin(steps, 2);
    assert_fails(connection_call(conn, "io.shmview.Ping", NULL, &reply), SHMVIEW_ERR_NO_MEMORY,
                 "out of memory");
    ck_assert_int_eq(shmview_ping(conn), 0); /* nothing was sent */
    end();
}
END_TEST

struct pinger {
    unsigned n, failed;
};

static void *ping_often(void *arg)
{
    struct pinger *p = arg;
    for (unsigned i = 0; i < p->n; i++)
        p->failed += shmview_ping(conn) != 0;
    return NULL;
}

START_TEST(threads_take_turns)
{
    static struct stub_step steps[401];
    for (int i = 0; i < 401; i++)
        steps[i] = i ? (struct stub_step)STUB_PONG : (struct stub_step)STUB_GREETING;
    begin(steps, 401);
    struct pinger p[4] = {{100, 0}, {100, 0}, {100, 0}, {100, 0}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ping_often, &p[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(p[i].failed, 0);
    }
    end();
}
END_TEST

/* A child gets a socket of its own, and that of its parent is unchanged. */
START_TEST(a_forked_child_connects_itself)
{
    const struct stub_step steps[] = {STUB_GREETING, STUB_PONG, STUB_GREETING, STUB_PONG,
                                      STUB_PONG};
    int go[2];
    begin(steps, 5);
    ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        if (read(go[0], &byte, 1) != 1)
            _exit(3);
        _exit(shmview_ping(conn) || shmview_ping(conn) ? 1 : shmview_disconnect(conn) ? 2 : 0);
    }
    int status;
    ck_assert_int_eq(shmview_ping(conn), 0);
    /* the stub serves one connection after the other */
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    ck_assert_int_eq(write(go[1], "x", 1), 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(go[0]);
    close(go[1]);
    stub_end(&stub);
}
END_TEST

/* --- Connecting ---------------------------------------------------------- */

START_TEST(bad_arguments)
{
    char path[300];
    struct shmview_connection *untouched = (void *)path;
    conn = untouched;
    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[108] = '\0';
    assert_fails(shmview_connect(path, 0, &conn), SHMVIEW_ERR_INVALID, "at most 107 bytes");
    assert_fails(shmview_connect("", 0, &conn), SHMVIEW_ERR_INVALID, "empty");
    assert_fails(shmview_connect("/x", 2, &conn), SHMVIEW_ERR_INVALID, "unknown flags 0x2");
    assert_fails(shmview_connect(NULL, ~0u, &conn), SHMVIEW_ERR_INVALID, "unknown flags");
    path[107] = '\0';
    path[0] = '/';
    assert_fails(shmview_connect(path, 0, &conn), SHMVIEW_ERR_NO_DAEMON, path);
    ck_assert_ptr_eq(conn, untouched);
    ck_assert_int_eq(shmview_disconnect(NULL), 0);
}
END_TEST

START_TEST(nobody_there)
{
    char path[128];
    snprintf(path, sizeof path, "%s/nobody", unit_directory());
    assert_fails(shmview_connect(path, 0, &conn), SHMVIEW_ERR_NO_DAEMON, "No such file");
    close(open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    assert_fails(shmview_connect(path, 0, &conn), SHMVIEW_ERR_NO_DAEMON, "refused");
    strcat(path, "/below");
    assert_fails(shmview_connect(path, 0, &conn), SHMVIEW_ERR_NO_DAEMON, "Not a directory");
}
END_TEST

START_TEST(something_else_answers)
{
    static const struct {
        const char *reply;
        int error;
    } cases[] = {
        {NULL, SHMVIEW_ERR_NO_DAEMON}, /* a daemon that is just exiting */
        {"hello", SHMVIEW_ERR_PROTOCOL},
        {"{'error':'org.varlink.service.InterfaceNotFound','parameters':{}}", SHMVIEW_ERR_PROTOCOL},
        {"{'error':'org.varlink.service.PermissionDenied'}", SHMVIEW_ERR_DENIED},
    };
    unsigned before = unit_fds();
    for (size_t i = 0; i < 4; i++) {
        const struct stub_step step = {.method = "Claim", .reply = cases[i].reply};
        stub_start(&stub, &step, 1);
        assert_fails(shmview_connect(stub.path, 0, &conn), cases[i].error, "");
        stub_end(&stub);
        ck_assert_uint_eq(unit_fds(), before);
    }
}
END_TEST

START_TEST(by_the_environment)
{
    const struct stub_step steps[] = {STUB_GREETING};
    char socket[128];
    stub_start(&stub, steps, 1);
    snprintf(socket, sizeof socket, "%s", stub.path);
    setenv("SHMVIEW_SOCKET", socket, 1);
    ck_assert_int_eq(shmview_connect(NULL, 0, &conn), 0);
    ck_assert_str_eq(conn->where.path, socket);
    end();
    /* the address names one socket: the library tries no other and starts no daemon */
    strcat(socket, "-none");
    setenv("SHMVIEW_SOCKET", socket, 1);
    assert_fails(shmview_connect(NULL, 0, &conn), SHMVIEW_ERR_NO_DAEMON, socket);
    ck_assert_ptr_null(strchr(shmview_error_text(), ','));
}
END_TEST

START_TEST(the_users_daemon)
{
    const struct stub_step steps[] = {STUB_GREETING};
    char path[108], dir[80];
    unsetenv("SHMVIEW_SOCKET");
    setenv("XDG_RUNTIME_DIR", unit_directory(), 1);
    stub_start(&stub, steps, 1);
    snprintf(dir, sizeof dir, "%s/shmviewd", unit_directory());
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/shmviewd/io.shmview", unit_directory());
    ck_assert_int_eq(rename(stub.path, path), 0);
    ck_assert_int_eq(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &conn), 0);
    ck_assert_str_eq(conn->where.path, path);
    end();
}
END_TEST

/* The socket exists and this user may not connect: the library does not wait. */
START_TEST(a_socket_of_others)
{
    char dir[80], path[108];
    int64_t took;
    int n_tries = 0;
    unsetenv("SHMVIEW_SOCKET");
    setenv("XDG_RUNTIME_DIR", unit_directory(), 1);
    snprintf(dir, sizeof dir, "%s/shmviewd", unit_directory());
    snprintf(path, sizeof path, "%s/io.shmview", dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    close(open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    do {
        int64_t began = now_ns();
        for (int named = 0; named < 2; named++) {
            faults_begin_call("connect", 1, EACCES, true);
            int r = shmview_connect(named ? path : NULL, SHMVIEW_CONNECT_NO_START, &conn);
            ck_assert(faults_end());
            assert_fails(r, SHMVIEW_ERR_DENIED, "this user may not connect to /");
            unit_assert_holds(shmview_error_text(), path);
        }
        took = now_ns() - began;
    } while (took >= 800000000 && ++n_tries < 5); /* the machine may be busy */
    ck_assert_int_lt(took, 800000000);
    /* if even the socket cannot be seen, the library looks for another daemon */
    unlink(path);
    faults_begin_call("connect", 1, EACCES, true);
    int r = shmview_connect(path, 0, &conn);
    ck_assert(faults_end());
    assert_fails(r, SHMVIEW_ERR_NO_DAEMON, "Permission denied");
}
END_TEST

START_TEST(no_daemon_at_all)
{
    if (access(ADDRESS_SYSTEM, F_OK) == 0)
        return; /* this machine has one */
    unsetenv("SHMVIEW_SOCKET");
    setenv("XDG_RUNTIME_DIR", unit_directory(), 1);
    assert_fails(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &conn), SHMVIEW_ERR_NO_DAEMON,
                 "/shmviewd/io.shmview (No such file");
    unit_assert_holds(shmview_error_text(), ADDRESS_SYSTEM);
    unit_assert_holds(shmview_error_text(), "/shmviewd/session/io.shmview");
    setenv("SHMVIEW_DAEMON", "/nowhere/shmviewd", 1);
    assert_fails(shmview_connect(NULL, 0, &conn), SHMVIEW_ERR_NO_DAEMON, "/nowhere/shmviewd");
    setenv("SHMVIEW_DAEMON", "/bin/false", 1);
    assert_fails(shmview_connect(NULL, 0, &conn), SHMVIEW_ERR_NO_DAEMON, "starting one");
    char long_dir[200];
    memset(long_dir, 'd', sizeof long_dir);
    long_dir[0] = '/';
    long_dir[100] = '\0';
    setenv("XDG_RUNTIME_DIR", long_dir, 1);
    assert_fails(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &conn), SHMVIEW_ERR_INVALID,
                 "XDG_RUNTIME_DIR");
}
END_TEST

/* If others may write to the directory, the daemon must belong to root or to this user. */
START_TEST(served_by_another_user)
{
    if (geteuid() != 0)
        return;
    char dir[80], path[108];
    int ready[2];
    unsetenv("SHMVIEW_SOCKET");
    setenv("XDG_RUNTIME_DIR", unit_directory(), 1);
    snprintf(dir, sizeof dir, "%s/shmviewd", unit_directory());
    snprintf(path, sizeof path, "%s/io.shmview", dir);
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    ck_assert_int_eq(chmod(unit_directory(), 0755), 0);
    ck_assert_int_eq(chmod(dir, 0777), 0);
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        strcpy(address.sun_path, path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setresuid(65534, 65534, 65534) ||
            bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 8))
            _exit(1);
        if (write(ready[1], "x", 1) != 1)
            _exit(2);
        pause();
    }
    char byte;
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    assert_fails(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &conn), SHMVIEW_ERR_DENIED,
                 "served by uid 65534");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
}
END_TEST

START_TEST(disconnect_while_attached)
{
    const struct stub_step steps[] = {STUB_GREETING, STUB_PONG};
    begin(steps, 2);
    conn->n_segments = 2;
    assert_fails(shmview_disconnect(conn), SHMVIEW_ERR_BUSY, "2 segments are still attached");
    ck_assert_int_eq(shmview_ping(conn), 0); /* it lives */
    conn->n_segments = 0;
    end();
}
END_TEST

/* --- Failures ------------------------------------------------------------ */

START_TEST(every_failure_of_a_connect)
{
    static struct stub_step steps[64];
    const unsigned classes[] = {FAULTS_MEMORY, FAULTS_SYSTEM};
    for (int i = 0; i < 64; i++)
        steps[i] = (struct stub_step)STUB_GREETING;
    ck_assert_int_eq(process_init(), 0);
    stub_start(&stub, steps, 64);
    unsigned before = unit_fds();
    for (int i = 0; i < 2; i++) {
        int r = 1;
        for (unsigned n = 1; r; n++) {
            faults_begin(classes[i], n);
            r = shmview_connect(stub.path, 0, &conn);
            faults_end();
            ck_assert_int_le(r, 0);
            if (r)
                ck_assert_str_ne(shmview_error_text(), "");
            ck_assert_uint_lt(n, 60);
        }
        ck_assert_int_eq(shmview_disconnect(conn), 0);
    }
    shutdown(stub.listener, SHUT_RDWR);
    pthread_join(stub.thread, NULL);
    ck_assert_uint_eq(unit_fds(), before);
    close(stub.listener);
}
END_TEST

START_TEST(interrupted_connect)
{
    const struct stub_step steps[] = {STUB_GREETING};
    stub_start(&stub, steps, 1);
    faults_begin_call("connect", 1, EINTR, false);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    ck_assert(faults_end());
    end();
}
END_TEST

UNIT_MAIN("client_connection", UNIT_TEST(ping), UNIT_TEST(reply_byte_by_byte),
          UNIT_TEST(errors_of_the_daemon), UNIT_TEST(what_is_no_answer),
          UNIT_TEST(a_daemon_that_comes_back), UNIT_TEST(a_daemon_that_always_hangs_up),
          UNIT_TEST(what_may_be_done_once), UNIT_TEST(descriptors_nobody_asked_for),
          UNIT_TEST(no_parameters_for_want_of_memory), UNIT_TEST(threads_take_turns),
          UNIT_TEST(a_forked_child_connects_itself), UNIT_TEST(bad_arguments),
          UNIT_TEST(nobody_there), UNIT_TEST(something_else_answers), UNIT_TEST(by_the_environment),
          UNIT_TEST(the_users_daemon), UNIT_TEST(a_socket_of_others), UNIT_TEST(no_daemon_at_all),
          UNIT_TEST(served_by_another_user), UNIT_TEST(disconnect_while_attached),
          UNIT_TEST(every_failure_of_a_connect), UNIT_TEST(interrupted_connect))
