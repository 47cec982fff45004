/* SPDX-License-Identifier: Apache-2.0 */
/* remove: names go at once, memory with the last attachment. */
#include "cli/shell/cli.h"

static int run_remove(struct context *c, int argc, char **argv)
{
    static const struct option options[] = {{"force", no_argument, NULL, 'f'}, COMMON_OPTIONS};
    bool force = false;
    int worst = EXIT_OK;
    for (int o; (o = option_next(c, argc, argv, options)) != OPTION_END;) {
        if (o == OPTION_EXIT)
            return c->status;
        force = true;
    }
    if (!has_arguments(c, argc, argv, force ? 0 : 1, argc))
        return EXIT_USAGE;
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
