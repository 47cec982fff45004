/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that hold for both backings run once with each. With SHMVIEW_TEST_BACKING=sealed in the
 * environment, sealed is the default backing of the daemons that such a test starts. Requests that
 * name a backing get it. */
#ifndef SUPPORT_BACKING_H
#define SUPPORT_BACKING_H

#include <stdbool.h>
#include <sys/types.h>

bool backing_is_sealed(void);

/* Returns the path of a configuration with that default, or /dev/null. For the child that becomes
 * a daemon: the file is a descriptor, which the daemon inherits. */
const char *backing_config(void);

/* Returns how many sealed objects the process has open, each counted once. */
unsigned backing_objects(pid_t daemon);

#endif
