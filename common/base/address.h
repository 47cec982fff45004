/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of the sockets. The library and the daemon both compute them here, so that a program
 * finds the daemon without any configuration. */
#ifndef COMMON_ADDRESS_H
#define COMMON_ADDRESS_H

#include <sys/un.h>

#define ADDRESS_SYSTEM "/run/shmviewd/io.shmview"

/* A path that fits into a socket address, with its NUL. */
typedef char address_path[sizeof(((struct sockaddr_un *)0)->sun_path)];

/* Stores the path of the user's instance: DIR/shmviewd/io.shmview. DIR is the first of these:
 *   - $XDG_RUNTIME_DIR, unless it belongs to another user. Under sudo it may still be that of the
 *     user who called sudo.
 *   - /run/user/UID, if it belongs to this user;
 *   - /tmp/shmview-UID.
 * Returns 0 or -ENAMETOOLONG. */
int address_user(address_path ret_path);

/* Like address_user(), for the user's session instance: DIR/shmviewd/session/io.shmview. */
int address_session(address_path ret_path);

/* Fills *ret from path. Returns 0, -ENAMETOOLONG, or -EINVAL for an empty path. */
int address_fill(struct sockaddr_un *ret, const char *path);

#endif
