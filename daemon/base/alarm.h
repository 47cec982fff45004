/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that does not slow the loop down.
 *
 * While a uv_timer_t is active, libuv passes a timeout to every epoll_wait(). The kernel then sets
 * a clock before each wait and cancels it afterwards, which costs up to a tenth of the time of a
 * ping. An alarm is a timerfd instead, which the loop watches like any other descriptor. Its clock
 * is set once, in alarm_set().
 *
 * An alarm belongs to the thread of its loop; no other thread may call these functions. */
#ifndef DAEMON_ALARM_H
#define DAEMON_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

/* Embedded in the object that uses it. The owner may use is_set and data; the rest is private. */
struct alarm {
    uv_poll_t poll;
    int fd;       /* the timerfd */
    bool is_set;  /* ring() will be called, unless alarm_stop() comes first */
    bool repeats; /* is_set stays true after a ring */
    void (*ring)(struct alarm *alarm);
    void *data; /* for the owner; alarm.c does not use it */
};

/* Prepares an alarm, which is not set yet, and opens one descriptor. ring() runs on the loop. An
 * alarm that does not live as long as the loop must be closed by alarm_close(). Returns 0, or
 * -errno; after an error there is nothing to close. */
int alarm_init(struct alarm *alarm, uv_loop_t *loop, void (*ring)(struct alarm *alarm), void *data);

/* Calls ring() in ms milliseconds, and then every repeat_ms milliseconds unless repeat_ms is 0.
 * Replaces the time that was set before. ms may be 0. Cannot fail. */
void alarm_set(struct alarm *alarm, uint64_t ms, uint64_t repeat_ms);

/* Cancels the alarm. ring() is not called after this returns, even if the time was already over.
 * Does nothing if the alarm is not set. */
void alarm_stop(struct alarm *alarm);

/* Closes the descriptor and removes the alarm from the loop. libuv uses the memory of the alarm
 * until the loop calls closed(), whose argument has the alarm in its data field. closed may be
 * NULL if the memory outlives the loop. */
void alarm_close(struct alarm *alarm, uv_close_cb closed);

#endif
