/* SPDX-License-Identifier: Apache-2.0 */
/* run: runs a command with a daemon of its own, for tests and trials.
 *
 * The command and its children find the daemon by $SHMVIEW_SOCKET. The daemon, its segments and its
 * directory end with the command. They must also end if this program is killed, when it cannot
 * clean up; cli/shell/keeper starts a second process for that. */
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
        return fail_usage(c, "--socket names a running daemon, but this verb starts its own");
    if (optind == argc)
        return fail_usage(c, "a command to run is missing");
    /* checked here, so that the message can name the option */
    if (wanted.config && access(wanted.config, R_OK))
        return fail_text(c, "cannot read %s: %m: name another file with --config", wanted.config);
    int status = keeper_start(c, &wanted, &keeper);
    if (status)
        return status;
    setenv("SHMVIEW_SOCKET", keeper.socket, 1);
    /* SIGTERM lets the command clean up if this program is killed. It may run on for that, unlike a
     * command of lock, because no other program uses its daemon. */
    struct command command = {.argv = argv + optind, .death_signal = SIGTERM};
    status = command_run(c, &command, &number);
    keeper_stop(c, &keeper);
    return status;
}

const struct verb verb_run = {
    .name = "run",
    .arguments = "[--] COMMAND [ARGUMENT]...",
    .summary = "Run a command with a throw-away daemon of its own",
    .help = "  -c, --config FILE         configuration of the daemon, see shmviewd.json(5)\n"
            "  -v, --verbose             print the daemon's log on standard error\n"
            "\nThe command finds the daemon by SHMVIEW_SOCKET. The status is the command's, or\n"
            "128+N if signal N ended it. The daemon and all its segments end with the\n"
            "command, and also with this program, in whatever way that ends.\n"
            "Example: shmviewctl run -- python3 -m pytest\n\n",
    .run = run_run,
    .stops_at_argument = true,
};
