/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/door.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/loop.h"
#include "daemon/base/slice.h"
#include "daemon/clients/stray.h"

#define SLICE_NS 250000
#define RETRY_MS 100
/* The end of a connection takes about twice as long as its beginning, so the time of accepting it
 * is counted three times in all. */
#define END_COSTS 2

static void on_knock(uv_poll_t *poll, int status, int events);

static int open_reserve(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_shut(const struct door *d)
{
    return uv_is_active((const uv_handle_t *)&d->retry);
}

static void on_retry(uv_timer_t *timer)
{
    struct door *d = timer->data;
    if (d->reserve < 0)
        d->reserve = open_reserve();
    uv_poll_start(&d->poll, UV_READABLE, on_knock);
}

/* Stops polling for a while, because the client that could not be accepted is still there. */
static void shut(struct door *d)
{
    uv_poll_stop(&d->poll);
    uv_timer_start(&d->retry, on_retry, RETRY_MS, 0);
}

/* Closes the socket of a client. If it holds descriptors, lets a thread close it, which may last;
 * then on_retry() opens the reserve again. */
static void hang_up(int fd)
{
    shutdown(fd, SHUT_RDWR);
    if (stray_possible(fd) && stray_left(fd))
        stray_close(fd, NULL, NULL);
    else
        close(fd);
}

/* Accepts a client on the reserve and hangs up: the client gets an end, and the poll does not spin.
 * If no descriptor is left for that either, shuts the door. */
static void turn_away(struct door *d)
{
    close_fdp(&d->reserve);
    int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    bool nobody = fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (fd >= 0)
        hang_up(fd);
    d->reserve = open_reserve();
    if (nobody || d->reserve < 0)
        shut(d);
    log_event(LOG_WARNING, &(struct log_event){.kind = LOG_TURNED_AWAY, .reason = "descriptors"},
              "out of descriptors: a client %s", nobody ? "waits" : "was turned away");
}

/* Handles an error of accept(). The first three of them pass, and need no log line. */
static void fail(struct door *d, int error)
{
    if (error == EAGAIN || error == ECONNABORTED || error == EINTR)
        return;
    if (error == EMFILE || error == ENFILE) {
        turn_away(d);
        return;
    }
    /* the client is still there, and would be reported again at once */
    shut(d);
    log_warning("accept: %s", strerror(error));
}

/* Accepts clients for one slice, at least one. The time for each is charged to its user. */
static void accept_some(struct door *d)
{
    int64_t began = now_ns(), until = slice_end(SLICE_NS);
    do {
        int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            fail(d, errno);
            return;
        }
        struct quota_user *u = d->admit(d->arg, fd);
        int64_t now = now_ns();
        if (u)
            turns_charge(u, now - began);
        began = now;
    } while (began < until);
}

static void on_knock(uv_poll_t *poll, int status, int events)
{
    struct door *d = poll->data;
    (void)status;
    (void)events;
    if (!turns_begin(d->turns, &d->turn)) {
        uv_poll_stop(poll);
        return;
    }
    accept_some(d);
    turns_end(d->turns, &d->turn);
}

static void serve(struct turn *turn)
{
    struct door *d = CONTAINER_OF(turn, struct door, turn);
    accept_some(d);
    if (!is_shut(d))
        uv_poll_start(&d->poll, UV_READABLE, on_knock);
}

int door_init(struct door *door, uv_loop_t *loop, struct turns *turns, int listener,
              struct quota_user *(*admit)(void *arg, int fd), void *arg)
{
    *door = (struct door){
        .turns = turns,
        .turn = {.serve = serve, .payer = &door->user, .brings = END_COSTS},
        .listener = listener,
        .reserve = open_reserve(),
        .admit = admit,
        .arg = arg,
    };
    turns_own_user(&door->user);
    uv_timer_init(loop, &door->retry);
    door->retry.data = door->poll.data = door;
    return loop_poll_init(loop, &door->poll, listener);
}

int door_open(struct door *door)
{
    return uv_poll_start(&door->poll, UV_READABLE, on_knock);
}

void door_close(struct door *door)
{
    turns_cancel(door->turns, &door->turn);
    uv_close((uv_handle_t *)&door->retry, NULL);
    uv_close((uv_handle_t *)&door->poll, NULL);
}
