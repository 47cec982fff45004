/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/stream?name=NAME: the slots and readers of a stream. It is attached for a moment;
 * nothing is taken from it. */
#include <inttypes.h>
#include <string.h>

#include <shmview/stream.h>

#include "web/api/api.h"
#include "web/memory/guard.h"

#define READERS_MOST 64
#define FACTS_GONE   1 /* result: the memory is gone */

/* What the library reports about a stream. */
struct facts {
    struct shmview_stream_info info;
    struct shmview_stream_status status;
    struct shmview_stream_slot_status slots[SHMVIEW_STREAM_SLOTS_MAX];
    struct shmview_stream_reader_status readers[READERS_MOST];
    bool sees_readers;
};

/* Reading the facts of an open stream, whose memory a client may truncate. */
struct query {
    struct shmview_stream *stream;
    struct facts *facts;
};

static int query(void *arg)
{
    const struct query *q = arg;
    struct facts *f = q->facts;
    return shmview_stream_query(q->stream, &f->status, f->slots, f->info.n_slots, f->readers,
                                READERS_MOST);
}

/* Opens the stream and reads the facts. Returns 0 or an error of the library. */
static int read_facts(struct shmview_connection *connection, const char *name, struct facts *f)
{
    struct shmview_stream *stream;
    int r = shmview_stream_open(connection, name, SHMVIEW_READ, &stream);
    if (r == -SHMVIEW_ERR_NO_SLOT)
        r = shmview_stream_open(connection, name, SHMVIEW_PEEK, &stream);
    if (r)
        return r;
    shmview_stream_info_get(stream, &f->info);
    f->sees_readers = shmview_access(shmview_stream_segment(stream)) != SHMVIEW_PEEK;
    guard_sign(shmview_stream_segment(stream));
    struct query q = {.stream = stream, .facts = f};
    if (!guard_run(query, &q, &r))
        r = FACTS_GONE;
    shmview_stream_close(stream);
    return r;
}

/* Writes the command of a client, which need not end with NUL. */
static void put_command(struct text *t, const char command[16])
{
    text_put(t, ",\"command\":");
    text_json_n(t, command, strnlen(command, 16));
}

static void put_slots(struct text *t, const struct facts *f)
{
    static const char *const states[] = {"free", "loaned", "published", "held"};
    text_put(t, ",\"slots\":[");
    for (uint32_t i = 0; i < f->info.n_slots; i++) {
        const struct shmview_stream_slot_status *s = &f->slots[i];
        text_print(t, "%s{\"state\":\"%s\",\"holders\":%u,\"pid\":%u,\"sequence\":%" PRIu64,
                   i ? "," : "", s->state < ARRAY_LEN(states) ? states[s->state] : "unknown",
                   s->n_holders, s->pid, s->sequence[0]);
        put_command(t, s->command);
        text_put(t, "}");
    }
    text_put(t, "]");
}

static void put_readers(struct text *t, const struct facts *f)
{
    text_print(t, ",\"sees_readers\":%s,\"readers\":[", f->sees_readers ? "true" : "false");
    for (size_t i = 0; i < f->status.n_readers && i < READERS_MOST; i++) {
        const struct shmview_stream_reader_status *r = &f->readers[i];
        text_print(t,
                   "%s{\"pid\":%u,\"stage\":%u,\"held\":%u,\"lag\":%" PRIu64 ",\"missed\":%" PRIu64
                   ",\"has_left\":%s",
                   i ? ",\n" : "\n", r->pid, r->stage, r->n_held, r->lag, r->missed,
                   r->next == UINT64_MAX ? "true" : "false");
        put_command(t, r->command);
        text_put(t, "}");
    }
    text_put(t, "]");
}

static void put_stages(struct text *t, const struct facts *f)
{
    text_put(t, ",\"stages\":[");
    for (uint32_t k = 0; k < f->info.n_stages && k < SHMVIEW_STREAM_STAGES_MAX; k++)
        text_print(t, "%s{\"published\":%" PRIu64 ",\"ended\":%s}", k ? "," : "",
                   f->status.published[k], f->status.has_ended[k] ? "true" : "false");
    text_put(t, "]");
}

static void put_facts(struct text *t, const struct facts *f)
{
    text_print(t,
               "{\"mode\":\"%s\",\"many_writers\":%s,\"history\":%u,\"frame_bytes\":%" PRIu64
               ",\"deaths\":%u,\"pid\":%u",
               f->info.mode == SHMVIEW_LOSSLESS ? "lossless" : "latest",
               f->info.flags & SHMVIEW_MANY_WRITERS ? "true" : "false", f->info.history,
               f->info.frame_bytes, f->status.deaths, f->status.writer_pid);
    put_command(t, f->status.writer_command);
    put_stages(t, f);
    put_slots(t, f);
    put_readers(t, f);
    text_put(t, "}\n");
}

void api_stream(const struct request *q, struct reply *reply)
{
    const char *name = request_text(q, "name");
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection)
        return;
    if (!name) {
        reply_error(reply, 400, "the parameter name is missing");
        return;
    }
    struct facts *f = calloc(1, sizeof *f);
    int r = f ? read_facts(connection, name, f) : -SHMVIEW_ERR_NO_MEMORY;
    if (r == FACTS_GONE)
        reply_error(reply, 409, "the memory is gone: a client has truncated it");
    else if (r)
        api_fail(reply, r);
    else
        put_facts(&reply->body, f);
    free(f);
}
