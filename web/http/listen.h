/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that the server listens on: both loopback addresses, a Unix socket, or those that
 * systemd passes. */
#ifndef WEB_LISTEN_H
#define WEB_LISTEN_H

#include "web/base/base.h"

#define LISTEN_MOST 4

/* Listens on 127.0.0.1 and, if the machine has it, on ::1. port 0: any free one. Returns the number
 * of sockets, which the caller must close, or a negative errno. */
int listen_loopback(uint16_t port, int ret_sockets[LISTEN_MOST]);

/* Listens on a Unix socket with mode 0600. Replaces a socket that nobody serves. Returns 1 or a
 * negative errno: -EADDRINUSE if a program serves it. */
int listen_path(const char *path, int ret_sockets[LISTEN_MOST]);

/* Takes the sockets that systemd passes (sd_listen_fds(3)). Returns their number, 0 if there are
 * none, or -EINVAL if one of them does not listen, or is neither a Unix socket nor on a loopback
 * address. Forgets the variables, so that no child inherits them. */
int listen_passed(int ret_sockets[LISTEN_MOST]);

/* Returns the port of a socket, or 0 if it is a Unix socket. */
uint16_t listen_port(int socket);

#endif
