/* SPDX-License-Identifier: Apache-2.0 */
/* who: prints a table with one row for each attachment: its process, and its state in the lock.
 *
 * The facts come from the daemon, so that the verb needs no right to attach and no slot. The daemon
 * reads the words of the lock without taking it, and reports at most 64 attachments of a segment,
 * holders and waiters first. */
#include <inttypes.h>
#include <string.h>

#include <shmview/stats.h>

#include "cli/shell/table.h"
#include "cli/text/party.h"

#define N_NAMES 64 /* the limit of shmview_stats_get() */

static const struct column columns[] = {
    {"SEGMENT", CELL_TEXT, true, "name of the segment"},
    {"PID", CELL_NUMBER, true, "number of the process"},
    {"USER", CELL_TEXT, true, "user who attached"},
    {"COMMAND", CELL_TEXT, true, "program, as the client calls itself"},
    {"ACCESS", CELL_TEXT, true, "peek, read or write"},
    {"SLOT", CELL_NUMBER, true, "slot in the lock"},
    {"LOCK", CELL_TEXT, true, "mode of the lock that it holds or waits for"},
    {"SINCE", CELL_DURATION, true, "time for which it has held or waited"},
    {"SINCE-TIME", CELL_TIME, false, "when it began to hold or wait"},
    {"ATTACHMENT", CELL_NUMBER, false, "number of the attachment"},
    {"UID", CELL_NUMBER, false, "number of the user"},
    {"ID", CELL_NUMBER, false, "number of the segment"},
};

/* Adds a row. Waiting is red and holding green, because people look for waiting first. A time of 0
 * or less is not known: a holder has one only after a client has waited for it. */
static int add_party(struct table *table, const struct shmview_segment_stats *s,
                     const struct shmview_party_stats *p, int64_t now_us)
{
    bool is_known = p->since_us > 0;
    const struct cell cells[] = {
        cell_text(s->name),
        cell_number(p->pid),
        cell_text(p->uid < 0 ? "" : user_name(p->uid)),
        cell_text(p->command),
        cell_text(access_name(p->access)),
        cell_number(p->slot),
        {.text = party_state(p),
         .color = p->waits   ? "red"
                  : p->holds ? "green"
                             : NULL},
        cell_number(is_known ? now_us - p->since_us : -1),
        cell_number(is_known ? p->since_us : -1),
        cell_number(p->attachment),
        cell_number(p->uid),
        cell_number(s->id),
    };
    return table_add(table, cells);
}

/* Prints an error for each name without a segment. Returns 0 or the exit status. */
static int look_for_missing(struct context *c, const struct shmview_stats *stats, char **names,
                            size_t n)
{
    int status = 0;
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t j = 0; j < stats->n_segments && !found; j++)
            found = strcmp(stats->segments[j]->name, names[i]) == 0;
        if (!found)
            status = fail_not_found(c, names[i]);
    }
    return status;
}

/* Prints the table, and a warning for each segment of which attachments are left out. Returns the
 * exit status. */
static int print_parties(struct context *c, const struct shmview_stats *stats,
                         const struct table_options *options)
{
    CLEANUP_TABLE struct table *table = NULL;
    int64_t now = realtime_us();
    int status;
    if (table_new(c, options, "attachments", columns, ARRAY_LEN(columns), &table, &status))
        return status;
    for (size_t i = 0; i < stats->n_segments; i++) {
        const struct shmview_segment_stats *s = stats->segments[i];
        for (size_t j = 0; j < s->n_parties; j++)
            if ((status = add_party(table, s, s->parties[j], now)))
                return status;
        if ((int64_t)s->n_parties < s->attachments)
            warn_text(c,
                      "'%s' has %" PRId64 " attachments, of which %zu are shown: "
                      "holders and waiters come first",
                      s->name, s->attachments, s->n_parties);
    }
    return table_print(table);
}

static int run_who(struct context *c, int argc, char **argv)
{
    struct table_options shown = {.json = false};
    const struct verb_option options[] = {TABLE_OPTIONS(&shown), OPT_END};
    struct shmview_stats_options want = {.struct_bytes = sizeof want};
    const struct shmview_stats *stats;
    if (!options_read(c, argc, argv, options, 0, N_NAMES))
        return c->status;
    want.names = (const char *const *)(argv + optind);
    want.n_names = (size_t)(argc - optind);
    want.limit = want.n_names ? 0 : SHMVIEW_STATS_ALL;
    int status = connect_daemon(c);
    if (status)
        return status;
    int r = shmview_stats_get(c->connection, &want, &stats);
    if (r)
        return fail_call(c, r);
    int missing = look_for_missing(c, stats, argv + optind, want.n_names);
    status = print_parties(c, stats, &shown);
    shmview_stats_free(stats);
    return status ? status : missing;
}

const struct verb verb_who = {
    .name = "who",
    .arguments = "[NAME]...",
    .summary = "Show which processes are attached, hold the lock, or wait for it",
    .help =
        TABLE_HELP "\nWithout NAME: of all segments. Shows at most 64 of each segment, holders\n"
                   "and waiters first.\n"
                   "Example: shmviewctl who camera\n\n",
    .run = run_who,
};
