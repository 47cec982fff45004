/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a process that maps an object for writing.
 *
 * For the text of an error: the kernel refuses a seal without naming the process that prevents it.
 * Looks through /proc/PID/maps of all processes that this user may inspect, which takes some
 * milliseconds for each hundred. */
#ifndef CLIENT_MAPPER_H
#define CLIENT_MAPPER_H

#include <stdbool.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

struct mapper {
    pid_t pid;
    char command[16]; /* printable; "" if it is not known */
};

struct mapping;

/* Finds a process that maps the data of this mapping shared and writable. In this process the
 * addresses of the mapping itself do not count. Prefers other processes. Returns whether there is
 * one. */
bool mapper_find(const struct mapping *mapping, struct mapper *ret);

#pragma GCC visibility pop

#endif
