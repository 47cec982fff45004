/* SPDX-License-Identifier: Apache-2.0 */
/* Reading memory that another program may truncate: the signal SIGBUS becomes a result. */
#ifndef WEB_GUARD_H
#define WEB_GUARD_H

#include <shmview/shmview.h>

#include "web/base/base.h"

/* From now on SIGBUS in guard_run() ends only that. Elsewhere the thread waits until the daemon has
 * restored the memory, and after a few seconds the program ends. */
void guard_init(void);

/* Calls f(arg), which reads memory of other programs, and stores its result in *ret. f must own
 * nothing: it may be left at any access. If f calls functions of the lock or of a stream, the
 * handle must have passed guard_sign(). Returns false if the memory is gone. */
bool guard_run(int (*f)(void *arg), void *arg, int *ret);

/* Signs the slot of a handle that was just attached, outside guard_run(). Otherwise the first call
 * that needs the slot would sign it. The library writes the slot under a mutex of the whole
 * process, which would stay locked if guard_run() left it there. Does nothing if the handle has no
 * lock. */
void guard_sign(struct shmview_segment *segment);

#endif
