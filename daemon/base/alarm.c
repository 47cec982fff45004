/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/alarm.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/loop.h"

static struct timespec of_ms(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

/* Runs on the loop when the descriptor is readable. The read also resets the descriptor. */
static void on_ring(uv_poll_t *poll, int status, int events)
{
    struct alarm *a = poll->data;
    uint64_t n;
    (void)status;
    (void)events;
    if (read(a->fd, &n, sizeof n) != sizeof n || !a->is_set)
        return; /* another callback of this iteration has set or stopped the alarm */
    a->is_set = a->repeats;
    a->ring(a);
}

int alarm_init(struct alarm *alarm, uv_loop_t *loop, void (*ring)(struct alarm *alarm), void *data)
{
    *alarm = (struct alarm){.ring = ring, .data = data};
    alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarm->fd < 0)
        return -errno;
    alarm->poll.data = alarm;
    int r = loop_poll_init(loop, &alarm->poll, alarm->fd);
    if (r) {
        close_fdp(&alarm->fd);
        return r;
    }
    /* cannot fail: no other handle watches this new descriptor */
    uv_poll_start(&alarm->poll, UV_READABLE, on_ring);
    return 0;
}

void alarm_set(struct alarm *alarm, uint64_t ms, uint64_t repeat_ms)
{
    struct itimerspec at = {.it_value = of_ms(ms), .it_interval = of_ms(repeat_ms)};
    if (ms == 0)
        at.it_value.tv_nsec = 1; /* an it_value of 0 would disarm the timer */
    alarm->is_set = true;
    alarm->repeats = repeat_ms > 0;
    timerfd_settime(alarm->fd, 0, &at, NULL);
}

void alarm_stop(struct alarm *alarm)
{
    alarm->is_set = false;
    timerfd_settime(alarm->fd, 0, &(struct itimerspec){0}, NULL);
}

void alarm_close(struct alarm *alarm, uv_close_cb closed)
{
    uv_poll_stop(&alarm->poll);
    close_fdp(&alarm->fd);
    uv_close((uv_handle_t *)&alarm->poll, closed);
}
