/* SPDX-License-Identifier: Apache-2.0 */
/* Reading memory that another program may truncate: the signal SIGBUS becomes a result. */
#ifndef WEB_GUARD_H
#define WEB_GUARD_H

#include "web/base/base.h"

/* From now on SIGBUS in guard_run() ends only that. Elsewhere the thread waits until the daemon has
 * restored the memory, and after a few seconds the program ends. */
void guard_init(void);

/* Calls f(arg), which reads memory of other programs, and stores its result in *ret. f must own
 * nothing: it may be left at any access. Returns false if the memory is gone. */
bool guard_run(int (*f)(void *arg), void *arg, int *ret);

#endif
