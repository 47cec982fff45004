/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/events: events of the daemon, as they happen, as server-sent events.
 *
 * Each event has its serial as its id. A browser that connects again sends the last one, and the
 * stream continues after it as far as the daemon remembers. With after=1 the stream begins with
 * the oldest event that the daemon remembers; name=NAME, up to 64 times, selects segments. */
#include <inttypes.h>
#include <string.h>

#include <microhttpd.h>

#include <shmview/monitor.h>

#include "web/api/api.h"

#define LOOK_NS  INT64_C(250000000)   /* between two looks whether anybody wants it still */
#define BEAT_NS  INT64_C(10000000000) /* a comment that shows that the connection lives */
#define RETRY_MS 1000                 /* after which a browser connects again */

struct stream {
    struct backend *backend;
    struct request_end end;
    struct shmview_monitor *monitor;
    struct text pending; /* not sent yet, from byte `sent` on */
    size_t sent;
    bool is_away; /* the daemon is, and the page knows it */
};

static void put_event(struct text *t, const struct shmview_event *e)
{
    const char *kind = shmview_event_kind_name((int)e->kind);
    text_print(t,
               "id: %" PRIu64 "\ndata: {\"serial\":%" PRIu64 ",\"time_us\":%" PRId64 ",\"kind\":",
               e->serial, e->serial, e->time_us);
    text_json(t, kind ? kind : "unknown");
    text_print(t, ",\"id\":%" PRIu64 ",\"segment\":", e->id);
    text_json(t, e->segment);
    text_print(t, ",\"pid\":%u,\"uid\":", e->pid);
    text_json_known(t, e->uid);
    text_put(t, ",\"command\":");
    text_json(t, e->command);
    text_print(t, ",\"access\":%u,\"held\":%u,\"generation\":%u,\"layout\":", e->access, e->held,
               e->generation);
    text_json(t, e->layout);
    text_print(t,
               ",\"size\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"held_frames\":%u,\"reason\":", e->size,
               e->lost, e->held_frames);
    text_json(t, e->reason);
    text_put(t, "}\n\n");
}

/* Waits until there is something to send. Returns false at the end. */
static bool await(struct stream *s)
{
    int64_t beat = shmview_deadline(BEAT_NS);
    for (;;) {
        const struct shmview_event *e;
        int r = shmview_monitor_next(s->monitor, shmview_deadline(LOOK_NS), &e);
        if (r == 0) {
            s->is_away = false;
            put_event(&s->pending, e);
            return true;
        }
        if (request_is_over(&s->end) ||
            (r != -SHMVIEW_ERR_TIMED_OUT && r != -SHMVIEW_ERR_DISCONNECTED))
            return false;
        if (r == -SHMVIEW_ERR_DISCONNECTED && !s->is_away) {
            s->is_away = true;
            text_put(&s->pending, "data: {\"kind\":\"away\"}\n\n");
            return true;
        }
        if (monotonic_ns() > beat) {
            text_put(&s->pending, ":\n\n");
            return true;
        }
    }
}

static ptrdiff_t read_events(void *arg, char *buffer, size_t room)
{
    struct stream *s = arg;
    if (s->sent == s->pending.n) {
        s->sent = s->pending.n = 0;
        if (!await(s) || s->pending.failed)
            return -1;
    }
    size_t n = s->pending.n - s->sent;
    n = n < room ? n : room;
    memcpy(buffer, s->pending.bytes + s->sent, n);
    s->sent += n;
    return (ptrdiff_t)n;
}

static void free_events(void *arg)
{
    struct stream *s = arg;
    pthread_mutex_lock(&s->backend->mutex);
    s->backend->n_streams--;
    pthread_mutex_unlock(&s->backend->mutex);
    shmview_monitor_close(s->monitor);
    text_free(&s->pending);
    free(s);
}

/* Whether there may be one more stream; it counts then. */
static bool count_stream(struct backend *b)
{
    pthread_mutex_lock(&b->mutex);
    bool fits = b->n_streams < LIMIT_EVENT_STREAMS;
    b->n_streams += fits;
    pthread_mutex_unlock(&b->mutex);
    return fits;
}

/* Reads the serial after which the stream begins: that of a browser which connects again, or of
 * the URL. Returns false after making the reply an error. */
static bool read_after(const struct request *q, struct reply *reply, uint64_t *ret)
{
    const char *last = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Last-Event-ID");
    int64_t after = 0;
    if (last)
        after = (int64_t)(strtoull(last, NULL, 10) & INT64_MAX);
    else if (!request_number(q, reply, "after", 0, INT64_MAX, &after))
        return false;
    *ret = (uint64_t)after;
    return true;
}

void api_events(const struct request *q, struct reply *reply)
{
    const char *names[LIMIT_NAMES];
    struct shmview_monitor_options o = {.struct_bytes = sizeof o, .names = names};
    struct backend *b = api_backend(q);
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection || !read_after(q, reply, &o.after))
        return;
    o.n_names = request_texts(q, "name", names, LIMIT_NAMES);
    if (!count_stream(b)) {
        reply->retry_after_s = 5;
        reply_error(reply, 429, "%d pages receive events already: close one", LIMIT_EVENT_STREAMS);
        return;
    }
    struct stream *s = calloc(1, sizeof *s);
    int r = s ? shmview_monitor_open(connection, &o, &s->monitor) : -SHMVIEW_ERR_NO_MEMORY;
    if (r) {
        pthread_mutex_lock(&b->mutex);
        b->n_streams--;
        pthread_mutex_unlock(&b->mutex);
        free(s);
        api_fail(reply, r);
        return;
    }
    s->backend = b;
    request_watch_end(q, &s->end);
    text_print(&s->pending, "retry: %d\n\n", RETRY_MS);
    reply->type = TYPE_EVENTS;
    reply->stream = (struct reply_stream){.read = read_events, .free = free_events, .arg = s};
}
