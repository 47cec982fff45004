/* SPDX-License-Identifier: Apache-2.0 */
/* A timer beside which the loop is as quick as without one.
 *
 * With a timer of libuv every wait for events has an end, so that the kernel sets a clock before
 * each wait and unsets it after: up to a tenth of the time of a ping. An alarm is a descriptor
 * that the loop watches like any other, and its clock is set once. */
#ifndef DAEMON_ALARM_H
#define DAEMON_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct alarm {
    uv_poll_t poll;
    int fd;
    bool is_set;
    bool repeats;
    void (*ring)(struct alarm *alarm);
    void *data; /* the caller's */
};

/* Takes one descriptor. Returns 0 or -errno; then there is nothing to close. */
int alarm_init(struct alarm *alarm, uv_loop_t *loop, void (*ring)(struct alarm *alarm), void *data);

/* ring() is called in ms milliseconds, and every repeat_ms milliseconds after that unless that is
 * 0. What was set before is forgotten. */
void alarm_set(struct alarm *alarm, uint64_t ms, uint64_t repeat_ms);

void alarm_stop(struct alarm *alarm);

/* Closes one that was initialised. The loop calls closed() when the memory of the alarm is the
 * caller's again; the data of the handle is the alarm. */
void alarm_close(struct alarm *alarm, uv_close_cb closed);

#endif
