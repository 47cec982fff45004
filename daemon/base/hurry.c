/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/hurry.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS   100000 /* the shortest that Linux grants */
#define NICE_LEAST 19

_Static_assert(sizeof(struct schedule) == 48, "SCHED_ATTR_SIZE_VER0");

void hurry_init(struct hurry *hurry)
{
    *hurry = (struct hurry){.thread = (pid_t)syscall(SYS_gettid)};
    long r = syscall(SYS_sched_getattr, hurry->thread, &hurry->usual, sizeof hurry->usual, 0);
    hurry->is_able =
        r == 0 && (hurry->usual.policy == SCHED_OTHER || hurry->usual.policy == SCHED_BATCH);
}

void hurry(const struct hurry *hurry, bool soon)
{
    struct schedule schedule = hurry->usual;
    if (!hurry->is_able)
        return;
    if (soon)
        schedule.runtime_ns = SLICE_NS;
    (void)syscall(SYS_sched_setattr, hurry->thread, &schedule, 0);
}

void hurry_least(void)
{
    struct hurry self;
    hurry_init(&self);
    if (!self.is_able)
        return;
    self.usual.nice = NICE_LEAST;
    (void)syscall(SYS_sched_setattr, 0, &self.usual, 0);
}
