/* SPDX-License-Identifier: Apache-2.0 */
/* create, define: segments and their layouts. */
#include <signal.h>
#include <string.h>

#include "cli/text/access_text.h"
#include "cli/text/layout_text.h"
#include "cli/text/show.h"

#define LAYOUTS_MOST 64 /* as the daemon has it */

/* Those of one command. */
struct layouts_text {
    struct layout_text list[LAYOUTS_MOST];
    size_t n;
};

static void layouts_deinit(struct layouts_text *layouts)
{
    for (size_t i = 0; i < layouts->n; i++)
        layout_text_deinit(&layouts->list[i]);
}

static int add_layout(struct context *c, const char *text, struct layouts_text *layouts)
{
    if (layouts->n == LAYOUTS_MOST)
        return fail_usage(c, "a segment has at most %d layouts", LAYOUTS_MOST);
    return layout_text_parse(c, text, &layouts->list[layouts->n++]);
}

static int define_all(struct context *c, struct shmview_segment *segment,
                      const struct layouts_text *layouts)
{
    for (size_t i = 0; i < layouts->n; i++) {
        const struct layout_text *l = &layouts->list[i];
        int r = shmview_define(segment, l->name, l->specs, l->n);
        if (r)
            return fail_call(c, r);
    }
    return EXIT_OK;
}

/* --- create -------------------------------------------------------------- */

enum {
    OPTION_LAYOUT = 'l',
    OPTION_MODE = 'm',
    OPTION_OWNER = OPTION_LONG,
    OPTION_GROUP,
    OPTION_ACCESS,
    OPTION_LIFETIME,
    OPTION_NO_LOCK,
    OPTION_POPULATE,
};

struct create_call {
    const char *name;
    uint64_t size;
    struct shmview_create_options options;
    struct access_text access;
    struct layouts_text layouts;
    bool json;
};

static void create_deinit(struct create_call *call)
{
    access_text_deinit(&call->access);
    layouts_deinit(&call->layouts);
}

static int read_create_option(struct context *c, int o, struct create_call *call)
{
    size_t lifetime;
    int status;
    switch (o) {
    case OPTION_LAYOUT:
        return add_layout(c, optarg, &call->layouts);
    case OPTION_MODE:
        return access_mode(c, optarg, &call->access);
    case OPTION_OWNER:
        return access_owner(c, optarg, &call->access);
    case OPTION_GROUP:
        return access_group(c, optarg, &call->access);
    case OPTION_ACCESS:
        return access_entries(c, optarg, &call->access);
    case OPTION_LIFETIME:
        status = parse_word(c, "lifetime", optarg, lifetime_names, &lifetime);
        call->options.lifetime = status ? 0 : (uint32_t)lifetime + 1;
        return status;
    case OPTION_NO_LOCK:
        call->options.flags |= SHMVIEW_NO_LOCK;
        return 0;
    case OPTION_POPULATE:
        call->options.flags |= SHMVIEW_POPULATE;
        return 0;
    default:
        call->json = true;
        return 0;
    }
}

/* The size that was asked for, or what the layouts need. */
static int find_size(struct context *c, const char *text, struct create_call *call)
{
    uint64_t needed = 0;
    for (size_t i = 0; i < call->layouts.n; i++)
        if (call->layouts.list[i].end > needed)
            needed = call->layouts.list[i].end;
    if (text) {
        int status = parse_bytes(c, "size", text, &call->size);
        if (status)
            return status;
    } else {
        call->size = needed;
    }
    if (call->size == 0)
        return fail_usage(c, text ? "a size is 1 byte or more"
                                  : "a size is missing: give one, or a --layout that needs some");
    if (call->size < needed)
        return fail_usage(c, "size %s is too small: the layouts need %llu bytes", text,
                          (unsigned long long)needed);
    return 0;
}

/* A segment that goes with its attachments needs somebody who stays. */
static void stay(struct context *c, const struct create_call *call)
{
    bool creator = call->options.lifetime == SHMVIEW_CREATOR;
    sigset_t ends;
    int number;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    fflush(stdout);
    warn_text(c, "'%s' is there as long as %s; Ctrl-C ends this", call->name,
              creator ? "this program" : "somebody is attached, as this program is");
    sigwait(&ends, &number);
}

static int create(struct context *c, struct create_call *call)
{
    bool stays = call->options.lifetime != SHMVIEW_MANUAL;
    struct shmview_segment *segment;
    int r = shmview_create(c->connection, call->name, call->size, &call->options, &segment);
    if (r)
        return fail_call(c, r);
    int status = define_all(c, segment, &call->layouts);
    if (status)
        shmview_remove(c->connection, call->name); /* nothing, or all of it */
    if (status || !stays)
        shmview_detach(segment);
    if (status == EXIT_OK && call->json)
        status = describe_json(c, call->name);
    if (stays && status == EXIT_OK) {
        stay(c, call);
        shmview_detach(segment);
    }
    return status;
}

static int run_create(struct context *c, int argc, char **argv)
{
    static const struct option options[] = {
        {"layout", required_argument, NULL, OPTION_LAYOUT},
        {"mode", required_argument, NULL, OPTION_MODE},
        {"owner", required_argument, NULL, OPTION_OWNER},
        {"group", required_argument, NULL, OPTION_GROUP},
        {"access", required_argument, NULL, OPTION_ACCESS},
        {"lifetime", required_argument, NULL, OPTION_LIFETIME},
        {"no-lock", no_argument, NULL, OPTION_NO_LOCK},
        {"populate", no_argument, NULL, OPTION_POPULATE},
        {"json", no_argument, NULL, 'J'},
        COMMON_OPTIONS,
    };
    CLEANUP(create_deinit)
    struct create_call call = {
        .options = {.struct_bytes = sizeof call.options, .lifetime = SHMVIEW_MANUAL},
        .access.change.struct_bytes = sizeof call.access.change,
    };
    for (int o; (o = option_next(c, argc, argv, options)) != OPTION_END;) {
        int status = o == OPTION_EXIT ? c->status : read_create_option(c, o, &call);
        if (o == OPTION_EXIT || status)
            return status;
    }
    if (!has_arguments(c, argc, argv, 1, 2))
        return EXIT_USAGE;
    call.name = argv[optind];
    call.options.access = &call.access.change;
    int status = find_size(c, argv[optind + 1], &call);
    if (status == 0)
        status = connect_or_start(c);
    return status ? status : create(c, &call);
}

const struct verb verb_create = {
    .name = "create",
    .arguments = "NAME [SIZE]",
    .summary = "Create a segment, zeroed, of SIZE bytes or of what its layouts need",
    .help = LAYOUT_TEXT_HELP
    "\n"
    "  -l, --layout LAYOUT       declare it as well; may be given many times\n"
    "  -m, --mode MODE           as a file's: 0600, the default, to 0666\n"
    "      --owner USER[:GROUP]  for administrators, as is a --group one is not in\n"
    "      --group GROUP         whom the mode's second digit is for\n"
    "      --access LIST         user:NAME:rw,group:NAME:r,user:NAME:none ...\n"
    "      --lifetime WHEN       manual: it stays until it is removed (default);\n"
    "                            attached, creator: stay here and keep it\n"
    "      --no-lock             no lock, no phases: only its bytes\n"
    "      --populate            touch every page now\n"
    "  -J, --json                print what has been created, as show does\n",
    .run = run_create,
};

/* --- define -------------------------------------------------------------- */

static int run_define(struct context *c, int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'J'}, COMMON_OPTIONS};
    CLEANUP(layouts_deinit) struct layouts_text layouts = {.n = 0};
    struct shmview_segment *segment;
    bool json = false;
    for (int o; (o = option_next(c, argc, argv, options)) != OPTION_END;) {
        if (o == OPTION_EXIT)
            return c->status;
        json = true;
    }
    if (!has_arguments(c, argc, argv, 2, LAYOUTS_MOST + 1))
        return EXIT_USAGE;
    const char *name = argv[optind];
    int status = 0;
    for (int i = optind + 1; status == 0 && i < argc; i++)
        status = add_layout(c, argv[i], &layouts);
    status = status ? status : attach(c, name, SHMVIEW_WRITE, &segment);
    if (status)
        return status;
    status = define_all(c, segment, &layouts);
    shmview_detach(segment);
    return status || !json ? status : describe_json(c, name);
}

const struct verb verb_define = {
    .name = "define",
    .arguments = "NAME LAYOUT...",
    .summary = "Declare layouts of a segment",
    .help = LAYOUT_TEXT_HELP "\n"
                             "  -J, --json                print the segment, as show does\n",
    .run = run_define,
};
