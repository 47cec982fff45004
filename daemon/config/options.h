/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, with the defaults from the environment. shmviewd(8) describes the options. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>

#include "common/base/address.h"
#include "daemon/config/config_read.h"

struct options {
    address_path socket;
    bool socket_given;  /* by --socket */
    bool session;       /* started by libshmview: goes to the background, ends when idle */
    config_path config; /* the file, or CONFIG_NONE */
    bool config_given;  /* named by option or environment, so it must exist */
    bool check_config;  /* only check the configuration, and exit */
    int ready_fd;       /* gets a newline when the socket listens; -1: none */
    unsigned idle_exit; /* end after so many seconds without clients and segments; 0: never */
};

/* The exit status after bad usage or with a bad configuration. Starting the daemon again would not
 * help. */
#define EXIT_USAGE 2

/* Reads the arguments and the environment. Returns -1 if the daemon should start. Otherwise returns
 * the exit status, after printing: 0 for --help and --version, or EXIT_USAGE. */
int options_read(struct options *options, int argc, char **argv);

#endif
