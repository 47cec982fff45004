/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of sealed segments in the descriptor store of a service manager. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/suite.h"

#define N_SLOW      20
#define STORED_MOST (3 * N_SLOW)

/* Plays the manager: its socket, and what it stores. */
static int manager = -1;
static struct {
    char name[64];
    int fd;
} stored[STORED_MOST];
static unsigned n_stored;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct daemon d;

static const struct shmview_create_options sealed = {
    .struct_bytes = sizeof sealed,
    .lifetime = SHMVIEW_MANUAL,
    .backing = SHMVIEW_BACKING_SEALED,
};

static void open_manager(void)
{
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", place_directory());
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, sizeof address), 0);
}

static void close_manager(void)
{
    unlink(address.sun_path);
    close(manager);
    while (n_stored)
        close(stored[--n_stored].fd);
}

static void act(const char *text, int fd)
{
    const char *at = strstr(text, "FDNAME=");
    char name[64] = "";
    if (at)
        ck_assert_int_eq(sscanf(at, "FDNAME=%63[^\n]", name), 1);
    if (strncmp(text, "FDSTORE=1\n", 10) == 0) {
        ck_assert_int_ge(fd, 0);
        ck_assert_uint_lt(n_stored, STORED_MOST);
        snprintf(stored[n_stored].name, sizeof stored[0].name, "%s", name);
        stored[n_stored++].fd = fd;
    } else if (strncmp(text, "FDSTOREREMOVE=1\n", 16) == 0) {
        for (unsigned i = 0; i < n_stored; i++)
            if (strcmp(stored[i].name, name) == 0) {
                close(stored[i].fd);
                stored[i--] = stored[--n_stored];
            }
    } else {
        ck_assert_int_eq(fd, -1);
    }
}

/* Reads messages. Returns whether the last one was text; NULL: until the queue is empty. */
static void read_until(const char *text)
{
    for (;;) {
        char bytes[512];
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = {bytes, sizeof bytes - 1};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
        int fd = -1;
        if (text)
            await_readable(manager);
        ssize_t n = recvmsg(manager, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n < 0 && !text)
            return;
        ck_assert_int_gt(n, 0);
        bytes[n] = '\0';
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
        act(bytes, fd);
        if (text && strcmp(bytes, text) == 0)
            return;
    }
}

/* In the child: passes what is stored, from 3 on. */
static void become_service(const char *program)
{
    char names[STORED_MOST * 64] = "", text[16];
    int copies[STORED_MOST];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int out = open(d.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(out, STDERR_FILENO);
    for (unsigned i = 0; i < n_stored; i++) {
        copies[i] = fcntl(stored[i].fd, F_DUPFD_CLOEXEC, 100);
        strcat(names, i ? ":" : "");
        strcat(names, stored[i].name);
    }
    for (unsigned i = 0; i < n_stored; i++)
        dup2(copies[i], (int)(3 + i));
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    if (n_stored) {
        snprintf(text, sizeof text, "%u", n_stored);
        setenv("LISTEN_FDS", text, 1);
        snprintf(text, sizeof text, "%d", (int)getpid());
        setenv("LISTEN_PID", text, 1);
        setenv("LISTEN_FDNAMES", names, 1);
    }
    execl(program, program, "--socket", d.socket, (char *)NULL);
    _exit(127);
}

static void start(void)
{
    const char *program = daemon_program();
    snprintf(d.socket, sizeof d.socket, "%s/kept", place_directory());
    snprintf(d.log, sizeof d.log, "%s.log", d.socket);
    d.pid = fork();
    ck_assert_int_ge(d.pid, 0);
    if (d.pid == 0)
        become_service(program);
    read_until("READY=1");
    if (d.instance[0])
        return;
    char line[512];
    FILE *f = fopen(d.log, "re");
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, ", instance ");
        if (at)
            ck_assert_int_eq(sscanf(at, ", instance %63[^,]", d.instance), 1);
    }
    fclose(f);
    place_note_instance(d.instance);
}

static void finish(int signal)
{
    ck_assert_int_eq(kill(d.pid, signal), 0);
    process_wait(d.pid);
    d.pid = 0;
    read_until(NULL);
}

static bool is_regular(int fd)
{
    return fcntl(fd, F_GET_SEALS) >= 0;
}

START_TEST(the_store_keeps_sealed_segments)
{
    struct shmview_connection *conn;
    struct shmview_segment *s, *other;
    static const int signals[] = {SIGTERM, SIGKILL};
    open_manager();
    start();
    conn = client_connect(&d);
    OK(shmview_create(conn, "s", 5000, &sealed, &s));
    strcpy(shmview_data(s), "bytes");
    read_until(NULL);
    ck_assert_uint_eq(n_stored, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(is_regular(stored[i].fd));
    for (int i = 0; i < 2; i++) {
        OK(shmview_lock(s));
        finish(signals[i]);
        ck_assert_uint_eq(n_stored, 3);
        start();
        other = client_attach(conn, "s", SHMVIEW_READ);
        ck_assert_str_eq(shmview_data(other), "bytes");
        REFUSED(shmview_trylock(other), TIMED_OUT, "");
        OK(shmview_unlock(s));
        OK(shmview_detach(other));
    }
    OK(shmview_detach(s));
    OK(shmview_remove(conn, "s"));
    read_until(NULL);
    ck_assert_uint_eq(n_stored, 0);
    OK(shmview_disconnect(conn));
    finish(SIGINT);
    unlink(d.log);
    close_manager();
}
END_TEST

/* A queue of the kernel is full after ten messages or some more. */
START_TEST(a_manager_that_hangs_delays_nobody)
{
    struct shmview_connection *conn;
    struct shmview_segment *s[N_SLOW];
    char name[16];
    open_manager();
    start();
    conn = client_connect(&d);
    int64_t began = await_now_ns();
    for (int i = 0; i < N_SLOW; i++) {
        snprintf(name, sizeof name, "%d", i);
        OK(shmview_create(conn, name, 10, &sealed, &s[i]));
    }
    ck_assert_int_lt(await_now_ns() - began, AWAIT_NS);
    while (n_stored < 3 * N_SLOW) { /* what did not fit into the queue is sent later */
        await_readable(manager);
        read_until(NULL);
    }
    began = await_now_ns();
    for (int i = 0; i < N_SLOW; i++) {
        snprintf(name, sizeof name, "%d", i);
        OK(shmview_detach(s[i]));
        OK(shmview_remove(conn, name));
    }
    ck_assert_int_lt(await_now_ns() - began, AWAIT_NS);
    while (n_stored) {
        await_readable(manager);
        read_until(NULL);
    }
    OK(shmview_disconnect(conn));
    finish(SIGINT);
    unlink(d.log);
    close_manager();
}
END_TEST

/* The store has descriptors that nobody knows, and others that are no memory. */
START_TEST(strange_descriptors_are_dropped)
{
    open_manager();
    int pipes[2];
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    close(pipes[1]);
    snprintf(stored[0].name, sizeof stored[0].name, "memory-1");
    stored[0].fd = pipes[0];
    snprintf(stored[1].name, sizeof stored[1].name, "memory-2");
    stored[1].fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    stored[2].fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(fcntl(stored[2].fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
    struct stat st;
    ck_assert_int_eq(fstat(stored[2].fd, &st), 0);
    snprintf(stored[2].name, sizeof stored[2].name, "memory-%ju", (uintmax_t)st.st_ino);
    n_stored = 3;
    start();
    ck_assert_uint_eq(n_stored, 0); /* all were removed from the store */
    ck_assert(daemon_said(&d, "removed 1 objects that belong to no segment"));
    struct shmview_connection *conn = client_connect(&d);
    OK(shmview_ping(conn));
    OK(shmview_disconnect(conn));
    finish(SIGINT);
    unlink(d.log);
    close_manager();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(the_store_keeps_sealed_segments),
        SUITE_TEST(a_manager_that_hangs_delays_nobody),
        SUITE_TEST(strange_descriptors_are_dropped),
        SUITE_END,
    };
    const char *has = getenv("SHMVIEW_HAS_SYSTEMD");
    if (!has || strcmp(has, "1") != 0) {
        puts("skipped: the daemon was built without libsystemd");
        return 0;
    }
    return suite_main("stored", tests);
}
