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

#include "common/base/descriptor.h"
#include "common/base/util.h"
#include "daemon/base/log.h"

#ifdef SHMVIEW_SYSTEMD
#include <systemd/sd-daemon.h>
#else
/* Without libsystemd: no socket was passed and no watchdog is wanted. */
#define SD_LISTEN_FDS_START                    3
#define sd_listen_fds_with_names(unset, names) ((void)(names), 0)
#define sd_watchdog_enabled(u, usec)           ((void)(usec), 0)
#endif

#define STATUS_MS 1000
/* How long the daemon waits at most for a service manager whose queue is full. */
#define STATE_WAIT_MS 1000

/* The names of stored descriptors begin with this. */
#define STORED "memory-"

/* The stored descriptors, between other ones that were passed, are known by their names. They are
 * taken once. */
static char **passed_names;
static int n_passed;

static bool is_stored(int i)
{
    return passed_names && passed_names[i] &&
           strncmp(passed_names[i], STORED, sizeof STORED - 1) == 0;
}

int notify_take_socket(void)
{
    int n = sd_listen_fds_with_names(1, &passed_names), n_sockets = 0, found = -1;
    n_passed = n > 0 ? n : 0;
    for (int i = 0; i < n_passed; i++)
        if (!is_stored(i)) {
            n_sockets++;
            found = SD_LISTEN_FDS_START + i;
        }
    if (n >= 0 && n_sockets <= 1)
        return found;
    if (n < 0)
        log_error("cannot take the sockets that were passed: %s", strerror(-n));
    else
        log_error("%d sockets were passed, but the daemon can serve only one", n_sockets);
    return -E2BIG;
}

bool notify_is_managed(void)
{
#ifdef SHMVIEW_SYSTEMD
    return getenv("NOTIFY_SOCKET") != NULL;
#else
    return false;
#endif
}

int notify_each_stored(int (*take)(int fd, uint64_t number))
{
    int r = 0;
    for (int i = 0; i < n_passed; i++) {
        const char *name = is_stored(i) ? passed_names[i] + sizeof STORED - 1 : NULL;
        int error = name ? take(SD_LISTEN_FDS_START + i, strtoull(name, NULL, 10)) : 0;
        r = error ? error : r;
        free(passed_names ? passed_names[i] : NULL);
    }
    free(passed_names);
    passed_names = NULL;
    n_passed = 0;
    return r;
}

void notify_ignore(void)
{
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                        "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

/* Sends text to the service manager, with the descriptor passed unless that is -1. Does not use
 * sd_notify(), because that blocks without limit while the queue of the manager is full, and so
 * would stop the loop. Blocks wait_ms milliseconds at most; 0: not at all. Returns 0; -ENOENT if
 * there is no manager; -EAGAIN if its queue stayed full; or another -errno. */
static int send_with(const char *text, unsigned wait_ms, int passed)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
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
    struct iovec iov = {.iov_base = (char *)(uintptr_t)text, .iov_len = strlen(text)};
    union descriptor_control control;
    struct msghdr m = {.msg_name = &address,
                       .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n),
                       .msg_iov = &iov,
                       .msg_iovlen = 1};
    if (passed >= 0)
        descriptor_pass(&m, &control, passed);
    return sendmsg(fd, &m, MSG_NOSIGNAL | (wait_ms ? 0 : MSG_DONTWAIT)) < 0 ? -errno : 0;
}

static int send_text(const char *text, unsigned wait_ms)
{
    return send_with(text, wait_ms, -1);
}

int notify_store(int fd, uint64_t number, unsigned wait_ms)
{
    char text[100]; /* FDPOLL=0: the manager would drop a descriptor with an error at once */
    snprintf(text, sizeof text, "FDSTORE=1\nFDPOLL=0\nFDNAME=" STORED "%" PRIu64, number);
    return send_with(text, wait_ms, fd);
}

int notify_unstore(uint64_t number, unsigned wait_ms)
{
    char text[100];
    snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=" STORED "%" PRIu64, number);
    return send_text(text, wait_ms);
}

static void send_state(const char *text)
{
    int r = send_text(text, STATE_WAIT_MS);
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
