/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of mutexes: the kernel id and the birth of a thread or a process.
 *
 * The birth distinguishes an owner from a later thread with the same id. A false "alive" makes
 * waiters wait; a false "dead" would make two owners. So each doubt counts as alive. */
#ifndef CLIENT_OWNER_H
#define CLIENT_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/base/process.h"

#pragma GCC visibility push(hidden)

/* The calling thread, as an owner. Each thread looks itself up once, and again after a fork. */
struct caller {
    uint32_t epoch; /* of the process in which this was looked up; 0: never */
    uint32_t pid;
    _Alignas(8) uint32_t namespaces[2]; /* inodes of the pid and the time namespace; 0: not known */
    bool sees_proc;                     /* /proc is mounted, and belongs to this pid namespace */
    uint64_t thread, process;           /* words that name the thread, and its process */
};
extern __thread struct caller caller __attribute__((tls_model("initial-exec")));

/* Fills caller. Returns 0, with errno as it was, or an error. */
int caller_look_up(void);

/* Whether caller was filled in this process; a forked child inherits that of its parent. */
static inline bool caller_is_known(void)
{
    return caller.epoch &&
           caller.epoch == atomic_load_explicit(&process->epoch, memory_order_relaxed);
}

/* Whether the owner has ended; is_thread: the owner is a thread, otherwise a process. An owner
 * about which the kernel gives no information counts as alive. */
bool owner_is_dead(uint64_t owner, bool is_thread);

#pragma GCC visibility pop

#endif
