/* SPDX-License-Identifier: Apache-2.0 */
/* remove: names go at once, memory with the last attachment. */
#include "cli/shell/cli.h"

static int run_remove(struct context *c, int argc, char **argv)
{
    bool force = false;
    const struct verb_option options[] = {OPT_FLAG("force", 'f', &force), OPT_END};
    int worst = EXIT_OK;
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    if (!force && optind == argc)
        return fail_missing(c);
    int status = connect_daemon(c);
    if (status)
        return status;
    for (int i = optind; i < argc; i++) {
        int r = shmview_remove(c->connection, argv[i]);
        if (r && !(force && r == -SHMVIEW_ERR_NOT_FOUND))
            worst = fail_segment(c, r, argv[i]);
    }
    return worst;
}

const struct verb verb_remove = {
    .name = "remove",
    .arguments = "NAME...",
    .summary = "Remove segments: names at once, memory with the last attachment",
    .help = "  -f, --force               no error for one that is not there\n",
    .run = run_remove,
};
