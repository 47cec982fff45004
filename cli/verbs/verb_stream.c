/* SPDX-License-Identifier: Apache-2.0 */
/* stream create: makes a segment a stream of frames. The daemon and the library do the rest: a
 * stream is shown, read and removed like any other segment. */
#include <string.h>

#include "cli/text/access_text.h"
#include "cli/text/layout_text.h"
#include "cli/text/show.h"
#include "cli/text/stream.h"

/* The command line. Its owner owes create_deinit(). */
struct create_call {
    const char *name;
    struct shmview_stream_spec spec;
    struct shmview_create_options options;
    struct access_text access;
    struct layout_text layout;
    size_t mode; /* enum stream_mode; N_STREAM_MODES without --mode */
    int64_t slots, history, stages;
    bool many_writers, json;
    size_t backing; /* index in backing_names; N_BACKINGS: the daemon's default */
};

static void create_deinit(struct create_call *call)
{
    access_text_deinit(&call->access);
    layout_text_deinit(&call->layout);
}

static int read_permissions(struct context *c, const char *value, void *to)
{
    return access_mode(c, value, to);
}

static int read_owner(struct context *c, const char *value, void *to)
{
    return access_owner(c, value, to);
}

static int read_group(struct context *c, const char *value, void *to)
{
    return access_group(c, value, to);
}

static int read_entries(struct context *c, const char *value, void *to)
{
    return access_entries(c, value, to);
}

/* Parses the views as those of one layout. If one of them has an @OFFSET, all have the offsets of
 * the text, from the first byte of a frame; otherwise the library places them. Returns 0 or the
 * exit status. */
static int read_views(struct context *c, char **views, struct create_call *call)
{
    CLEANUP_FREE char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return fail_memory(c);
    fputs(STREAM_LAYOUT ":", out);
    for (; *views; views++)
        fprintf(out, " %s", *views);
    if (fclose(out))
        return fail_memory(c);
    int status = layout_text_parse(c, text, &call->layout);
    if (status)
        return status;
    bool placed = false;
    for (size_t i = 0; i < call->layout.n; i++)
        placed |= call->layout.views[i].has_offset;
    for (size_t i = 0; !placed && i < call->layout.n; i++)
        call->layout.specs[i].offset = 0;
    call->spec.flags |= placed ? SHMVIEW_PLACED : 0;
    call->spec.views = call->layout.specs;
    call->spec.n_views = call->layout.n;
    return 0;
}

static int create(struct context *c, struct create_call *call)
{
    struct shmview_stream *stream;
    int r = shmview_stream_create(c->connection, call->name, &call->spec, &stream);
    if (r)
        return fail_call(c, r);
    shmview_stream_close(stream);
    return call->json ? describe_json(c, call->name) : EXIT_OK;
}

/* Checks the arguments after the options. Returns 0 or the exit status. */
static int check_words(struct context *c, char **words, const struct create_call *call)
{
    if (strcmp(words[0], "create") != 0)
        return fail_usage(c, "'%s' is no action: write 'stream create NAME --mode MODE VIEW...'",
                          words[0]);
    if (!words[1] || !words[2])
        return fail_missing(c);
    if (call->mode == N_STREAM_MODES)
        return fail_usage(c,
                          "--mode is missing: latest, so that writers never wait for readers, or "
                          "lossless, so that readers get every frame");
    return 0;
}

static int run_stream(struct context *c, int argc, char **argv)
{
    CLEANUP(create_deinit)
    struct create_call call = {
        .options.struct_bytes = sizeof call.options,
        .access.change.struct_bytes = sizeof call.access.change,
        .mode = N_STREAM_MODES,
        .slots = 8,
        .stages = 1,
        .backing = N_BACKINGS,
    };
    const struct verb_option options[] = {
        OPT_WORD("mode", 'm', &call.mode, stream_mode_names),
        OPT_NUMBER("slots", 's', &call.slots, 2, SHMVIEW_STREAM_SLOTS_MAX),
        OPT_NUMBER("history", 'H', &call.history, 0, SHMVIEW_STREAM_SLOTS_MAX - 1),
        OPT_NUMBER("stages", '\0', &call.stages, 1, SHMVIEW_STREAM_STAGES_MAX),
        OPT_FLAG("many-writers", '\0', &call.many_writers),
        OPT_CALL("permissions", '\0', &call.access, read_permissions),
        OPT_CALL("owner", '\0', &call.access, read_owner),
        OPT_CALL("group", '\0', &call.access, read_group),
        OPT_CALL("access", '\0', &call.access, read_entries),
        OPT_WORD("backing", '\0', &call.backing, backing_names),
        OPT_FLAG("json", 'J', &call.json),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 1, argc))
        return c->status;
    int status = check_words(c, argv + optind, &call);
    if (status)
        return status;
    call.name = argv[optind + 1];
    call.options.lifetime = SHMVIEW_MANUAL;
    call.options.access = &call.access.change;
    call.options.backing = call.backing < N_BACKINGS ? (uint32_t)call.backing + 1 : 0;
    call.spec = (struct shmview_stream_spec){
        .struct_bytes = sizeof call.spec,
        .mode = call.mode == STREAM_MODE_LATEST ? SHMVIEW_LATEST : SHMVIEW_LOSSLESS,
        .n_slots = (uint32_t)call.slots,
        .history = (uint32_t)call.history,
        .n_stages = (uint32_t)call.stages,
        .flags = call.many_writers ? SHMVIEW_MANY_WRITERS : 0,
        .options = &call.options,
    };
    status = read_views(c, argv + optind + 2, &call);
    if (status == 0)
        status = connect_or_start(c);
    return status ? status : create(c, &call);
}

const struct verb verb_stream = {
    .name = "stream",
    .arguments = "create NAME VIEW...",
    .summary = "Create a stream, whose frames have these views",
    .help = "A VIEW is 'NAME=FORMAT[LENGTHS]@OFFSET', as in a layout; its offset counts in\n"
            "a frame.\n"
            "\n"
            "  -m, --mode DELIVERY       latest: writers never wait for a late reader;\n"
            "                            lossless: they wait until all have read a frame\n"
            "  -s, --slots N             frames that fit at once, 2 to 512 (8)\n"
            "  -H, --history N           earlier frames for a reader that joins (0)\n"
            "      --stages N            sequences that share the slots, 1 to 6 (1)\n"
            "      --many-writers        several processes may write at once\n"
            "      --permissions OCTAL   like those of a file, 0600 (default) to 0666\n"
            "      --owner USER[:GROUP]  only administrators may set another owner\n"
            "      --group GROUP         the group to which the permissions apply\n"
            "      --access LIST         user:NAME:rw,group:NAME:r,user:NAME:none ...\n"
            "      --backing BACKING     file: in /dev/shm; sealed: of a size that nobody\n"
            "                            can change\n"
            "  -J, --json                print the new segment, like show --json\n",
    .run = run_stream,
};
