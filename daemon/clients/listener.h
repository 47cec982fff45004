/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket, by whose path clients find the daemon. The daemon either makes it
 * (listener_open), or a service manager has made it and passes it (listener_adopt). Then the
 * manager keeps the socket while no daemon runs, and starts one when a client connects. */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/address.h"

/* One listening socket. A path that another process has replaced is not removed at the end:
 * device and inode are compared first. */
struct listener {
    address_path path;
    int fd;       /* owned; -1: none */
    dev_t device; /* of the file that bind() made; not set if passed */
    ino_t inode;
    bool passed; /* by the service manager, which keeps the socket when the daemon exits */
};

/* Makes the directories (way.h) and the socket, and listens. The socket has mode 0600; that of the
 * system's instance has 0666, because every user may connect to it. Replaces a socket that no
 * process serves. Returns 0. Otherwise logs the cause and returns -EADDRINUSE if a process serves
 * that socket, or another -errno. */
int listener_open(struct listener *listener, const char *path);

/* Uses fd, which was passed to the daemon: a Unix stream socket that listens at a path. Takes fd
 * over. Returns 0, or logs the cause and returns -errno if fd is anything else. */
int listener_adopt(struct listener *listener, int fd);

/* Closes the socket. Removes its path, unless the socket was passed or the path is another file by
 * now. Does nothing without a socket. */
void listener_close(struct listener *listener);

/* Makes the name of the instance that is served at path: "system", or the uid and a hash of the
 * path. It consists of characters that the name of an object may have. */
typedef char listener_instance[64];
void listener_instance_of(const char *path, listener_instance ret);

#endif
