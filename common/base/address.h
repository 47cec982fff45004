/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sockets of the instances are. */
#ifndef COMMON_ADDRESS_H
#define COMMON_ADDRESS_H

#include <sys/un.h>

#define ADDRESS_SYSTEM "/run/shmviewd/io.shmview"

/* A path that fits a socket address, with its NUL. */
typedef char address_path[sizeof(((struct sockaddr_un *)0)->sun_path)];

/* The user's instance: DIR/shmviewd/io.shmview, where DIR is $XDG_RUNTIME_DIR, unless that
 * belongs to another user, as it may under sudo; else /run/user/UID if that is this user's; else
 * /tmp/shmview-UID. Returns 0, or -ENAMETOOLONG. */
int address_user(address_path ret_path);

/* This user's session instance: DIR/shmviewd/session/io.shmview. */
int address_session(address_path ret_path);

/* Fills *ret from path. Returns 0, -ENAMETOOLONG, or -EINVAL for an empty path. */
int address_fill(struct sockaddr_un *ret, const char *path);

#endif
