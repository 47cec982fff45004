/* SPDX-License-Identifier: Apache-2.0 */
/* create, define: make a segment, and declare its layouts.
 *
 * All layouts are parsed before the daemon gets a request, because the size of the segment may
 * follow from them. create is all or nothing: if the daemon refuses a layout, the new segment is
 * removed again. define cannot undo, because layouts live as long as their segment. */
#include <signal.h>
#include <string.h>

#include "cli/text/access_text.h"
#include "cli/text/layout_text.h"
#include "cli/text/placement_text.h"
#include "cli/text/show.h"

#define LAYOUTS_MOST 64 /* of one segment: SHMVIEW_LAYOUTS_MAX */

/* The layouts of one command line. A struct of zeroes is empty; its owner owes layouts_deinit(). */
struct layouts_text {
    struct layout_text list[LAYOUTS_MOST];
    size_t n;
};

static void layouts_deinit(struct layouts_text *layouts)
{
    for (size_t i = 0; i < layouts->n; i++)
        layout_text_deinit(&layouts->list[i]);
}

/* Parses one layout. Also after an error the entry counts, because layout_text_parse() owes a
 * deinit in any case. Returns 0 or the exit status. */
static int add_layout(struct context *c, const char *text, struct layouts_text *layouts)
{
    if (layouts->n == LAYOUTS_MOST)
        return fail_usage(c, "a segment has at most %d layouts", LAYOUTS_MOST);
    return layout_text_parse(c, text, &layouts->list[layouts->n++]);
}

/* Declares the layouts in their order, up to the first that the daemon refuses. Returns the exit
 * status. */
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

/* The command line of create. Its owner owes create_deinit(). */
struct create_call {
    const char *name;
    uint64_t size;
    struct shmview_create_options options;
    struct access_text access;
    struct layouts_text layouts;
    size_t lifetime; /* index in lifetime_names, which is the enum shmview_lifetime less 1 */
    struct shmview_placement placement;
    size_t huge;    /* likewise in huge_names; N_HUGE: not wanted */
    size_t backing; /* likewise in backing_names; N_BACKINGS: the daemon's default */
    bool no_lock, own_memory, populate, json;
};

#define N_HUGE ((size_t)SHMVIEW_HUGE_REQUIRED)

static void create_deinit(struct create_call *call)
{
    access_text_deinit(&call->access);
    layouts_deinit(&call->layouts);
}

static int read_layout(struct context *c, const char *value, void *to)
{
    return add_layout(c, value, to);
}

static int read_mode(struct context *c, const char *value, void *to)
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

/* Sets call->size to the argument SIZE, or else to the end of the last view of all layouts. Refuses
 * a size that is too small for a layout: the daemon would only do so after it has created the
 * segment. Returns 0 or the exit status. */
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

/* Keeps the segment until a signal comes. Without an attachment, or without its creator, a segment
 * of such a lifetime would end at once. The signals are blocked and awaited, so that this process
 * detaches in order and its exit status is 0. */
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
    fflush(stdout); /* the JSON must not wait for the end */
    warn_text(c, "'%s' exists as long as %s; Ctrl-C ends this program", call->name,
              creator ? "this program runs" : "a program, such as this one, has it attached");
    sigwait(&ends, &number);
}

/* Creates the segment with its layouts. Returns the exit status; with a lifetime other than manual
 * only after the user has ended the program. */
static int create(struct context *c, struct create_call *call)
{
    bool stays = call->options.lifetime != SHMVIEW_MANUAL;
    struct shmview_segment *segment;
    int r = shmview_create(c->connection, call->name, call->size, &call->options, &segment);
    if (r == -SHMVIEW_ERR_NO_SPACE && call->placement.huge == SHMVIEW_HUGE_REQUIRED)
        return fail_text(c, "%s: 'shmviewctl doctor' shows where huge pages can come from",
                         shmview_error_text());
    if (r)
        return fail_call(c, r);
    int status = define_all(c, segment, &call->layouts);
    if (status)
        shmview_remove(c->connection, call->name); /* all or nothing */
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
    CLEANUP(create_deinit)
    struct create_call call = {
        .options.struct_bytes = sizeof call.options,
        .access.change.struct_bytes = sizeof call.access.change,
        .lifetime = SHMVIEW_MANUAL - 1,
        .backing = N_BACKINGS,
        .placement.struct_bytes = sizeof call.placement,
        .huge = N_HUGE,
    };
    const struct verb_option options[] = {
        OPT_CALL("layout", 'l', &call.layouts, read_layout),
        OPT_CALL("mode", 'm', &call.access, read_mode),
        OPT_CALL("owner", '\0', &call.access, read_owner),
        OPT_CALL("group", '\0', &call.access, read_group),
        OPT_CALL("access", '\0', &call.access, read_entries),
        OPT_TEXT("label", '\0', &call.options.label),
        OPT_WORD("lifetime", '\0', &call.lifetime, lifetime_names),
        OPT_WORD("backing", '\0', &call.backing, backing_names),
        OPT_WORD("huge", '\0', &call.huge, huge_names),
        OPT_CALL("numa", '\0', &call.placement, placement_parse),
        OPT_FLAG("no-lock", '\0', &call.no_lock),
        OPT_FLAG("own-memory", '\0', &call.own_memory),
        OPT_FLAG("populate", '\0', &call.populate),
        OPT_FLAG("json", 'J', &call.json),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 1, 2))
        return c->status;
    call.options.lifetime = (uint32_t)call.lifetime + 1;
    call.options.backing = call.backing < N_BACKINGS ? (uint32_t)call.backing + 1 : 0;
    call.placement.huge = call.huge < N_HUGE ? (uint32_t)call.huge + 1 : 0;
    call.options.placement = &call.placement;
    call.options.flags = (call.no_lock ? SHMVIEW_NO_LOCK : 0) |
                         (call.own_memory ? SHMVIEW_OWN_MEMORY : 0) |
                         (call.populate ? SHMVIEW_POPULATE : 0);
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
    "  -l, --layout LAYOUT       declare this layout; may be given several times\n"
    "  -m, --mode MODE           like that of a file, 0600 (default) to 0666\n"
    "      --owner USER[:GROUP]  only administrators may set another owner\n"
    "      --group GROUP         the group to which the mode applies\n"
    "      --access LIST         user:NAME:rw,group:NAME:r,user:NAME:none ...\n"
    "      --lifetime WHEN       manual: until it is removed (default); attached:\n"
    "                            while attached; creator: while this program runs\n"
    "      --label TEXT          a text of at most 63 bytes, which show prints\n"
    "      --backing BACKING     file: in /dev/shm; sealed: of a size that nobody can\n"
    "                            change; a keeper holds it while no daemon runs\n"
    "      --huge HUGE           huge pages: wanted, or required\n"
    "      --numa NODES          local, interleaved, or the number of a node\n"
    "      --no-lock             create it without a lock, and so without phases\n"
    "      --own-memory          this program's control group pays for it; sealed\n"
    "      --populate            map every page now\n"
    "  -J, --json                print the new segment, like show --json\n",
    .run = run_create,
};

/* --- define -------------------------------------------------------------- */

/* Attaches for writing, because shmview_define() needs SHMVIEW_WRITE. */
static int run_define(struct context *c, int argc, char **argv)
{
    CLEANUP(layouts_deinit) struct layouts_text layouts = {.n = 0};
    struct shmview_segment *segment;
    bool json = false;
    const struct verb_option options[] = {OPT_FLAG("json", 'J', &json), OPT_END};
    if (!options_read(c, argc, argv, options, 2, LAYOUTS_MOST + 1))
        return c->status;
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
                             "  -J, --json                print the segment, like show --json\n",
    .run = run_define,
};
