/* SPDX-License-Identifier: Apache-2.0 */
/* list: prints a table with one row for each segment that the user may see.
 *
 * One call of shmview_stats_get() returns all facts, so that the table needs no request for each
 * segment. The column STREAM is an exception: it takes one for each segment with layouts, and an
 * attachment of each stream. The daemon reads lock and phase without taking the lock; a row may
 * therefore be slightly out of date, but printing it delays no program. */
#include <fnmatch.h>
#include <inttypes.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "cli/shell/table.h"
#include "cli/text/placement_text.h"
#include "cli/text/streams.h"

/* Columns, in the order of the table. The default ones come first. */
enum {
    NAME,
    SIZE,
    RESIDENT,
    PHASE,
    ATTACHED,
    LOCK_OWNER,
    SINCE,
    OWNER,
    MODE,
    LIFETIME,
    AGE,
    OWNER_UID,
    GROUP,
    GROUP_GID,
    GENERATION,
    LAYOUTS,
    LOCK,
    LOCK_PID,
    HELD,
    WAITING,
    CHANGES,
    OWNER_DEATHS,
    CREATED,
    REMOVED,
    ID,
    LABEL,
    STREAM,
    BACKING,
    FROZEN,
    PAID_BY,
    PLACEMENT,
    N_COLUMNS,
};

static const struct column columns[N_COLUMNS] = {
    [NAME] = {"NAME", CELL_TEXT, true, "name"},
    [SIZE] = {"SIZE", CELL_BYTES, true, "size"},
    [RESIDENT] = {"RESIDENT", CELL_BYTES, true, "memory or swap that it takes"},
    [PHASE] = {"PHASE", CELL_TEXT, true, "current layout"},
    [ATTACHED] = {"ATTACHED", CELL_NUMBER, true, "number of attachments"},
    [LOCK_OWNER] = {"LOCK-OWNER", CELL_TEXT, true, "holder of the lock: pid, command; or readers"},
    [SINCE] = {"SINCE", CELL_DURATION, true, "time for which it has been held, at least"},
    [OWNER] = {"OWNER", CELL_TEXT, true, "user to whom it belongs"},
    [MODE] = {"MODE", CELL_MODE, true, "mode, like that of a file"},
    [LIFETIME] = {"LIFETIME", CELL_TEXT, true, "when it ends: attached, manual, creator"},
    [AGE] = {"AGE", CELL_DURATION, true, "time since it was created"},
    [OWNER_UID] = {"UID", CELL_NUMBER, false, "number of the owner"},
    [GROUP] = {"GROUP", CELL_TEXT, false, "group to which the mode applies"},
    [GROUP_GID] = {"GID", CELL_NUMBER, false, "number of the group"},
    [GENERATION] = {"GENERATION", CELL_NUMBER, false, "number of switches of the phase"},
    [LAYOUTS] = {"LAYOUTS", CELL_NUMBER, false, "number of layouts"},
    [LOCK] = {"LOCK", CELL_FLAG, false, "whether it has a lock"},
    [LOCK_PID] = {"LOCK-PID", CELL_NUMBER, false, "process that holds the lock"},
    [HELD] = {"HELD", CELL_TEXT, false, "how the lock is held: exclusive, shared"},
    [WAITING] = {"WAITING", CELL_NUMBER, false, "number of clients that wait for the lock"},
    [CHANGES] = {"CHANGES", CELL_NUMBER, false, "counter of changes"},
    [OWNER_DEATHS] = {"DEATHS", CELL_NUMBER, false, "number of clients that died with the lock"},
    [CREATED] = {"CREATED", CELL_TIME, false, "when it was created"},
    [REMOVED] = {"REMOVED", CELL_FLAG, false, "whether the name is gone"},
    [ID] = {"ID", CELL_NUMBER, false, "number that no other segment gets"},
    [LABEL] = {"LABEL", CELL_TEXT, false, "what its creator wrote for people"},
    [STREAM] = {"STREAM", CELL_TEXT, COLUMN_IF_ANY, "mode of a stream: latest, lossless"},
    [BACKING] = {"BACKING", CELL_TEXT, false, "what its memory is: file, sealed"},
    [FROZEN] = {"FROZEN", CELL_TEXT, false, "who cannot write any longer: all, future"},
    [PAID_BY] = {"PAID-BY", CELL_TEXT, false, "user who made its memory, if the daemon did not"},
    [PLACEMENT] = {"PLACEMENT", CELL_TEXT, false, "huge pages and nodes that it got"},
};

/* Describes the holder of the lock in buffer: the owner, the only reader, or the number of readers.
 * Returns the party whose pid and time the row shows: the owner, or the first reader; NULL if the
 * lock is free. */
static const struct shmview_party_stats *lock_owner(const struct shmview_segment_stats *s,
                                                    char *buffer, size_t bytes)
{
    const struct shmview_party_stats *first = NULL;
    size_t readers = 0;
    for (size_t i = 0; i < s->n_parties; i++) {
        const struct shmview_party_stats *p = s->parties[i];
        if (p->holds == SHMVIEW_EXCLUSIVE) {
            snprintf(buffer, bytes, "%" PRId64 " %s", p->pid, p->command);
            return p;
        }
        if (p->holds == SHMVIEW_SHARED && readers++ == 0)
            first = p;
    }
    if (readers == 1)
        snprintf(buffer, bytes, "%" PRId64 " %s (shared)", first->pid, first->command);
    else if (readers)
        snprintf(buffer, bytes, "%zu readers", readers);
    return first;
}

/* Counts the parties that wait. The daemon reports at most 64 parties of a segment, waiting ones
 * among the first. */
static int64_t count_waiting(const struct shmview_segment_stats *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n_parties; i++)
        n += s->parties[i]->waits != 0;
    return n;
}

/* Adds a row. mode is that of a stream, or NULL. now is in microseconds of CLOCK_REALTIME. Returns
 * 0 or the exit status. */
static int add_segment(struct table *table, const struct shmview_segment_stats *s, const char *mode,
                       int64_t now)
{
    char owner[HUMAN_BYTES + 64] = "", payer[64] = "", placement[PLACEMENT_TEXT];
    const struct shmview_placed placed = {
        .huge = s->huge,
        .huge_by = s->huge_by,
        .huge_missing = s->huge_missing,
        .numa = s->numa,
        .huge_bytes = s->huge_bytes > 0 ? (uint64_t)s->huge_bytes : 0,
        .nodes = s->nodes > 0 ? (uint64_t)s->nodes : 0,
    };
    const struct shmview_party_stats *holder = lock_owner(s, owner, sizeof owner);
    int64_t since = holder && holder->since_us >= 0 ? now - holder->since_us : -1;
    int64_t waiting = count_waiting(s);
    if (s->paid_by >= 0) /* a copy, because user_name() has room for one name */
        snprintf(payer, sizeof payer, "%s", user_name(s->paid_by));
    const struct cell cells[N_COLUMNS] = {
        [NAME] = cell_text(s->name),
        [SIZE] = cell_number(s->size),
        [RESIDENT] = cell_number(s->resident),
        [PHASE] = cell_text(s->layout),
        [ATTACHED] = cell_number(s->attachments),
        [LOCK_OWNER] = {.text = owner, .color = waiting ? "yellow" : NULL},
        [SINCE] = cell_number(since),
        [OWNER] = cell_text(user_name(s->owner)),
        [MODE] = cell_number(s->mode),
        [LIFETIME] = cell_text(lifetime_name(s->lifetime)),
        [BACKING] = cell_text(backing_name(s->backing)),
        [FROZEN] = cell_text(frozen_name(s->frozen)),
        [PAID_BY] = cell_text(payer),
        [PLACEMENT] = cell_text(placement_text(placement, &placed)),
        [AGE] = cell_number(s->created_us >= 0 ? now - s->created_us : -1),
        [OWNER_UID] = cell_number(s->owner),
        [GROUP] = cell_text(group_name(s->group)),
        [GROUP_GID] = cell_number(s->group),
        [GENERATION] = cell_number(s->generation),
        [LAYOUTS] = cell_number(s->layouts),
        [LOCK] = cell_number(s->has_lock),
        [LOCK_PID] = cell_number(holder ? holder->pid : -1),
        [HELD] = cell_text(holder ? hold_name(holder->holds) : NULL),
        [WAITING] = cell_number(waiting),
        [CHANGES] = cell_number(s->changes),
        [OWNER_DEATHS] = cell_number(s->owner_deaths),
        [CREATED] = cell_number(s->created_us),
        [REMOVED] = cell_number(!s->is_named),
        [ID] = cell_number(s->id),
        [LABEL] = cell_text(s->label),
        [STREAM] = cell_text(mode),
    };
    return table_add(table, cells);
}

/* --- Choosing segments ---------------------------------------------------- */

/* Returns whether a pattern matches the name, and sets ret_seen of each pattern that does. Without
 * patterns, every segment that still has its name is wanted. */
static bool is_wanted(const struct shmview_segment_stats *s, char **patterns, bool *ret_seen)
{
    bool wanted = !patterns[0] && s->is_named;
    for (size_t i = 0; patterns[i]; i++)
        if (fnmatch(patterns[i], s->name, 0) == 0)
            ret_seen[i] = wanted = true;
    return wanted;
}

/* Prints an error for each pattern that matched no segment. Returns the exit status. */
static int complain_of_unseen(struct context *c, char **patterns, const bool *seen)
{
    int status = EXIT_OK;
    for (size_t i = 0; patterns[i]; i++)
        if (!seen[i])
            status = fail_not_found(c, patterns[i]);
    return status;
}

/* Finds the modes of those segments that are streams, if the table shows them. *ret is new; NULL:
 * it does not. Returns 0 or the exit status. */
static int find_modes(struct context *c, const struct table *table,
                      const struct shmview_segment_stats *const *segments, size_t n, uint32_t **ret)
{
    *ret = NULL;
    if (!table_shows(table, STREAM))
        return 0;
    *ret = calloc(n + 1, sizeof **ret);
    if (!*ret)
        return fail_memory(c);
    int r = streams_find(c, segments, n, *ret);
    return r ? fail_call(c, r) : 0;
}

static const char *mode_name(uint32_t mode)
{
    return mode == SHMVIEW_LATEST     ? stream_mode_names[STREAM_MODE_LATEST]
           : mode == SHMVIEW_LOSSLESS ? stream_mode_names[STREAM_MODE_LOSSLESS]
                                      : NULL;
}

/* Requests, filters and prints the table. Also prints it if a pattern matched nothing. Returns the
 * exit status. */
static int list(struct context *c, struct table *table, char **patterns, bool *seen)
{
    const struct shmview_stats_options all = {.struct_bytes = sizeof all,
                                              .limit = SHMVIEW_STATS_ALL};
    const struct shmview_stats *stats;
    int r = shmview_stats_get(c->connection, &all, &stats);
    if (r)
        return fail_call(c, r);
    CLEANUP_FREE uint32_t *modes = NULL;
    CLEANUP_FREE const struct shmview_segment_stats **wanted =
        calloc(stats->n_segments + 1, sizeof *wanted);
    int64_t now = realtime_us();
    size_t n = 0;
    for (size_t i = 0; wanted && i < stats->n_segments; i++)
        if (is_wanted(stats->segments[i], patterns, seen))
            wanted[n++] = stats->segments[i];
    int status = wanted ? find_modes(c, table, wanted, n, &modes) : fail_memory(c);
    for (size_t i = 0; status == EXIT_OK && i < n; i++)
        status = add_segment(table, wanted[i], modes ? mode_name(modes[i]) : NULL, now);
    /* on a terminal only: a script must not find a sentence on standard error */
    if (stats->n_segments == 0 && isatty(STDOUT_FILENO))
        fputs("There are no segments: 'shmviewctl create' makes one.\n", stderr);
    shmview_stats_free(stats);
    if (status == EXIT_OK)
        status = table_print(table);
    return status ? status : complain_of_unseen(c, patterns, seen);
}

static int run_list(struct context *c, int argc, char **argv)
{
    struct table_options how = {0};
    const struct verb_option options[] = {TABLE_OPTIONS(&how), OPT_END};
    CLEANUP_TABLE struct table *table = NULL;
    CLEANUP_FREE bool *seen = NULL;
    int status;
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    if (table_new(c, &how, "segments", columns, N_COLUMNS, &table, &status))
        return status;
    seen = calloc((size_t)(argc - optind) + 1, sizeof *seen);
    if (!seen)
        return fail_memory(c);
    status = connect_daemon(c);
    return status ? status : list(c, table, argv + optind, seen);
}

const struct verb verb_list = {
    .name = "list",
    .arguments = "[PATTERN]...",
    .summary = "List the segments that you may see, or those whose names match",
    .help = TABLE_HELP,
    .run = run_list,
};
