/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a thread run soon after it wakes, for a death; or late, for work that can wait.
 *
 * The thread that notices a death, and the loop that announces it, often wake on the CPU on which
 * the kernel ends the dying process. Linux lets that process go on until it has used its slice, as
 * long as theirs is not shorter: so a waiter got the lock 0.8 ms after the kill instead of 0.25.
 * From Linux 6.12 on a thread may ask for a short slice. It then runs first, and its share of the
 * CPU stays what it was. Earlier kernels ignore that.
 *
 * The loop has a short slice for a death only. With one at all times it would run before a client
 * on its CPU has begun to wait for the reply, and each call would take twice as long. */
#ifndef DAEMON_HURRY_H
#define DAEMON_HURRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How the kernel schedules a thread: struct sched_attr of sched_setattr(2), first version. */
struct schedule {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns; /* runtime_ns: the slice */
};

/* One thread. Its owner keeps it until the thread has ended. */
struct hurry {
    pid_t thread;
    bool is_able; /* the thread has a policy with slices */
    struct schedule usual;
};

/* Prepares for the calling thread. */
void hurry_init(struct hurry *hurry);

/* Gives the thread a short slice, or, if soon is false, the one that it had. Any thread of this
 * process may call it. Does nothing for a thread with another policy than SCHED_OTHER or
 * SCHED_BATCH, and nothing if the kernel refuses. */
void hurry(const struct hurry *hurry, bool soon);

/* Gives the calling thread the least part of its CPU (nice 19), so that others there run first. For
 * good: taking it back needs a privilege. Does nothing for a thread with another policy than
 * SCHED_OTHER or SCHED_BATCH, and nothing if the kernel refuses. */
void hurry_least(void);

#endif
