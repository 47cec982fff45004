/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSION_IDLE_EXIT "10"

static const char help[] =
    "Usage: shmviewd [OPTION]...\n"
    "Allocate named shared-memory segments and hand them out over a Unix socket.\n"
    "\n"
    "  --socket PATH        listen on PATH (default: $SHMVIEW_SOCKET; for root\n"
    "                       " ADDRESS_SYSTEM ", else\n"
    "                       $XDG_RUNTIME_DIR/shmviewd/io.shmview)\n"
    "  --session            the session instance that libshmview starts: go to the\n"
    "                       background once the socket listens, exit when idle\n"
    "  --idle-exit SECONDS  exit after this time without a client and without a\n"
    "                       manual segment; 0 means never (default: 0; for a session\n"
    "                       $SHMVIEW_IDLE_EXIT or " SESSION_IDLE_EXIT ")\n"
    "  --config FILE        read FILE, and the directory beside it with .d for .json\n"
    "                       (default: $SHMVIEW_CONFIG; for root and system users\n"
    "                       " CONFIG_SYSTEM ", else\n"
    "                       $XDG_CONFIG_HOME/shmviewd.json; for a session none)\n"
    "  --ready-fd FD        write a newline to the descriptor FD, and close it, once the\n"
    "                       socket listens\n"
    "  --check-config       report the errors of the configuration, and exit\n"
    "  --help               show this and exit\n"
    "  --version            show the version and exit\n"
    "\n"
    "On SIGHUP the daemon reads its configuration again. On SIGTERM it ends and keeps the\n"
    "segments for the next daemon on that socket; on SIGINT it ends and removes them. Clients\n"
    "that have mapped them can go on. See shmviewd(8).\n";

/* Prints an error of usage. Returns its exit status. */
static int usage(const char *what, const char *value)
{
    fprintf(stderr, "shmviewd: %s '%s'\nTry 'shmviewd --help'.\n", what, value);
    return EXIT_USAGE;
}

/* The next functions return -1 if the value is valid, else the exit status. */
static int read_seconds(const char *text, unsigned *ret)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || n > 1000000)
        return usage("--idle-exit takes 0 to 1000000 seconds, not", text);
    *ret = (unsigned)n;
    return -1;
}

/* fcntl() fails unless the descriptor is open. */
static int read_ready_fd(const char *text, int *ret)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || n > INT_MAX ||
        fcntl((int)n, F_SETFD, FD_CLOEXEC))
        return usage("--ready-fd takes the number of an open descriptor, not", text);
    *ret = (int)n;
    return -1;
}

/* Chooses the socket if no option names it. Returns 0, or nonzero if its path is too long. */
static int default_socket(struct options *options)
{
    const char *set = getenv("SHMVIEW_SOCKET");
    if (set && set[0])
        return snprintf(options->socket, sizeof options->socket, "%s", set) <
                       (int)sizeof options->socket
                   ? 0
                   : -ENAMETOOLONG;
    if (options->session)
        return address_session(options->socket);
    if (geteuid() == 0) {
        strcpy(options->socket, ADDRESS_SYSTEM);
        return 0;
    }
    return address_user(options->socket);
}

/* Chooses the file of the configuration; a session has none by default. The path for a session must
 * be absolute, because a session changes its directory. Returns -1, or the exit status. */
static int find_config(struct options *options)
{
    const char *set = getenv("SHMVIEW_CONFIG");
    if (!options->config[0] && set && set[0]) {
        if (strlen(set) >= sizeof options->config)
            return usage("$SHMVIEW_CONFIG must be a path, not", set);
        strcpy(options->config, set);
    }
    options->config_given = options->config[0] != '\0';
    if (options->config_given && options->session && options->config[0] != '/')
        return usage("a session changes its directory, so --config takes an absolute path, not",
                     options->config);
    if (!options->config_given && options->session)
        strcpy(options->config, CONFIG_NONE);
    else if (!options->config_given)
        config_default_path(options->config);
    return -1;
}

/* Handles one option. Returns -1 to go on, or the exit status. */
static int read_option(struct options *options, int option, const char **ret_idle)
{
    switch (option) {
    case 's':
        if (optarg[0] == '\0' || strlen(optarg) >= sizeof options->socket)
            return usage("--socket takes a path of 1 to 107 bytes, not", optarg);
        strcpy(options->socket, optarg);
        options->socket_given = true;
        return -1;
    case 'S':
        options->session = true;
        return -1;
    case 'i':
        *ret_idle = optarg;
        return -1;
    case 'c':
        if (optarg[0] == '\0' || strlen(optarg) >= sizeof options->config)
            return usage("--config takes a path, not", optarg);
        strcpy(options->config, optarg);
        return -1;
    case 'r':
        return read_ready_fd(optarg, &options->ready_fd);
    case 'C':
        options->check_config = true;
        return -1;
    case 'h':
        fputs(help, stdout);
        return 0;
    case 'v':
        puts("shmviewd " SHMVIEW_VERSION);
        return 0;
    default:
        fputs("Try 'shmviewd --help'.\n", stderr);
        return EXIT_USAGE;
    }
}

int options_read(struct options *options, int argc, char **argv)
{
    static const struct option table[] = {
        {"socket", required_argument, NULL, 's'},
        {"session", no_argument, NULL, 'S'},
        {"idle-exit", required_argument, NULL, 'i'},
        {"config", required_argument, NULL, 'c'},
        {"check-config", no_argument, NULL, 'C'},
        {"ready-fd", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    const char *idle = NULL;
    int status;
    *options = (struct options){.ready_fd = -1};
    for (int o; (o = getopt_long(argc, argv, "", table, NULL)) != -1;)
        if ((status = read_option(options, o, &idle)) != -1)
            return status;
    if (optind < argc)
        return usage("unexpected argument", argv[optind]);
    if (options->session && options->ready_fd >= 0)
        return usage("a session reports by its exit that it is ready, not by", "--ready-fd");
    if (!idle && options->session) {
        idle = getenv("SHMVIEW_IDLE_EXIT");
        if (!idle || !idle[0])
            idle = SESSION_IDLE_EXIT;
    }
    if (!idle)
        idle = "0";
    if ((status = read_seconds(idle, &options->idle_exit)) != -1)
        return status;
    if ((status = find_config(options)) != -1)
        return status;
    if (!options->socket[0] && default_socket(options))
        return usage("a socket path has at most 107 bytes; too long:",
                     getenv("SHMVIEW_SOCKET") ? getenv("SHMVIEW_SOCKET") : "$XDG_RUNTIME_DIR");
    return -1;
}
