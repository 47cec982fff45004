/* SPDX-License-Identifier: Apache-2.0 */
/* run: a command with an instance of its own. */
#include <signal.h>
#include <unistd.h>

#include "cli/shell/command.h"
#include "cli/shell/keeper.h"

static int run_run(struct context *c, int argc, char **argv)
{
    struct keeper_options wanted = {.config = NULL};
    const struct verb_option options[] = {
        OPT_TEXT("config", 'c', &wanted.config),
        OPT_FLAG("verbose", 'v', &wanted.is_loud),
        OPT_END,
    };
    struct keeper keeper;
    int number;
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    if (c->socket)
        return fail_usage(c, "--socket names a daemon that runs; this one has a socket of its own");
    if (optind == argc)
        return fail_usage(c, "a command to run is missing");
    if (wanted.config && access(wanted.config, R_OK))
        return fail_text(c, "cannot read %s: %m: name another file with --config", wanted.config);
    int status = keeper_start(c, &wanted, &keeper);
    if (status)
        return status;
    setenv("SHMVIEW_SOCKET", keeper.socket, 1);
    struct command command = {.argv = argv + optind, .death_signal = SIGTERM};
    status = command_run(c, &command, &number);
    keeper_stop(c, &keeper);
    return status;
}

const struct verb verb_run = {
    .name = "run",
    .arguments = "[--] COMMAND [ARGUMENT]...",
    .summary = "Run a command with a throw-away daemon of its own",
    .help = "  -c, --config FILE         the daemon's configuration, see shmviewd.json(5)\n"
            "  -v, --verbose             the daemon's log goes to standard error\n"
            "\nThe command finds the daemon in SHMVIEW_SOCKET. The status is the command's;\n"
            "128+N where signal N ended it. The daemon ends with the command, or with this\n"
            "program, however it ends, and all its segments with it.\n"
            "Example: shmviewctl run -- python3 -m pytest\n\n",
    .run = run_run,
    .stops_at_argument = true,
};
