/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the lines of streams. A figure that is not known is "-". */
#include <inttypes.h>
#include <string.h>

#include "cli/top/top_streams.h"

#define NUMBER 24 /* bytes of a number as text */

/* Writes how many frames of a stage were published in a second, and their bytes. A counter that has
 * gone back was damaged. */
static void put_rates(const struct top *t, const struct top_stream *w, uint32_t stage,
                      char frames[NUMBER], char bytes[HUMAN_BYTES])
{
    const struct stream_facts *f = w->now;
    double seconds = (double)(f->now_ns - w->before_ns) / 1e9;
    uint64_t before = w->published[stage], now = f->status.published[stage];
    strcpy(frames, "-");
    strcpy(bytes, "-");
    if (!w->before_ns || seconds <= 0 || now < before)
        return;
    double rate = (double)(now - before) / seconds, of_bytes = rate * (double)f->info.frame_bytes;
    snprintf(frames, NUMBER, "%.1f", rate);
    top_bytes(t, bytes, of_bytes < 9e18 ? (int64_t)of_bytes : -1);
}

void top_stream_heading(const struct top *t, struct top_line *line)
{
    top_put(line, TOP_HEADING, "%-*s %-8s %3s %9s %*s %4s %6s %7s %s", t->name_width, "STREAM",
            "MODE", "STG", "FRAMES/S", t->wants_bytes ? 14 : 7, "BYTES/S", "RDRS", "LAG", "MISSED",
            "FREE/LOANED/HELD");
}

static void put_number(char buffer[NUMBER], bool is_known, uint64_t n)
{
    if (is_known)
        snprintf(buffer, NUMBER, "%" PRIu64, n);
    else
        strcpy(buffer, "-");
}

/* Writes the number of readers, the longest lag and all that they missed, if they are seen. Returns
 * whether they missed more than before. */
static bool put_readers(const struct top_stream *w, const struct stream_figures *figures,
                        char readers[NUMBER], char lag[NUMBER], char missed[NUMBER])
{
    uint64_t n = 0, longest = 0, all = 0;
    for (uint32_t k = 0; k < figures->n_stages; k++) {
        n += figures->stages[k].readers;
        all += figures->stages[k].missed;
        if (figures->stages[k].lag > longest)
            longest = figures->stages[k].lag;
    }
    put_number(readers, figures->sees_readers, n);
    put_number(lag, n > 0, longest);
    put_number(missed, n > 0, all);
    return w->before_ns && all > w->missed;
}

void top_stream_row(const struct top *t, const struct top_stream *w, struct top_line *line)
{
    const struct stream_facts *f = w->now;
    struct stream_figures figures;
    char frames[NUMBER], bytes[HUMAN_BYTES], readers[NUMBER], lag[NUMBER], missed[NUMBER];
    if (w->trouble[0] || !f) {
        top_put(line, w->is_unused ? TOP_DIM : TOP_BAD, "%-*.*s %s", t->name_width, t->name_width,
                w->name, w->trouble[0] ? w->trouble : "it is no stream any more");
        return;
    }
    stream_figures_of(f, w->name, &figures);
    put_rates(t, w, 0, frames, bytes);
    bool misses = put_readers(w, &figures, readers, lag, missed);
    top_put(line, misses ? TOP_WARN : TOP_PLAIN,
            "%-*.*s %-8s %3" PRIu32 " %9s %*s %4s %6s %7s %" PRIu32 "/%" PRIu32 "/%" PRIu32
            " of %" PRIu32,
            t->name_width, t->name_width, w->name,
            stream_mode_names[f->info.mode == SHMVIEW_LOSSLESS], f->info.n_stages, frames,
            t->wants_bytes ? 14 : 7, bytes, readers, lag, missed, figures.slots[SHMVIEW_SLOT_FREE],
            figures.slots[SHMVIEW_SLOT_LOANED], figures.slots[SHMVIEW_SLOT_HELD], f->info.n_slots);
}

static void put_reader(const struct shmview_stream_reader_status *r, struct top_line *line)
{
    char command[17] = "";
    memcpy(command, r->command, 16);
    for (char *p = command; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?'; /* the client chose it */
    bool has_left = stream_reader_has_left(r);
    char lag[NUMBER];
    put_number(lag, !has_left, r->lag);
    top_put(line, has_left ? TOP_DIM : TOP_PLAIN,
            "    %8" PRIu32 " %-16s lag %s, missed %" PRIu64 ", holds %" PRIu32 "%s", r->pid,
            command[0] ? command : "-", lag, r->missed, r->n_held, has_left ? ", has left" : "");
}

size_t top_stream_details(const struct top *t, const struct top_stream *w, struct top_line *lines,
                          size_t room)
{
    const struct stream_facts *f = w->now;
    size_t n = 0;
    for (uint32_t k = 0; f && !w->trouble[0] && k < f->info.n_stages && n < room; k++) {
        char frames[NUMBER], bytes[HUMAN_BYTES];
        put_rates(t, w, k, frames, bytes);
        top_put(&lines[n++], TOP_PLAIN,
                "  stage %" PRIu32 ": %s frames/s, %s/s, %" PRIu64 " published%s", k, frames, bytes,
                f->status.published[k], f->status.has_ended[k] ? ", ended" : "");
        for (size_t i = 0; i < f->n_readers && n < room; i++)
            if (f->readers[i].stage == k)
                put_reader(&f->readers[i], &lines[n++]);
    }
    return n;
}

/* Returns how many lines a stream may need. */
static size_t lines_of(const struct top_stream *w)
{
    return 1 + (w->now ? w->now->info.n_stages + w->now->n_readers : 0);
}

struct top_line *top_stream_lines(const struct top *t, bool with_details, size_t *ret_n)
{
    const struct top_streams *s = t->streams;
    size_t n = 0, room = 2;
    for (size_t i = 0; i < s->n; i++)
        room += with_details ? lines_of(&s->list[i]) : 1;
    struct top_line *lines = malloc(room * sizeof *lines);
    for (size_t i = 0; lines && i < t->n_rows; i++) {
        const struct top_stream *w = top_streams_find(s, t->rows[i].segment->id);
        if (!w)
            continue;
        if (n == 0)
            top_stream_heading(t, &lines[n++]);
        top_stream_row(t, w, &lines[n++]);
        if (with_details)
            n += top_stream_details(t, w, lines + n, room - n);
    }
    if (n && s->n_left)
        top_put(&lines[n++], TOP_DIM,
                s->n == STREAMS_MOST
                    ? "%zu more segments may be streams; top looks into %d: a filter chooses them"
                    : "%zu more segments may be streams; the next updates look at them",
                s->n_left, STREAMS_MOST);
    *ret_n = n;
    return lines;
}
