/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of mutexes: kernel id and birth of a thread or a process. */
#ifndef CLIENT_OWNER_H
#define CLIENT_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/base/process.h"

#pragma GCC visibility push(hidden)

/* The calling thread. */
struct caller {
    uint32_t epoch; /* of the process in which this was looked up; 0: never */
    uint32_t pid;
    _Alignas(8) uint32_t namespaces[2]; /* inodes of the pid and the time namespace; 0: not known */
    bool sees_proc;                     /* /proc is mounted, and is that of the pid namespace */
    uint64_t thread, process;           /* as owners */
};
extern __thread struct caller caller __attribute__((tls_model("initial-exec")));

/* Fills caller. Returns 0 or an error. */
int caller_look_up(void);

/* Whether caller is that of this process: a forked child's is its parent's. */
static inline bool caller_is_known(void)
{
    return caller.epoch &&
           caller.epoch == atomic_load_explicit(&process->epoch, memory_order_relaxed);
}

/* Whether the owner, a thread or else a process, has ended. An owner about which the kernel
 * gives no information counts as alive. */
bool owner_is_dead(uint64_t owner, bool is_thread);

#pragma GCC visibility pop

#endif
