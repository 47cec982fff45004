/* SPDX-License-Identifier: Apache-2.0 */
/* Most figures are a number in a struct of shmview/stats.h, and one row of a table describes each
 * of them. The format wants all values of a family in one place, after its head. So each function
 * below goes through all segments for one family, and prints the head before the first value: a
 * family without values has no head either.
 *
 * A removed segment is left out, because a new segment may have its name, and Prometheus refuses
 * two values with the same labels. */
#include "cli/text/metrics.h"

#include <inttypes.h>

enum type {
    GAUGE,
    COUNTER
};
enum unit {
    ONE,
    MICROSECONDS
};

/* A family of one number: an int64_t at `offset` in a struct of figures, -1 if it is not known. */
struct family {
    const char *name;
    enum type type;
    const char *help;
    size_t offset;
    enum unit unit; /* Prometheus wants seconds */
};

/* Rows for a plain number of the daemon, and of a segment. */
#define INSTANCE(name, type, help, member)                                                         \
    {                                                                                              \
        name, type, help, offsetof(struct shmview_stats, member), ONE                              \
    }
#define SEGMENT(name, type, help, member)                                                          \
    {                                                                                              \
        name, type, help, offsetof(struct shmview_segment_stats, member), ONE                      \
    }

static const struct family of_instance[] = {
    {"shmview_start_time_seconds", GAUGE, "When the daemon was started, since the epoch.",
     offsetof(struct shmview_stats, started_us), MICROSECONDS},
    INSTANCE("shmview_starts_total", COUNTER, "Daemons that have served these segments.", starts),
    INSTANCE("shmview_connections", GAUGE, "Connected clients.", connections),
    {"shmview_longest_turn_seconds", GAUGE,
     "The longest processor time from one look of the daemon for new requests to the next.",
     offsetof(struct shmview_stats, longest_turn_us), MICROSECONDS},
    INSTANCE("shmview_max_connections", GAUGE, "Clients for which the daemon has descriptors.",
             max_connections),
    INSTANCE("shmview_segments", GAUGE, "Segments.", n_all_segments),
    INSTANCE("shmview_attachments", GAUGE, "Attachments of all segments.", attachments),
    INSTANCE("shmview_allocated_bytes", GAUGE, "Bytes of all segments.", allocated_bytes),
    INSTANCE("shmview_removed_bytes", GAUGE, "Bytes of removed segments that attachments keep.",
             removed_bytes),
    INSTANCE("shmview_memory_free_bytes", GAUGE, "Bytes that new segments could get.", memory_free),
    INSTANCE("shmview_memory_limit_bytes", GAUGE, "Bytes that segments may take.", memory_limit),
    INSTANCE("shmview_segments_created_total", COUNTER, "Segments that were created.",
             total_created),
    INSTANCE("shmview_attachments_made_total", COUNTER, "Attachments that were made.",
             total_attached),
    INSTANCE("shmview_attachments_died_total", COUNTER,
             "Attachments whose client ended without detaching.", total_died),
    INSTANCE("shmview_lock_owners_died_total", COUNTER,
             "Clients that died while they held a lock exclusively.", total_owner_died),
    INSTANCE("shmview_requests_total", COUNTER, "Requests that were served.", total_requests),
    INSTANCE("shmview_events_lost_total", COUNTER,
             "Events that monitors missed because they read too slowly.", total_lost),
    INSTANCE("shmview_objects_repaired_total", COUNTER,
             "Objects that clients had truncated, enlarged or overwritten.", total_repaired),
};

static const struct family of_segment[] = {
    SEGMENT("shmview_segment_size_bytes", GAUGE, "Size of the segment.", size),
    SEGMENT("shmview_segment_resident_bytes", GAUGE, "Memory or swap that the segment takes.",
            resident),
    SEGMENT("shmview_segment_attachments", GAUGE, "Attachments of the segment.", attachments),
    {"shmview_segment_created_time_seconds", GAUGE, "When it was created, since the epoch.",
     offsetof(struct shmview_segment_stats, created_us), MICROSECONDS},
    SEGMENT("shmview_segment_changes_total", COUNTER, "Changes that its users have notified.",
            changes),
    SEGMENT("shmview_segment_phase_switches_total", COUNTER, "Switches of its phase.", generation),
    SEGMENT("shmview_segment_owner_deaths_total", COUNTER,
            "Clients that died while they held its lock exclusively.", owner_deaths),
};

/* Where to print the figures of segments, and which. */
struct out {
    FILE *file;
    const struct shmview_segment_stats *const *segments;
    size_t n_segments;
    int64_t now_us;
};

/* --- Lines --------------------------------------------------------------- */

void metrics_print_value(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', file);
        if (*text == '\n')
            fputs("\\n", file);
        else
            fputc(*text, file);
    }
}

/* Prints the head of a family. Help texts are constants above, so nothing in them needs an escape.
 */
static void print_head(FILE *file, const char *name, enum type type, const char *help)
{
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
            type == COUNTER ? "counter" : "gauge");
}

/* Prints the value and ends the line. */
static void print_number(FILE *file, int64_t number, enum unit unit)
{
    if (unit == MICROSECONDS)
        fprintf(file, " %" PRId64 ".%06" PRId64 "\n", number / 1000000, number % 1000000);
    else
        fprintf(file, " %" PRId64 "\n", number);
}

/* Begins a line with one label; the brace stays open. */
static void begin_line(FILE *file, const char *name, const char *label, const char *value)
{
    fprintf(file, "%s{%s=\"", name, label);
    metrics_print_value(file, value);
    fputc('"', file);
}

static void add_label(FILE *file, const char *label, const char *value)
{
    fprintf(file, ",%s=\"", label);
    metrics_print_value(file, value);
    fputc('"', file);
}

/* Returns the number of a family from the struct that has it. */
static int64_t member(const void *of, const struct family *f)
{
    return *(const int64_t *)(const void *)((const char *)of + f->offset);
}

/* --- The daemon ---------------------------------------------------------- */

/* Prints the figures of the daemon. */
static void print_instance(FILE *file, const struct shmview_stats *s)
{
    print_head(file, "shmview_build_info", GAUGE, "Version of the daemon.");
    begin_line(file, "shmview_build_info", "version", s->version);
    fputs("} 1\n", file);
    for (size_t i = 0; i < ARRAY_LEN(of_instance); i++) {
        const struct family *f = &of_instance[i];
        if (member(s, f) < 0)
            continue;
        print_head(file, f->name, f->type, f->help);
        fputs(f->name, file);
        print_number(file, member(s, f), f->unit);
    }
    if (s->n_refusals)
        print_head(file, "shmview_refusals_total", COUNTER, "Requests that were refused.");
    for (size_t i = 0; i < s->n_refusals; i++) {
        begin_line(file, "shmview_refusals_total", "error", s->refusals[i]->error);
        fprintf(file, "} %" PRId64 "\n", s->refusals[i]->count);
    }
}

/* Prints the quotas, or what is used of them: of the caller and, for administrators, of all users.
 */
static void print_quotas(FILE *file, const struct shmview_stats *s, bool is_limit)
{
    const char *name = is_limit ? "shmview_quota_limit" : "shmview_quota_used";
    bool has_head = false;
    for (size_t i = 0; i < s->n_quotas; i++) {
        const struct shmview_quota_stats *q = s->quotas[i];
        const int64_t numbers[] = {is_limit ? q->limit : q->used,
                                   is_limit ? q->total_limit : q->total_used};
        for (size_t all = 0; all < 2; all++) {
            if (numbers[all] < 0)
                continue;
            if (!has_head)
                print_head(file, name, GAUGE,
                           is_limit ? "Limit of the caller, or of all users together."
                                    : "Usage of the caller, or of all users together.");
            has_head = true;
            begin_line(file, name, "what", q->what);
            add_label(file, "of", all ? "all" : "caller");
            fprintf(file, "} %" PRId64 "\n", numbers[all]);
        }
    }
}

/* --- Segments ------------------------------------------------------------ */

/* Prints one family for all segments. */
static void print_of_segments(const struct out *out, const struct family *f)
{
    bool has_head = false;
    for (size_t i = 0; i < out->n_segments; i++) {
        const struct shmview_segment_stats *s = out->segments[i];
        if (!s->is_named || member(s, f) < 0)
            continue;
        if (!has_head)
            print_head(out->file, f->name, f->type, f->help);
        has_head = true;
        begin_line(out->file, f->name, "segment", s->name);
        fputc('}', out->file);
        print_number(out->file, member(s, f), f->unit);
    }
}

/* Prints the texts of segments as labels of a family whose value is always 1, which is the
 * convention of Prometheus for texts. */
static void print_infos(const struct out *out)
{
    static const char name[] = "shmview_segment_info";
    bool has_head = false;
    for (size_t i = 0; i < out->n_segments; i++) {
        const struct shmview_segment_stats *s = out->segments[i];
        const char *lifetime = lifetime_name(s->lifetime);
        if (!s->is_named)
            continue;
        if (!has_head)
            print_head(out->file, name, GAUGE, "Facts of the segment that are not numbers.");
        has_head = true;
        begin_line(out->file, name, "segment", s->name);
        add_label(out->file, "layout", s->layout);
        add_label(out->file, "lifetime", lifetime ? lifetime : "");
        add_label(out->file, "owner", user_name(s->owner));
        fputs("} 1\n", out->file);
    }
}

/* Counts the parties that hold the lock, or wait for it, in a mode (0: either). Sets *ret_us,
 * unless it is NULL, to the time since the first of them began, or -1. A party that waits does not
 * count as a holder: its time is that of the wait. */
static int64_t count_parties(const struct out *out, const struct shmview_segment_stats *s,
                             bool waits, uint32_t mode, int64_t *ret_us)
{
    int64_t n = 0, since = INT64_MAX;
    for (size_t i = 0; i < s->n_parties; i++) {
        const struct shmview_party_stats *p = s->parties[i];
        uint32_t does = waits ? p->waits : p->holds;
        if (!does || (mode && does != mode) || (!waits && p->waits))
            continue;
        n++;
        if (p->since_us > 0 && p->since_us < since)
            since = p->since_us;
    }
    if (ret_us)
        *ret_us = since == INT64_MAX ? -1 : out->now_us > since ? out->now_us - since : 0;
    return n;
}

/* Prints the number of holders or waiters in each mode, also 0, so that a graph has no gaps. */
static void print_lock_counts(const struct out *out, bool waits)
{
    const char *name = waits ? "shmview_segment_lock_waiters" : "shmview_segment_lock_holders";
    bool has_head = false;
    for (size_t i = 0; i < out->n_segments; i++) {
        const struct shmview_segment_stats *s = out->segments[i];
        if (!s->is_named || !s->has_lock)
            continue;
        if (!has_head)
            print_head(out->file, name, GAUGE,
                       waits ? "Attachments that wait for the lock (among 64 reported)."
                             : "Attachments that hold the lock (among 64 reported).");
        has_head = true;
        for (uint32_t mode = SHMVIEW_EXCLUSIVE; mode <= SHMVIEW_SHARED; mode++) {
            begin_line(out->file, name, "segment", s->name);
            add_label(out->file, "mode", hold_name(mode));
            fprintf(out->file, "} %" PRId64 "\n", count_parties(out, s, waits, mode, NULL));
        }
    }
}

/* Prints how long the lock has been held, or the first waiter has waited, where that is known. */
static void print_lock_times(const struct out *out, bool waits)
{
    const char *name =
        waits ? "shmview_segment_lock_waited_seconds" : "shmview_segment_lock_held_seconds";
    bool has_head = false;
    for (size_t i = 0; i < out->n_segments; i++) {
        const struct shmview_segment_stats *s = out->segments[i];
        int64_t us;
        count_parties(out, s, waits, 0, &us);
        if (!s->is_named || us < 0)
            continue;
        if (!has_head)
            print_head(out->file, name, GAUGE,
                       waits ? "Time for which the first waiter has waited."
                             : "Time for which the lock has been held, at least.");
        has_head = true;
        begin_line(out->file, name, "segment", s->name);
        fputc('}', out->file);
        print_number(out->file, us, MICROSECONDS);
    }
}

void metrics_print(FILE *file, const struct shmview_stats *stats,
                   const struct shmview_segment_stats *const *segments, size_t n_segments,
                   int64_t now_us)
{
    const struct out out = {file, segments, n_segments, now_us};
    print_head(file, "shmview_up", GAUGE, "Whether the daemon answers.");
    fprintf(file, "shmview_up %d\n", stats != NULL);
    if (!stats)
        return;
    print_instance(file, stats);
    print_quotas(file, stats, false);
    print_quotas(file, stats, true);
    for (size_t i = 0; i < ARRAY_LEN(of_segment); i++)
        print_of_segments(&out, &of_segment[i]);
    print_infos(&out);
    print_lock_counts(&out, false);
    print_lock_counts(&out, true);
    print_lock_times(&out, false);
    print_lock_times(&out, true);
}
