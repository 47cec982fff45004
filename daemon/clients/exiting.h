/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence of a death before the pidfd shows it.
 *
 *   killed -> every thread is exiting -> memory freed -> sockets closed -> pidfd readable
 *
 * The kernel frees the memory of a process before it reports the exit. That takes 30 ms for 256
 * MiB, and the locks of the process would stay held for so long. A thread that the kernel has begun
 * to end (PF_EXITING, which /proc shows) never runs code of its program again. So a process of
 * which every thread is exiting is as good as dead: nothing can write through its mappings.
 *
 * Nothing else counts. A process is alive as long as one of its threads is not exiting: while it
 * calls exec, waits for a child of vfork(), is stopped or traced, writes a core dump, or has a
 * first thread that has ended. */
#ifndef DAEMON_EXITING_H
#define DAEMON_EXITING_H

#include <stdbool.h>

/* A process with more threads counts as alive, because to look at them would delay the loop. */
#define EXITING_THREADS_MAX 32

/* Whether every thread of the process is exiting, or the process is dead. False if that cannot be
 * found out: there is no pidfd (-1), or /proc hides the process. A look at a process that lives
 * reads two short files. */
bool process_is_exiting(int pidfd);

/* Returns the id of a thread of the process that was not exiting a moment ago, as /proc has it; the
 * first thread if possible. Returns 0 if there is none, or that cannot be found out. */
long process_living_thread(int pidfd);

/* Opens the file of the first thread of the process for process_first_is_exiting(). Returns a
 * descriptor, which is the caller's, or -1. It stays that of this process when the pid is reused.
 */
int process_open_first(int pidfd);

/* Like process_is_exiting(), but opens nothing, and false if the process has ended or has more than
 * one thread. The thread was exiting already when it was counted for the second time, and was the
 * only one then. */
bool process_first_is_exiting(int stat);

#endif
