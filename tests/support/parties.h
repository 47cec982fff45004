/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that a test awaits before it goes on: how many processes hold a lock or wait for it,
 * and that a process sleeps. */
#ifndef SUPPORT_PARTIES_H
#define SUPPORT_PARTIES_H

#include <sys/types.h>

#include <shmview/shmview.h>

/* Returns how many processes have the role (SHMVIEW_HOLDS ...) in the lock's status. If ret_party
 * is not NULL, stores the last of them. Fails the test on an error. */
unsigned parties_in_role(struct shmview_segment *segment, uint32_t role,
                         struct shmview_lock_party *ret_party);

/* Waits until that many processes have the role. */
void parties_await(struct shmview_segment *segment, uint32_t role, unsigned n);

/* Waits until the process sleeps. A process that does nothing else then sleeps in a library call.
 */
void parties_await_sleep(pid_t pid);

#endif
