/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait until the kernel begins to end a process, for which clients wait.
 *
 *   a client reports a holder -> exit_watch_keep() -> a thread sleeps
 *   the kernel begins to end a thread of the holder -> the thread wakes -> noticed() on the loop
 *   no report for EXIT_WATCH_KEEP_NS -> the thread ends
 *
 * No descriptor shows that moment: the kernel makes a pidfd readable only after it has freed the
 * memory of the process. But it ends the waits for a priority-inheriting futex when the thread that
 * the word names begins to end. The word here is the daemon's own. The holder does not know of it,
 * and the kernel lets it name a thread of any process.
 *
 * A wake-up is no evidence of a death: one of many threads may have ended, or called exec. The
 * thread finds out whether a process of one thread is exiting. Otherwise noticed() must look
 * (exiting.h). The watch goes on with another of its threads.
 *
 * Without such futexes (before Linux 5.14, or under a filter of system calls), with too many
 * watches, or for a process that the daemon cannot see, nothing is watched. The reports, each of
 * which makes the daemon look, then do the same later. */
#ifndef DAEMON_EXIT_WATCH_H
#define DAEMON_EXIT_WATCH_H

#include <stdbool.h>

#include <uv.h>

#include "daemon/store/store.h"

/* At most so many processes are watched, and so many of one user. Each occupies a thread. */
#define EXIT_WATCHES_MAX      16
#define EXIT_WATCHES_MAX_USER 8
/* A watch ends so long after the last call of exit_watch_keep() for it. Longer than a client waits
 * between two reports. */
#define EXIT_WATCH_KEEP_NS 2500000000
/* How many threads of a process may end until the watch ends, or is kept again. */
#define EXIT_WATCH_MOVES 64
/* The name of the threads, for people who look at the process. */
#define EXIT_WATCH_THREAD "exit-watch"

struct exit_watches;

/* Called on the loop when a thread of the holder's process has begun to end. May come once more
 * after the process has ended. is_exiting: every thread of the process is exiting, as a look has
 * shown (process_first_is_exiting()); otherwise that is unknown. */
typedef void exit_watch_noticed(void *arg, const struct store_holder *holder, bool is_exiting);

/* Prepares for watches. Returns NULL with errno set after an error. The caller owes
 * exit_watches_close(). */
struct exit_watches *exit_watches_open(uv_loop_t *loop, exit_watch_noticed *noticed, void *arg);
/* Ends all watches; watches may be NULL. Call after the loop has closed its handles. Does not wait
 * for the threads: each frees what it has when it wakes, after EXIT_WATCH_KEEP_NS at the latest. */
void exit_watches_close(struct exit_watches *watches);

/* Watches the process of pidfd, which is borrowed, or keeps an existing watch. watches may be NULL.
 * Returns whether the holder is watched now. Does not block. Loop only. */
bool exit_watch_keep(struct exit_watches *watches, const struct store_holder *holder, int pidfd);

/* The number of watches. */
unsigned exit_watches_count(struct exit_watches *watches);

#endif
