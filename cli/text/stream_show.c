/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/stream_show.h"

#include <inttypes.h>
#include <string.h>

#define LABEL "  %-11s"

/* Characters of one line of slots. */
#define ROW 64

static const char *const state_names[] = {"free", "loaned", "published", "held"};
static const char marks[] = ".L#H";

/* --- Facts --------------------------------------------------------------- */

int stream_facts_read(struct shmview_stream *stream, struct stream_facts *f)
{
    shmview_stream_info_get(stream, &f->info);
    f->sees_readers = shmview_access(shmview_stream_segment(stream)) != SHMVIEW_PEEK;
    f->now_ns = shmview_deadline(0);
    int r = shmview_stream_query(stream, &f->status, f->slots, f->info.n_slots, f->readers,
                                 STREAM_READERS_MOST);
    if (r)
        return r;
    f->n_readers = f->status.n_readers < STREAM_READERS_MOST ? (size_t)f->status.n_readers
                                                             : STREAM_READERS_MOST;
    return 0;
}

int stream_facts_of(struct context *c, const char *name, struct stream_facts **ret)
{
    struct shmview_stream *stream;
    *ret = NULL;
    int r = stream_open_if(c, name, &stream);
    if (r || !stream)
        return r;
    struct stream_facts *f = calloc(1, sizeof *f);
    r = f ? stream_facts_read(stream, f) : -SHMVIEW_ERR_NO_MEMORY;
    shmview_stream_close(stream);
    if (r)
        free(f);
    else
        *ret = f;
    return r;
}

uint32_t stream_count(const struct stream_facts *f, uint32_t state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->info.n_slots; i++)
        n += f->slots[i].state == state;
    return n;
}

static uint32_t count_readers(const struct stream_facts *f, uint32_t stage)
{
    uint32_t n = 0;
    for (size_t i = 0; i < f->n_readers; i++)
        n += f->readers[i].stage == stage;
    return n;
}

static bool holds(const struct shmview_stream_reader_status *r, uint32_t slot)
{
    return r->holds[slot / 64] >> slot % 64 & 1;
}

bool stream_reader_has_left(const struct shmview_stream_reader_status *r)
{
    return r->next == UINT64_MAX;
}

/* --- For people ---------------------------------------------------------- */

/* Prints a process. Its command is escaped, because the client chose it. */
static void print_process(uint32_t pid, const char command[16])
{
    char text[17] = "";
    if (!pid) {
        fputs("an unknown process", stdout);
        return;
    }
    memcpy(text, command, 16);
    printf("pid %" PRIu32 " ", pid);
    print_safely(text[0] ? text : "-");
}

static void print_head(const struct stream_facts *f)
{
    char size[HUMAN_BYTES];
    printf(LABEL "%s, %" PRIu32 " slots of %s, history %" PRIu32 "%s\n", "stream",
           f->info.mode == SHMVIEW_LOSSLESS ? "lossless" : "latest", f->info.n_slots,
           human_bytes(size, (int64_t)f->info.frame_bytes), f->info.history,
           f->info.flags & SHMVIEW_MANY_WRITERS ? ", many writers" : "");
    if (f->status.writer_pid) {
        printf(LABEL, "writer");
        print_process(f->status.writer_pid, f->status.writer_command);
        putchar('\n');
    }
    if (f->status.deaths)
        printf(LABEL "%" PRIu32 " writers died at work\n", "deaths", f->status.deaths);
}

static void print_reader(const struct stream_facts *f, const struct shmview_stream_reader_status *r)
{
    fputs("    ", stdout);
    print_process(r->pid, r->command);
    if (stream_reader_has_left(r))
        fputs(", has left", stdout);
    else
        printf(", next %" PRIu64 ", lag %" PRIu64 ", missed %" PRIu64, r->next, r->lag, r->missed);
    if (r->n_held)
        printf(", holds %" PRIu32 " of %" PRIu32, r->n_held, f->info.n_slots);
    putchar('\n');
}

static void print_stages(const struct stream_facts *f)
{
    for (uint32_t k = 0; k < f->info.n_stages; k++) {
        char name[24];
        uint32_t n = count_readers(f, k);
        snprintf(name, sizeof name, "stage %" PRIu32, k);
        printf(LABEL "%" PRIu64 " published%s", name, f->status.published[k],
               f->status.has_ended[k] ? ", ended" : "");
        if (f->sees_readers)
            printf(", %" PRIu32 " %s", n, n == 1 ? "reader" : "readers");
        putchar('\n');
        for (size_t i = 0; i < f->n_readers; i++)
            if (f->readers[i].stage == k)
                print_reader(f, &f->readers[i]);
    }
    if (!f->sees_readers)
        fputs("    its readers are not seen: all slots of its lock are taken\n", stdout);
}

/* Prints a character for each slot, and what they mean. */
static void print_slots(const struct stream_facts *f)
{
    for (uint32_t i = 0; i < f->info.n_slots; i += ROW) {
        char row[ROW + 1];
        uint32_t n = f->info.n_slots - i < ROW ? f->info.n_slots - i : ROW;
        for (uint32_t k = 0; k < n; k++)
            row[k] = marks[f->slots[i + k].state & 3];
        row[n] = '\0';
        printf(LABEL "%s\n", i ? "" : "slots", row);
    }
    printf(LABEL, "");
    for (uint32_t state = 0; state < ARRAY_LEN(state_names); state++)
        printf("%s%c %" PRIu32 " %s", state ? ", " : "", marks[state], stream_count(f, state),
               state_names[state]);
    putchar('\n');
}

/* Prints the numbers of the frame in a slot. */
static void print_frame(const struct stream_facts *f, const struct shmview_stream_slot_status *s)
{
    char age[HUMAN_BYTES];
    const char *separator = " with frame ";
    for (uint32_t k = 0; k < f->info.n_stages; k++)
        if (s->sequence[k]) {
            printf(f->info.n_stages > 1 ? "%s%" PRIu64 " of stage %" PRIu32 : "%s%" PRIu64,
                   separator, s->sequence[k], k);
            separator = ", ";
        }
    if (separator[0] == ',' && s->time_ns > 0 && s->time_ns <= f->now_ns)
        printf(" of %s ago", human_duration(age, (f->now_ns - s->time_ns) / 1000));
}

/* Prints a line for each slot that a process has, because it is what others may wait for. */
static void print_holders(const struct stream_facts *f)
{
    for (uint32_t i = 0; i < f->info.n_slots; i++) {
        const struct shmview_stream_slot_status *s = &f->slots[i];
        const char *separator = ": ";
        if (s->state != SHMVIEW_SLOT_LOANED && s->state != SHMVIEW_SLOT_HELD)
            continue;
        printf("    slot %" PRIu32, i);
        if (s->state == SHMVIEW_SLOT_LOANED) {
            fputs(": loaned by ", stdout);
            print_process(s->pid, s->command);
        } else {
            print_frame(f, s);
            for (size_t k = 0; k < f->n_readers; k++)
                if (holds(&f->readers[k], i)) {
                    printf("%s%s", separator, separator[0] == ':' ? "held by " : "");
                    print_process(f->readers[k].pid, f->readers[k].command);
                    separator = ", ";
                }
        }
        putchar('\n');
    }
}

void stream_print(const struct stream_facts *f)
{
    print_head(f);
    print_stages(f);
    print_slots(f);
    print_holders(f);
}

/* --- JSON ---------------------------------------------------------------- */

static json_t *process_json(uint32_t pid, const char command[16])
{
    return pid ? json_pack("{s:I, s:s#}", "pid", (json_int_t)pid, "command", command,
                           (int)strnlen(command, 16))
               : json_null();
}

static json_t *reader_json(const struct stream_facts *f,
                           const struct shmview_stream_reader_status *r)
{
    json_t *held = json_array();
    for (uint32_t i = 0; i < f->info.n_slots; i++)
        if (holds(r, i))
            json_array_append_new(held, json_integer(i));
    return json_pack("{s:o, s:b, s:o, s:I, s:I, s:o}", "process", process_json(r->pid, r->command),
                     "has_left", stream_reader_has_left(r), "next",
                     stream_reader_has_left(r) ? json_null() : json_integer((json_int_t)r->next),
                     "lag", (json_int_t)r->lag, "missed", (json_int_t)r->missed, "held", held);
}

static json_t *stages_json(const struct stream_facts *f)
{
    json_t *all = json_array();
    for (uint32_t k = 0; k < f->info.n_stages; k++) {
        json_t *readers = json_array();
        for (size_t i = 0; i < f->n_readers; i++)
            if (f->readers[i].stage == k)
                json_array_append_new(readers, reader_json(f, &f->readers[i]));
        json_array_append_new(all, json_pack("{s:I, s:b, s:o}", "published",
                                             (json_int_t)f->status.published[k], "ended",
                                             f->status.has_ended[k] != 0, "readers", readers));
    }
    return all;
}

static json_t *slots_json(const struct stream_facts *f)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < f->info.n_slots; i++) {
        const struct shmview_stream_slot_status *s = &f->slots[i];
        json_t *frames = json_array();
        for (uint32_t k = 0; k < f->info.n_stages; k++)
            json_array_append_new(frames, s->sequence[k] ? json_integer((json_int_t)s->sequence[k])
                                                         : json_null());
        json_array_append_new(all, json_pack("{s:s, s:o, s:o, s:I}", "state",
                                             state_names[s->state & 3], "frames", frames, "writer",
                                             process_json(s->pid, s->command), "holders",
                                             (json_int_t)s->n_holders));
    }
    return all;
}

json_t *stream_json(const struct stream_facts *f)
{
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:b, s:o, s:I, s:o, s:o}", "mode",
        f->info.mode == SHMVIEW_LOSSLESS ? "lossless" : "latest", "frame_bytes",
        (json_int_t)f->info.frame_bytes, "history", (json_int_t)f->info.history, "n_slots",
        (json_int_t)f->info.n_slots, "many_writers", (f->info.flags & SHMVIEW_MANY_WRITERS) != 0,
        "writer", process_json(f->status.writer_pid, f->status.writer_command), "deaths",
        (json_int_t)f->status.deaths, "stages", stages_json(f), "slots", slots_json(f));
}
