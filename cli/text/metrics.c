/* SPDX-License-Identifier: Apache-2.0 */
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

/* One number of a struct, of which -1 is unknown. */
struct family {
    const char *name;
    enum type type;
    const char *help;
    size_t offset;
    enum unit unit;
};

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
    INSTANCE("shmview_starts_total", COUNTER,
             "How often a daemon has begun to serve these segments.", starts),
    INSTANCE("shmview_connections", GAUGE, "Clients that are connected.", connections),
    INSTANCE("shmview_max_connections", GAUGE, "Clients that there are descriptors for.",
             max_connections),
    INSTANCE("shmview_segments", GAUGE, "Segments that there are.", n_all_segments),
    INSTANCE("shmview_attachments", GAUGE, "Attachments of all segments.", attachments),
    INSTANCE("shmview_allocated_bytes", GAUGE, "Bytes of all segments.", allocated_bytes),
    INSTANCE("shmview_removed_bytes", GAUGE,
             "Bytes of segments without a name, that attachments keep.", removed_bytes),
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
    INSTANCE("shmview_requests_total", COUNTER, "Requests that were answered.", total_requests),
    INSTANCE("shmview_events_lost_total", COUNTER,
             "Events that subscribers were too slow to be told.", total_lost),
    INSTANCE("shmview_objects_repaired_total", COUNTER,
             "Objects that clients had truncated, enlarged or overwritten.", total_repaired),
};

static const struct family of_segment[] = {
    SEGMENT("shmview_segment_size_bytes", GAUGE, "Size of the segment.", size),
    SEGMENT("shmview_segment_resident_bytes", GAUGE, "Memory or swap behind the segment.",
            resident),
    SEGMENT("shmview_segment_attachments", GAUGE, "Attachments of the segment.", attachments),
    {"shmview_segment_created_time_seconds", GAUGE, "When it was created, since the epoch.",
     offsetof(struct shmview_segment_stats, created_us), MICROSECONDS},
    SEGMENT("shmview_segment_changes_total", COUNTER, "Changes that its users told of.", changes),
    SEGMENT("shmview_segment_phase_switches_total", COUNTER, "Switches of its layout.", generation),
    SEGMENT("shmview_segment_owner_deaths_total", COUNTER,
            "Clients that died while they held its lock exclusively.", owner_deaths),
};

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

/* Help texts are our own: nothing in them is to be escaped. */
static void print_head(FILE *file, const char *name, enum type type, const char *help)
{
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
            type == COUNTER ? "counter" : "gauge");
}

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

static int64_t member(const void *of, const struct family *f)
{
    return *(const int64_t *)(const void *)((const char *)of + f->offset);
}

/* --- The daemon ---------------------------------------------------------- */

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

/* Of the caller, and of all users together. */
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
                           is_limit ? "What the caller, or all users together, may have."
                                    : "What the caller, or all users together, have.");
            has_head = true;
            begin_line(file, name, "what", q->what);
            add_label(file, "of", all ? "all" : "caller");
            fprintf(file, "} %" PRId64 "\n", numbers[all]);
        }
    }
}

/* --- Segments ------------------------------------------------------------ */

static void print_of_segments(const struct out *out, const struct family *f)
{
    bool has_head = false;
    for (size_t i = 0; i < out->n_segments; i++) {
        const struct shmview_segment_stats *s = out->segments[i];
        if (!s->is_named || member(s, f) < 0)
            continue; /* a removed one may have the name of another */
        if (!has_head)
            print_head(out->file, f->name, f->type, f->help);
        has_head = true;
        begin_line(out->file, f->name, "segment", s->name);
        fputc('}', out->file);
        print_number(out->file, member(s, f), f->unit);
    }
}

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
            print_head(out->file, name, GAUGE, "Facts of the segment that are no numbers.");
        has_head = true;
        begin_line(out->file, name, "segment", s->name);
        add_label(out->file, "layout", s->layout);
        add_label(out->file, "lifetime", lifetime ? lifetime : "");
        add_label(out->file, "owner", user_name(s->owner));
        fputs("} 1\n", out->file);
    }
}

/* How many hold or wait in that mode; with *ret_us, for how long the first of them does, -1. */
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
                       waits ? "Attachments that wait for the lock (of 64 that are told)."
                             : "Attachments that hold the lock (of 64 that are told).");
        has_head = true;
        for (uint32_t mode = SHMVIEW_EXCLUSIVE; mode <= SHMVIEW_SHARED; mode++) {
            begin_line(out->file, name, "segment", s->name);
            add_label(out->file, "mode", hold_name(mode));
            fprintf(out->file, "} %" PRId64 "\n", count_parties(out, s, waits, mode, NULL));
        }
    }
}

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
                       waits ? "How long the one who waits longest has waited."
                             : "How long the lock has been held, at least.");
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
