/* SPDX-License-Identifier: Apache-2.0 */
/* show: prints everything that is known of one segment, and a picture of its memory.
 *
 * The slots of a stream are a second picture; its facts come from its shared memory.
 *
 * The facts come from two requests: Describe has the access and the layouts, Stats has the phase
 * and the clients. They may not fit each other exactly, because the segment may change in between.
 *
 * create, define, switch and wait print the same JSON with --json, by describe_json(). */
#include <inttypes.h>
#include <string.h>

#include <shmview/describe.h>
#include <shmview/stats.h>

#include "cli/draw/picture.h"
#include "cli/text/bus_error.h"
#include "cli/text/placement_text.h"
#include "cli/text/show.h"
#include "cli/text/stream_show.h"
#include "cli/text/views.h"

/* A segment, as the replies to Describe and to Stats describe it. A struct of zeroes is empty; its
 * owner owes facts_free(). */
struct facts {
    const struct shmview_description *d;
    const struct shmview_stats *stats;
    const struct shmview_segment_stats *s; /* of stats; never NULL after ask() has returned 0 */
    struct stream_facts *stream;           /* NULL: the segment is no stream */
};

static void facts_free(struct facts *f)
{
    shmview_description_free(f->d);
    shmview_stats_free(f->stats);
    free(f->stream);
}
#define CLEANUP_FACTS CLEANUP(facts_free)

/* Sends both requests, and looks at the bytes of a stream after them, so that this program is no
 * party of it in the replies. A segment that is removed between them is reported as missing.
 * Returns 0 or the exit status; the caller owes facts_free() in any case. */
static int ask(struct context *c, const char *name, struct facts *f)
{
    const struct shmview_stats_options one = {
        .struct_bytes = sizeof one, .names = &name, .n_names = 1};
    int r = shmview_describe(c->connection, name, &f->d);
    r = r ? r : shmview_stats_get(c->connection, &one, &f->stats);
    if (r)
        return fail_segment(c, r, name);
    if (f->stats->n_segments == 0)
        return fail_not_found(c, name);
    f->s = f->stats->segments[0];
    bus_error_catch();
    r = stream_may_be(f->d) ? stream_facts_of(c, name, &f->stream) : 0;
    if (r == -SHMVIEW_ERR_DISCONNECTED)
        return fail_call(c, r);
    if (r) /* it is damaged, or this user may not read it; the rest can be shown */
        warn_text(c, "the slots of '%s' are not shown: %s", name, shmview_error_text());
    return 0;
}

/* --- JSON ---------------------------------------------------------------- */

/* The functions below return a new value. Unknown facts (-1, NULL, "") become null. */
static json_t *number(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *text(const char *t)
{
    return t && t[0] ? json_string(t) : json_null();
}

static json_t *time_text(int64_t us)
{
    char buffer[HUMAN_BYTES];
    return us < 0 ? json_null() : json_string(iso_time(buffer, us));
}

static json_t *mode_text(int64_t mode)
{
    char buffer[HUMAN_BYTES];
    snprintf(buffer, sizeof buffer, "%04" PRIo64, (uint64_t)mode);
    return mode < 0 ? json_null() : json_string(buffer);
}

/* Makes a list; null if list is NULL, such as the suboffsets of a view that has none. */
static json_t *numbers(const int64_t *list, uint32_t n)
{
    json_t *array = list ? json_array() : json_null();
    for (uint32_t i = 0; list && i < n; i++)
        json_array_append_new(array, json_integer(list[i]));
    return array;
}

static json_t *view_json(const struct shmview_view_description *v)
{
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:o, s:o, s:b, s:I, s:I}", "name", v->name,
                     "format", v->format, "itemsize", (int)v->itemsize, "nbytes",
                     (json_int_t)v->nbytes, "offset", (json_int_t)v->offset, "shape",
                     numbers(v->shape, v->ndim), "strides", numbers(v->strides, v->ndim),
                     "suboffsets", numbers(v->suboffsets, v->ndim), "readonly",
                     (v->flags & SHMVIEW_VIEW_READ_ONLY) != 0, "begin", (json_int_t)v->begin, "end",
                     (json_int_t)v->end);
}

static json_t *layouts_json(const struct shmview_description *d)
{
    json_t *all = json_array();
    for (size_t i = 0; i < d->n_layouts; i++) {
        const struct shmview_layout_description *l = d->layouts[i];
        json_t *views = json_array();
        for (size_t k = 0; k < l->n_views; k++)
            json_array_append_new(views, view_json(l->views[k]));
        json_array_append_new(all, json_pack("{s:s, s:o}", "name", l->name, "views", views));
    }
    return all;
}

/* The words of --access. */
static const char *right_name(uint32_t right)
{
    return right == SHMVIEW_WRITE ? "rw" : right == SHMVIEW_READ ? "r" : "none";
}

static json_t *entries_json(const struct shmview_description *d)
{
    json_t *all = json_array();
    for (size_t i = 0; i < d->n_entries; i++) {
        const struct shmview_entry_description *e = d->entries[i];
        bool user = e->kind == SHMVIEW_USER;
        json_array_append_new(all, json_pack("{s:s, s:I, s:s, s:s}", "kind",
                                             user ? "user" : "group", "id", (json_int_t)e->id,
                                             "name", user ? user_name(e->id) : group_name(e->id),
                                             "right", right_name(e->right)));
    }
    return all;
}

static json_t *parties_json(const struct shmview_segment_stats *s)
{
    json_t *all = json_array();
    for (size_t i = 0; i < s->n_parties; i++) {
        const struct shmview_party_stats *p = s->parties[i];
        json_array_append_new(
            all, json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pid", (json_int_t)p->pid,
                           "command", text(p->command), "uid", number(p->uid), "access",
                           text(access_name(p->access)), "slot", number(p->slot), "holds",
                           text(hold_name(p->holds)), "waits", text(hold_name(p->waits)), "since",
                           time_text(p->since_us)));
    }
    return all;
}

/* Writes what the segment got; "" if nothing was wanted. */
static const char *placement_of(const struct shmview_description *d, char *buffer)
{
    const struct shmview_placed placed = {
        .huge = d->huge,
        .huge_by = d->huge_by,
        .huge_missing = d->huge_missing,
        .numa = d->numa,
        .huge_bytes = d->huge_bytes > 0 ? (uint64_t)d->huge_bytes : 0,
        .nodes = d->nodes > 0 ? (uint64_t)d->nodes : 0,
    };
    return placement_text(buffer, &placed);
}

/* Makes the whole object, or NULL if memory is short. */
static json_t *facts_json(const struct facts *f)
{
    const struct shmview_description *d = f->d;
    const struct shmview_segment_stats *s = f->s;
    char placement[PLACEMENT_TEXT];
    return json_pack(
        "{s:s, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:{s:o, s:o}, s:o, "
        "s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "name", d->name, "id", (json_int_t)d->id, "size", (json_int_t)d->size, "resident",
        number(s->resident), "uid", (json_int_t)d->owner, "owner", text(user_name(d->owner)), "gid",
        number(d->group), "group", text(group_name(d->group)), "mode", mode_text(d->mode), "access",
        entries_json(d), "lifetime", text(lifetime_name(d->lifetime)), "lock", (int)d->has_lock,
        "created", time_text(s->created_us), "phase", "layout", text(s->layout), "generation",
        number(s->generation), "changes", number(s->changes), "deaths", number(s->owner_deaths),
        "attachments", (json_int_t)d->attachments, "attached", parties_json(s), "layouts",
        layouts_json(d), "stream", f->stream ? stream_json(f->stream) : json_null(), "label",
        text(d->label), "backing", text(backing_name(d->backing)), "frozen",
        text(frozen_name(d->frozen)), "paid_by", number(d->paid_by), "placement",
        text(placement_of(d, placement)));
}

static int print_facts_json(struct context *c, const struct facts *f)
{
    json_auto_t *json = facts_json(f);
    return print_json(c, json);
}

int describe_json(struct context *c, const char *name)
{
    CLEANUP_FACTS struct facts f = {.d = NULL};
    int status = ask(c, name, &f);
    return status ? status : print_facts_json(c, &f);
}

/* --- For people ---------------------------------------------------------- */

#define LABEL "  %-11s"

static void print_sizes(const struct facts *f)
{
    char size[HUMAN_BYTES], resident[HUMAN_BYTES];
    printf(LABEL "%s (%" PRId64 " bytes)", "size", human_bytes(size, f->d->size), f->d->size);
    if (f->s->resident >= 0)
        printf(", %s resident", human_bytes(resident, f->s->resident));
    putchar('\n');
}

static void print_access(const struct shmview_description *d)
{
    printf(LABEL "%s", "owner", user_name(d->owner));
    printf(":%s, mode %04" PRIo64 "\n", group_name(d->group), (uint64_t)d->mode);
    for (size_t i = 0; i < d->n_entries; i++) {
        const struct shmview_entry_description *e = d->entries[i];
        bool user = e->kind == SHMVIEW_USER;
        printf(LABEL "%s:%s:%s\n", i ? "" : "access", user ? "user" : "group",
               user ? user_name(e->id) : group_name(e->id), right_name(e->right));
    }
}

static void print_life(const struct facts *f, int64_t now)
{
    char when[HUMAN_BYTES], age[HUMAN_BYTES], placement[PLACEMENT_TEXT];
    printf(LABEL "%s\n", "lifetime", lifetime_name(f->d->lifetime));
    if (f->d->backing == SHMVIEW_BACKING_SEALED)
        printf(LABEL "sealed, and so nobody can change its size\n", "backing");
    if (f->d->frozen)
        printf(LABEL "%s\n", "frozen",
               f->d->frozen == SHMVIEW_FROZEN_ALL
                   ? "nobody can change its bytes"
                   : "only those that have mapped it for writing can change its bytes");
    if (f->d->paid_by >= 0)
        printf(LABEL "%s, whose program made the memory\n", "paid by", user_name(f->d->paid_by));
    if (placement_of(f->d, placement)[0])
        printf(LABEL "%s\n", "placement", placement);
    if (f->s->created_us >= 0)
        printf(LABEL "%s, %s ago\n", "created", iso_time(when, f->s->created_us),
               human_duration(age, now - f->s->created_us));
}

/* Prints phase, changes and deaths. The last two are left out while they are 0 or unknown. */
static void print_lock(const struct facts *f)
{
    const struct shmview_segment_stats *s = f->s;
    if (!f->d->has_lock) {
        printf(LABEL "none, and so no phases\n", "lock");
        return;
    }
    if (s->layout[0])
        printf(LABEL "%s, generation %" PRId64 "\n", "phase", s->layout, s->generation);
    else
        printf(LABEL "none yet\n", "phase");
    if (s->changes > 0)
        printf(LABEL "%" PRId64 "\n", "changes", s->changes);
    if (s->owner_deaths > 0)
        printf(LABEL "%" PRId64 " died while they held the lock\n", "deaths", s->owner_deaths);
}

/* Prints an attachment on a line. Its command is escaped, because the client chose it. */
static void print_party(const struct shmview_party_stats *p, int64_t now)
{
    char since[HUMAN_BYTES];
    const char *command = p->command[0] ? p->command : "-";
    printf("    pid %" PRId64 " ", p->pid);
    print_safely(command);
    printf(", %s, access %s", user_name(p->uid), access_name(p->access));
    if (p->slot >= 0)
        printf(", slot %" PRId64, p->slot);
    if (p->holds)
        printf(", holds the lock (%s)", hold_name(p->holds));
    else if (p->waits)
        printf(", waits for the lock (%s)", hold_name(p->waits));
    if ((p->holds || p->waits) && p->since_us >= 0)
        printf(" for %s", human_duration(since, now - p->since_us));
    putchar('\n');
}

/* Prints the attachments, those that hold the lock first. The daemon reports at most 64; the others
 * are counted. */
static void print_attached(const struct facts *f, int64_t now)
{
    const struct shmview_segment_stats *s = f->s;
    printf(LABEL "%" PRId64 "\n", "attached", s->attachments);
    for (size_t i = 0; i < s->n_parties; i++)
        if (s->parties[i]->holds)
            print_party(s->parties[i], now);
    for (size_t i = 0; i < s->n_parties; i++)
        if (!s->parties[i]->holds)
            print_party(s->parties[i], now);
    if (s->n_parties && (int64_t)s->n_parties < s->attachments)
        printf("    and %" PRId64 " more\n", s->attachments - (int64_t)s->n_parties);
}

static void print_facts(const struct facts *f)
{
    int64_t now = realtime_us();
    puts(f->d->name);
    if (f->d->label[0]) {
        printf(LABEL, "label");
        print_safely(f->d->label);
        putchar('\n');
    }
    print_sizes(f);
    print_access(f->d);
    print_life(f, now);
    print_lock(f);
    print_attached(f, now);
    if (f->stream)
        stream_print(f->stream);
    if (f->d->n_layouts) {
        putchar('\n');
        picture_print(f->d, f->s->layout, terminal_width());
    }
}

/* --- The verb ------------------------------------------------------------ */

/* Prints the table of --views. The table comes first, because it may only list its columns and
 * needs no daemon for that. Returns the exit status. */
static int print_views(struct context *c, const char *name, const struct table_options *how)
{
    CLEANUP_TABLE struct table *table = NULL;
    CLEANUP_FACTS struct facts f = {.d = NULL};
    int status;
    if (views_table(c, how, &table, &status))
        return status;
    status = connect_daemon(c);
    status = status ? status : ask(c, name, &f);
    return status ? status : views_print(table, f.d, f.s->layout);
}

/* Prints everything, as text or as JSON. Returns the exit status. */
static int print_all(struct context *c, const char *name, bool json)
{
    CLEANUP_FACTS struct facts f = {.d = NULL};
    int status = connect_daemon(c);
    status = status ? status : ask(c, name, &f);
    if (status)
        return status;
    if (json)
        return print_facts_json(c, &f);
    print_facts(&f);
    return EXIT_OK;
}

static int run_show(struct context *c, int argc, char **argv)
{
    struct table_options how = {0};
    bool views = false;
    const struct verb_option options[] = {
        OPT_FLAG("views", '\0', &views),
        TABLE_OPTIONS(&how),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 0, 1))
        return c->status;
    /* the list of columns needs no segment */
    bool lists = views && how.columns && strcmp(how.columns, "help") == 0;
    if (!lists && optind == argc)
        return fail_missing(c);
    if (!views && (how.raw || how.bytes || how.no_headings || how.columns))
        return fail_usage(c, "options of tables need --views");
    return views ? print_views(c, argv[optind], &how) : print_all(c, argv[optind], how.json);
}

const struct verb verb_show = {
    .name = "show",
    .arguments = "NAME",
    .summary = "Show everything about a segment, with a picture of its memory",
    .help =
        "The picture has a bar for each view, at the place of its bytes; '*' marks the\n"
        "current layout. A view whose strides leave gaps is shaded.\n"
        "\n"
        "      --views               print only a table of the views; its options:\n" TABLE_HELP,
    .run = run_show,
};
