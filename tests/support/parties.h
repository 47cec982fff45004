/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds a lock, who waits for it, and who sleeps: what a test waits for before it
 * goes on. */
#ifndef SUPPORT_PARTIES_H
#define SUPPORT_PARTIES_H

#include <sys/types.h>

#include <shmview/shmview.h>

/* How many processes have that role (SHMVIEW_HOLDS ...) in the lock's status. If
 * ret_party is not NULL, it is the last of them. Fails the test on an error. */
unsigned parties_in_role(struct shmview_segment *segment, uint32_t role,
                         struct shmview_lock_party *ret_party);

/* Waits until so many have the role. */
void parties_await(struct shmview_segment *segment, uint32_t role, unsigned n);

/* Waits until the process sleeps: in a call of the library, if that is all it does. */
void parties_await_sleep(pid_t pid);

#endif
