/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a file: every directory above it.
 *
 * A user who may write to one of these directories could replace the socket or the registry of the
 * daemon at any time. Therefore each directory must belong to root or to the user of the daemon,
 * and must not be writable by group or others. Writable directories with the sticky bit, such as
 * /tmp, are allowed, because there others cannot rename or remove files of this user. */
#ifndef DAEMON_WAY_H
#define DAEMON_WAY_H

/* Opens the directory that contains path. Makes missing directories with mode 0700, or 0755 on the
 * way to the system's socket. Refuses symbolic links. Returns a descriptor for openat(), which the
 * caller owns, or -errno after logging the cause.
 *
 * In a sticky directory other users may have made files before. The caller must therefore check a
 * file there through its descriptor before using it. */
int way_open(const char *path);

/* Returns the last component of path, as a pointer into path. */
const char *way_name(const char *path);

#endif
