/* SPDX-License-Identifier: Apache-2.0 */
/* freeze: makes the bytes of segments immutable. There is no option for SHMVIEW_FREEZE_FUTURE,
 * because the one producer that continues would be this command. One segment that fails does not
 * stop the others; the exit status is that of the last failure. */
#include <shmview/freeze.h>

#include "cli/shell/cli.h"

static int freeze_one(struct context *c, const char *name)
{
    struct shmview_segment *segment;
    int r = shmview_attach(c->connection, name, SHMVIEW_PEEK, 0, &segment);
    if (r)
        return fail_attach(c, r, name);
    bool is_frozen = shmview_is_frozen(segment);
    shmview_detach(segment);
    if (is_frozen)
        return EXIT_OK;
    r = shmview_attach(c->connection, name, SHMVIEW_WRITE, 0, &segment);
    if (r)
        return fail_attach(c, r, name);
    r = shmview_freeze(segment, 0);
    int status = r ? fail_segment(c, r, name) : EXIT_OK;
    shmview_detach(segment);
    return status;
}

static int run_freeze(struct context *c, int argc, char **argv)
{
    const struct verb_option options[] = {OPT_END};
    int worst = EXIT_OK;
    if (!options_read(c, argc, argv, options, 1, argc))
        return c->status;
    int status = connect_daemon(c);
    for (int i = optind; status == EXIT_OK && i < argc; i++) {
        int one = freeze_one(c, argv[i]);
        worst = one ? one : worst;
    }
    return status ? status : worst;
}

const struct verb verb_freeze = {
    .name = "freeze",
    .arguments = "NAME...",
    .summary = "Make the bytes of sealed segments immutable, for good",
    .help = "Only segments that were created with --backing sealed can be frozen, and only\n"
            "while no other process may write to them.\n",
    .run = run_freeze,
};
