/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"

#ifdef SHMVIEW_SYSTEMD
#include <systemd/sd-daemon.h>
#else
/* Without libsystemd: no socket was passed and no watchdog is wanted. */
#define SD_LISTEN_FDS_START          3
#define sd_listen_fds(unset)         0
#define sd_watchdog_enabled(u, usec) ((void)(usec), 0)
#endif

#define STATUS_MS 1000
/* How long the daemon waits at most for a service manager whose queue is full. */
#define STATE_WAIT_S 1

int notify_take_socket(void)
{
    int n = sd_listen_fds(1);
    if (n == 0)
        return -1;
    if (n == 1)
        return SD_LISTEN_FDS_START;
    if (n < 0)
        log_error("cannot take the sockets that were passed: %s", strerror(-n));
    else
        log_error("%d sockets were passed, but the daemon can serve only one", n);
    return -E2BIG;
}

void notify_ignore(void)
{
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                        "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

/* Sends text to the service manager. Does not use sd_notify(), because that blocks without limit
 * while the queue of the manager is full, and so would stop the loop. Blocks wait_s seconds at
 * most; 0: not at all. Returns 0; -ENOENT if there is no manager; -EAGAIN if its queue stayed full;
 * or another -errno. */
static int send_text(const char *text, unsigned wait_s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_sec = wait_s};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return -ENOENT;
    memcpy(address.sun_path, path, n);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL | (wait_s ? 0 : MSG_DONTWAIT),
                          (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    return sent < 0 ? -errno : 0;
}

static void send_state(const char *text)
{
    int r = send_text(text, STATE_WAIT_S);
    if (r && r != -ENOENT)
        log_warning("the service manager cannot be notified: %s", strerror(-r));
}

/* The loop runs this, so systemd restarts a daemon whose loop is stuck. An error is ignored,
 * because the next ring tries again. */
static void on_watchdog(struct alarm *alarm)
{
    (void)alarm;
    send_text("WATCHDOG=1", 0);
}

static int start_watchdog(struct notify *notify, uv_loop_t *loop)
{
    uint64_t usec = 0;
    if (sd_watchdog_enabled(0, &usec) <= 0)
        return 0;
    uint64_t ms = usec / 2000 > 0 ? usec / 2000 : 1;
    int r = alarm_init(&notify->watchdog, loop, on_watchdog, NULL);
    if (r == 0)
        alarm_set(&notify->watchdog, 0, ms);
    return r;
}

static void on_again(struct alarm *alarm);

int notify_init(struct notify *notify, uv_loop_t *loop)
{
    *notify = (struct notify){.wants_status = getenv("NOTIFY_SOCKET") != NULL,
                              .told = {.n_segments = UINT_MAX}}; /* differs from any status */
    int r = alarm_init(&notify->again, loop, on_again, notify);
    return r ? r : start_watchdog(notify, loop);
}

static bool is_same(const struct notify_status *a, const struct notify_status *b)
{
    return a->n_segments == b->n_segments && a->n_clients == b->n_clients;
}

/* Sends the status and sets the alarm, so that the next one is sent in a second at the earliest. On
 * EAGAIN `told` stays as it was, and the alarm tries again. */
static void tell_status(struct notify *notify)
{
    const struct notify_status *s = &notify->status;
    char text[80];
    snprintf(text, sizeof text, "STATUS=%u segment%s, %u client%s", s->n_segments,
             s->n_segments == 1 ? "" : "s", s->n_clients, s->n_clients == 1 ? "" : "s");
    if (send_text(text, 0) != -EAGAIN)
        notify->told = *s;
    alarm_set(&notify->again, STATUS_MS, 0);
}

static void on_again(struct alarm *alarm)
{
    struct notify *notify = alarm->data;
    if (!is_same(&notify->status, &notify->told))
        tell_status(notify);
}

void notify_status(struct notify *notify, struct notify_status status)
{
    notify->status = status;
    if (notify->wants_status && !is_same(&status, &notify->told) && !notify->again.is_set &&
        !uv_is_closing((uv_handle_t *)&notify->again))
        tell_status(notify);
}

void notify_ready(void)
{
    send_state("READY=1");
}

void notify_reloading(void)
{
    char text[80];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, now_ns() / 1000);
    send_state(text);
}

void notify_stopping(void)
{
    send_state("STOPPING=1");
}
