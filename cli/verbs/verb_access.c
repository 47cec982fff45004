/* SPDX-License-Identifier: Apache-2.0 */
/* chmod, chown: change owner, group, mode and entries of segments.
 *
 * The command line is checked before the first segment is changed, so that a mistyped mode changes
 * nothing. Segments are then changed one after the other. One that fails does not stop the others,
 * as with chmod(1); the exit status is that of the last failure. */
#include <shmview/describe.h>

#include "cli/text/access_text.h"
#include "cli/text/show.h"

/* Sends the changes that the command line asks for. Returns the exit status, after printing the
 * error. */
static int change_access(struct context *c, const char *name, const struct access_text *a)
{
    int r = shmview_set_access(c->connection, name, &a->change);
    return r ? fail_segment(c, r, name) : EXIT_OK;
}

/* Changes the mode of one segment. Letters such as g+rw depend on the present mode, which this
 * function requests first, for each segment. The two requests are not one step: the later of two
 * chmods that run at once may undo the other. */
static int change_mode(struct context *c, const char *name, const char *mode, struct access_text *a)
{
    if (access_is_symbolic(mode)) {
        const struct shmview_description *d;
        int r = shmview_describe(c->connection, name, &d);
        if (r)
            return fail_segment(c, r, name);
        uint32_t now = (uint32_t)d->mode;
        shmview_description_free(d);
        int status = access_symbolic(c, mode, now, a);
        if (status)
            return status;
    }
    return change_access(c, name, a);
}

/* Checks the syntax of a mode before a segment is changed. Letters are applied to 0 and the result
 * is dropped, because change_mode() applies them to the mode of each segment. Returns 0 or the exit
 * status. */
static int check_mode(struct context *c, const char *mode, struct access_text *a)
{
    if (access_is_symbolic(mode))
        return access_symbolic(c, mode, 0, a);
    return access_mode(c, mode, a);
}

static int read_entries(struct context *c, const char *value, void *to)
{
    return access_entries(c, value, to);
}

static int run_chmod(struct context *c, int argc, char **argv)
{
    CLEANUP(access_text_deinit)
    struct access_text a = {.change.struct_bytes = sizeof a.change};
    const struct verb_option options[] = {OPT_CALL("access", 'a', &a, read_entries), OPT_END};
    int status = 0, worst = EXIT_OK;
    if (!options_read(c, argc, argv, options, 1, argc))
        return c->status;
    bool has_mode = !a.names; /* --access replaces the argument MODE */
    if (has_mode && argc - optind < 2)
        return fail_missing(c);
    const char *mode = argv[optind];
    if (has_mode) {
        optind++;
        status = check_mode(c, mode, &a);
    }
    status = status ? status : connect_daemon(c);
    if (status)
        return status;
    for (int i = optind; i < argc; i++) {
        status = has_mode ? change_mode(c, argv[i], mode, &a) : change_access(c, argv[i], &a);
        worst = status ? status : worst;
    }
    return worst;
}

const struct verb verb_chmod = {
    .name = "chmod",
    .arguments = "MODE NAME... | -a LIST NAME...",
    .summary = "Change the mode of segments, or their entries of users and groups",
    .help = "MODE is octal, like 0660, or letters, like g+rw,o=. Attachments keep the access\n"
            "that they have.\n"
            "\n"
            "  -a, --access LIST         replace all entries: user:NAME:rw,group:NAME:r,\n"
            "                            user:NAME:none ...; '' removes them\n",
    .run = run_chmod,
};

static int run_chown(struct context *c, int argc, char **argv)
{
    const struct verb_option options[] = {OPT_END};
    struct access_text a = {.change.struct_bytes = sizeof a.change};
    int worst = EXIT_OK;
    if (!options_read(c, argc, argv, options, 2, argc))
        return c->status;
    int status = access_owner(c, argv[optind], &a);
    status = status ? status : connect_daemon(c);
    if (status)
        return status;
    for (int i = optind + 1; i < argc; i++) {
        status = change_access(c, argv[i], &a);
        worst = status ? status : worst;
    }
    return worst;
}

const struct verb verb_chown = {
    .name = "chown",
    .arguments = "OWNER[:GROUP] NAME...",
    .summary = "Change the owner and the group of segments",
    .help = "OWNER and GROUP are names or numbers; ':GROUP' changes the group only. Only\n"
            "administrators may set another owner, or a group that they are not in.\n"
            "\n",
    .run = run_chown,
};
