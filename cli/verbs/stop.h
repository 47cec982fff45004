/* SPDX-License-Identifier: Apache-2.0 */
/* Lets Ctrl-C end a verb in order, so that what it has done so far stays. */
#ifndef CLI_STOP_H
#define CLI_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* A wait looks at stop_is_wanted() at least so often. */
#define STOP_SLICE_NS INT64_C(100000000)

/* From now on SIGINT, SIGTERM and SIGHUP only set a flag. */
void stop_catch(void);
bool stop_is_wanted(void);

/* Returns a deadline, of CLOCK_MONOTONIC, at which a wait until `end` must look again. */
int64_t stop_slice(int64_t end);

#endif
