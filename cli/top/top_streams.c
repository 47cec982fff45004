/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top_streams.h"

#include <inttypes.h>
#include <string.h>

#include "cli/text/streams.h"

/* A segment that fits the filter. One that is no stream is kept as well, so that it is not attached
 * again for each page. */
struct watched {
    int64_t id;
    char name[129];
    struct shmview_stream *stream;              /* owned; NULL: it is no stream */
    struct stream_facts *now;                   /* owned; NULL: not known */
    uint64_t before[SHMVIEW_STREAM_STAGES_MAX]; /* published at the page before */
    int64_t before_ns;                          /* when that was; 0: there was none */
    bool is_there;
};

static void watched_deinit(struct watched *w)
{
    free(w->now);
    shmview_stream_close(w->stream);
}

void top_streams_deinit(struct top_streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        watched_deinit(&s->list[i]);
    free(s->list);
    *s = (struct top_streams){.n = 0};
}

/* --- Which streams ------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct watched *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static struct watched *find(const struct top_streams *s, int64_t id)
{
    const struct watched key = {.id = id};
    return s->n ? bsearch(&key, s->list, s->n, sizeof key, by_id) : NULL;
}

/* Forgets the segments that are gone. */
static void forget(struct top_streams *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].is_there)
            s->list[n++] = s->list[i];
        else
            watched_deinit(&s->list[i]);
    s->n = n;
}

/* Adds n segments, and opens those that are streams. Returns 0 or the exit status. */
static int add(struct top_streams *s, struct context *c,
               const struct shmview_segment_stats *const *segments, size_t n)
{
    CLEANUP_FREE uint32_t *modes = calloc(n + 1, sizeof *modes);
    struct watched *list = realloc(s->list, (s->n + n + 1) * sizeof *list);
    if (list)
        s->list = list;
    int r = modes && list ? streams_find(c, segments, n, modes) : 0;
    int status = !modes || !list ? fail_memory(c) : r ? fail_call(c, r) : 0;
    for (size_t i = 0; status == 0 && i < n; i++) {
        struct watched *w = &s->list[s->n++];
        *w = (struct watched){.id = segments[i]->id, .is_there = true};
        snprintf(w->name, sizeof w->name, "%s", segments[i]->name);
        if (modes[i] && stream_open_if(c, w->name, &w->stream))
            w->stream = NULL; /* it has gone just now, or the user may not read it */
    }
    return status;
}

/* Gets the figures of a stream; if that fails, such as while there is no daemon, it has none. */
static void refresh(struct watched *w)
{
    struct stream_facts *old = w->now;
    if (!w->stream)
        return;
    w->now = NULL;
    w->before_ns = old ? old->now_ns : 0;
    for (uint32_t k = 0; old && k < old->info.n_stages; k++)
        w->before[k] = old->status.published[k];
    free(old);
    if (stream_facts_get(w->stream, &w->now))
        w->now = NULL;
}

int top_streams_update(struct top_streams *s, struct context *c, const struct top *t)
{
    CLEANUP_FREE const struct shmview_segment_stats **fresh = calloc(t->n_rows + 1, sizeof *fresh);
    size_t n = 0;
    if (!fresh)
        return fail_memory(c);
    for (size_t i = 0; i < s->n; i++)
        s->list[i].is_there = false;
    for (size_t i = 0; i < t->n_rows; i++) {
        struct watched *w = find(s, t->rows[i].segment->id);
        if (w)
            w->is_there = true;
        else
            fresh[n++] = t->rows[i].segment;
    }
    forget(s);
    int status = n ? add(s, c, fresh, n) : 0;
    if (status)
        return status;
    if (s->n)
        qsort(s->list, s->n, sizeof *s->list, by_id);
    for (size_t i = 0; i < s->n; i++)
        refresh(&s->list[i]);
    return 0;
}

/* --- The page ------------------------------------------------------------ */

/* Prints a line for each reader of a stage. */
static void print_readers(const struct stream_facts *f, uint32_t stage, FILE *out)
{
    for (size_t i = 0; i < f->n_readers; i++) {
        const struct shmview_stream_reader_status *r = &f->readers[i];
        char who[32], command[17] = "";
        if (r->stage != stage)
            continue;
        memcpy(command, r->command, 16);
        for (char *p = command; *p; p++)
            if ((unsigned char)*p < ' ' || *p == 0x7f)
                *p = '?'; /* the client chose it */
        snprintf(who, sizeof who, "%" PRIu32 " %s", r->pid, command[0] ? command : "-");
        fprintf(out, "  %-30s lag %" PRIu64 ", missed %" PRIu64 ", holds %" PRIu32 "%s\n", who,
                r->lag, r->missed, r->n_held, r->next == UINT64_MAX ? ", has left" : "");
    }
}

/* Prints the line of a stage. The rates are unknown at the first page. */
static void print_stage(const struct watched *w, uint32_t stage, FILE *out)
{
    const struct stream_facts *f = w->now;
    char name[160], frames[32] = "-", bytes[HUMAN_BYTES] = "-", slots[64];
    double seconds = (double)(f->now_ns - w->before_ns) / 1e9;
    snprintf(name, sizeof name, f->info.n_stages > 1 ? "%s:%" PRIu32 : "%s", w->name, stage);
    if (w->before_ns && seconds > 0) {
        double rate = (double)(f->status.published[stage] - w->before[stage]) / seconds;
        snprintf(frames, sizeof frames, "%.1f", rate);
        human_bytes(bytes, (int64_t)(rate * (double)f->info.frame_bytes));
    }
    snprintf(slots, sizeof slots, "%" PRIu32 "/%" PRIu32 "/%" PRIu32 " of %" PRIu32,
             stream_count(f, SHMVIEW_SLOT_LOANED), stream_count(f, SHMVIEW_SLOT_PUBLISHED),
             stream_count(f, SHMVIEW_SLOT_HELD), f->info.n_slots);
    fprintf(out, "%-32s %10s %10s %12" PRIu64 "  %s\n", name, frames, bytes,
            f->status.published[stage], slots);
    print_readers(f, stage, out);
}

void top_streams_print(const struct top_streams *s, FILE *out)
{
    fprintf(out, "%-32s %10s %10s %12s  %s\n", "STREAM", "FRAMES/S", "BYTES/S", "PUBLISHED",
            "LOANED/PUBLISHED/HELD");
    for (size_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; s->list[i].now && k < s->list[i].now->info.n_stages; k++)
            print_stage(&s->list[i], k, out);
}
