/* SPDX-License-Identifier: Apache-2.0 */
/* remove: removes the names of segments. The daemon frees the memory of each with its last
 * attachment, so that programs that use the segment are not disturbed. One that fails does not stop
 * the others; the exit status is that of the last failure. */
#include "cli/shell/cli.h"

static int run_remove(struct context *c, int argc, char **argv)
{
    bool force = false;
    const struct verb_option options[] = {OPT_FLAG("force", 'f', &force), OPT_END};
    int worst = EXIT_OK;
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    /* like rm -f, which accepts an empty list: scripts pass patterns that may match nothing */
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
    .help = "  -f, --force               a missing segment is not an error\n",
    .run = run_remove,
};
