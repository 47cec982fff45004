/* SPDX-License-Identifier: Apache-2.0 */
/* Checks notify.c: a service manager that reads nothing does not stop the daemon. */
#include "daemon/base/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/util.h"
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

/* Begins with a manager whose queue is full. */
static void begin(bool is_abstract)
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
    int filler = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    while (sendto(filler, "x", 1, 0, (struct sockaddr *)&address, n) == 1)
        continue;
    ck_assert_int_eq(errno, EAGAIN);
    close(filler);
    setenv("NOTIFY_SOCKET", path, 1);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
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
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2); /* the failure is logged */
    close(null);
    notify_ready();
    ck_assert_str_eq(receive(), "");
    notify_ready();
    ck_assert_str_eq(receive(), "READY=1");
    end();
}
END_TEST

UNIT_MAIN("notify", UNIT_TEST(a_status_is_sent_later),
          UNIT_TEST(a_change_of_state_waits_for_a_moment))
