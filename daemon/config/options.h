/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>

#include "common/base/address.h"
#include "daemon/config/config_read.h"

struct options {
    address_path socket;
    bool socket_given;  /* by --socket */
    bool session;       /* started by a library: goes to the background, leaves when idle */
    config_path config; /* the file; CONFIG_NONE: none */
    bool config_given;  /* then it must be there */
    bool check_config;  /* nothing but that */
    int ready_fd;       /* gets a line once the socket listens; -1: none */
    unsigned idle_exit; /* seconds without a client and a manual segment; 0 = never */
};

/* The exit status after bad usage or with a bad configuration. Starting the daemon again would not
 * help. */
#define EXIT_USAGE 2

/* Reads the arguments and the environment. Returns -1 to go on, else the exit status: 0 after
 * --help and --version, or EXIT_USAGE. */
int options_read(struct options *options, int argc, char **argv);

#endif
