/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that clients find. */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/address.h"

struct listener {
    address_path path;
    int fd;
    dev_t device; /* of the socket's name, so that only ours is removed */
    ino_t inode;
    bool passed; /* by the service manager, which keeps it when we leave */
};

/* Makes the directories (way.h) and the socket (0600; 0666
 * for the system's) and listens. A socket that nobody serves is replaced.
 * Returns 0; -EADDRINUSE if somebody serves it; or -errno. Logs the cause. */
int listener_open(struct listener *listener, const char *path);

/* Serves fd instead, which was passed to us: a stream socket that listens at a path. Owns fd.
 * Returns 0, or -errno if fd is something else. Logs the cause. */
int listener_adopt(struct listener *listener, int fd);

/* Removes the name if it is still this socket, less one that was passed; and closes. */
void listener_close(struct listener *listener);

/* A name for what is served at path, made of letters that an object's name may
 * have: "system", or the user and a hash of the path. */
typedef char listener_instance[64];
void listener_instance_of(const char *path, listener_instance ret);

#endif
