/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

#include <shmview/wait.h>

#define MAX_READERS 8
#define MAX_SLOTS   16
#define NS_PER_MS   1000000

static int64_t deadline_of(const json_t *request)
{
    int64_t ms = number_of(request, "timeout_ms", -1);
    return ms < 0 ? SHMVIEW_FOREVER : shmview_deadline(ms * NS_PER_MS);
}

/* --- What requests name --------------------------------------------------- */

static struct named_stream *find_stream(struct driver *driver, const char *name)
{
    for (size_t i = 0; name && i < MAX_NAMED; i++)
        if (strcmp(driver->streams[i].name, name) == 0)
            return &driver->streams[i];
    refuse("no such stream, or no place for one", name);
}

static struct shmview_stream *stream_of(struct driver *driver, const json_t *request)
{
    return find_stream(driver, text_of(request, "stream"))->stream;
}

static struct named_stream *new_stream(struct driver *driver)
{
    return find_stream(driver, "");
}

/* Keeps the stream under the name in the request if r is 0. Returns r. */
static int keep(struct driver *driver, const json_t *request, int r, struct shmview_stream *stream)
{
    if (r)
        return r;
    struct named_stream *place = new_stream(driver);
    snprintf(place->name, NAMED_BYTES, "%s", text_of(request, "stream"));
    place->stream = stream;
    return 0;
}

static struct named_frame *find_frame(struct driver *driver, const char *name)
{
    for (size_t i = 0; name && i < MAX_NAMED; i++)
        if (strcmp(driver->frames[i].name, name) == 0)
            return &driver->frames[i];
    refuse("no such frame, or no place for one", name);
}

static struct shmview_frame *frame_of(struct driver *driver, const json_t *request)
{
    return &find_frame(driver, text_of(request, "frame"))->frame;
}

static void keep_frame(struct driver *driver, const json_t *request,
                       const struct shmview_frame *frame)
{
    struct named_frame *place = find_frame(driver, "");
    snprintf(place->name, NAMED_BYTES, "%s", text_of(request, "frame"));
    place->frame = *frame;
}

/* Forgets a frame that is over, and its views. */
static void forget_frame(struct driver *driver, const json_t *request)
{
    struct named_frame *frame = find_frame(driver, text_of(request, "frame"));
    size_t n = strlen(frame->name);
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (strncmp(driver->views[i].name, frame->name, n) == 0 && driver->views[i].name[n] == '.')
            driver->views[i] = (struct named_view){0};
    *frame = (struct named_frame){0};
}

/* --- Streams ---------------------------------------------------------------- */

static int run_create(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct view_specs views;
    struct shmview_stream *stream;
    specs_of(request, &views);
    struct shmview_stream_spec spec = {
        .struct_bytes = sizeof spec,
        .mode = truth_of(request, "lossless", false) ? SHMVIEW_LOSSLESS : SHMVIEW_LATEST,
        .n_slots = (uint32_t)number_of(request, "slots", 8),
        .history = (uint32_t)number_of(request, "history", 0),
        .n_stages = (uint32_t)number_of(request, "stages", 1),
        .views = views.specs,
        .n_views = views.n,
    };
    (void)ret_value;
    int r = shmview_stream_create(driver->connection, text_of(request, "name"), &spec, &stream);
    return keep(driver, request, r, stream);
}

static int run_open(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_stream *stream;
    const char *text = text_of(request, "access");
    int access = !text || strcmp(text, "read") == 0 ? SHMVIEW_READ
                 : strcmp(text, "write") == 0       ? SHMVIEW_WRITE
                                                    : SHMVIEW_PEEK;
    (void)ret_value;
    int r = shmview_stream_open(driver->connection, text_of(request, "name"), access, &stream);
    return keep(driver, request, r, stream);
}

static int run_close(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct named_stream *stream = find_stream(driver, text_of(request, "stream"));
    (void)ret_value;
    int r = shmview_stream_close(stream->stream);
    if (r == 0)
        *stream = (struct named_stream){0};
    return r;
}

static int run_info(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_stream_info i;
    shmview_stream_info_get(stream_of(driver, request), &i);
    *ret_value = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I}", "lossless", i.mode == SHMVIEW_LOSSLESS,
                           "slots", (json_int_t)i.n_slots, "history", (json_int_t)i.history,
                           "stages", (json_int_t)i.n_stages, "stage", (json_int_t)i.stage,
                           "frame_bytes", (json_int_t)i.frame_bytes);
    return 0;
}

static int run_join(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    return shmview_stream_join(stream_of(driver, request));
}

static int run_finish(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    return shmview_stream_end(stream_of(driver, request));
}

static int run_status(struct driver *driver, const json_t *request, json_t **ret_value)
{
    static const char *const states[] = {"free", "loaned", "published", "held"};
    struct shmview_stream_status status;
    struct shmview_stream_slot_status slots[MAX_SLOTS];
    struct shmview_stream_reader_status readers[MAX_READERS];
    struct shmview_stream_info info;
    struct shmview_stream *stream = stream_of(driver, request);
    shmview_stream_info_get(stream, &info);
    int r = shmview_stream_query(stream, &status, slots, MAX_SLOTS, readers, MAX_READERS);
    if (r)
        return r;
    json_t *all = json_array(), *published = json_array(), *kinds = json_array();
    for (uint32_t k = 0; k < info.n_stages; k++)
        json_array_append_new(published, json_integer((json_int_t)status.published[k]));
    for (uint32_t f = 0; f < info.n_slots; f++)
        json_array_append_new(kinds, json_string(states[slots[f].state]));
    for (size_t i = 0; i < status.n_readers; i++)
        json_array_append_new(all,
                              json_pack("[I, I, I, I, I]", (json_int_t)readers[i].pid,
                                        (json_int_t)readers[i].stage, (json_int_t)readers[i].next,
                                        (json_int_t)readers[i].lag, (json_int_t)readers[i].missed));
    *ret_value = json_pack("{s:o, s:I, s:I, s:o, s:o}", "published", published, "writer",
                           (json_int_t)status.writer_pid, "deaths", (json_int_t)status.deaths,
                           "slots", kinds, "readers", all);
    return 0;
}

/* Answers the place, in the request, of the stream for which a take would not wait. */
static int run_wait(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_wait entries[MAX_NAMED];
    const json_t *names = json_object_get(request, "streams");
    size_t n = json_array_size(names), index = 0;
    for (size_t i = 0; i < n && i < MAX_NAMED; i++)
        entries[i] = (struct shmview_wait){
            .kind = SHMVIEW_WAIT_FRAME,
            .stream = find_stream(driver, json_string_value(json_array_get(names, i)))->stream,
        };
    int r = shmview_wait_any(entries, n, deadline_of(request), &index);
    if (r == 0)
        *ret_value = json_integer((json_int_t)index);
    return r;
}

/* --- Frames ----------------------------------------------------------------- */

static int run_loan(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_frame frame;
    (void)ret_value;
    int r = shmview_stream_loan(stream_of(driver, request), deadline_of(request), &frame);
    if (r == 0)
        keep_frame(driver, request, &frame);
    return r;
}

static json_t *told_frame(const struct shmview_frame *frame)
{
    return json_pack("{s:I, s:I, s:I, s:o}", "sequence", (json_int_t)frame->sequence, "missed",
                     (json_int_t)frame->missed, "time_ns", (json_int_t)frame->time_ns, "user",
                     hex_of(frame->user, frame->user_bytes));
}

static int run_take(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_frame frame;
    struct shmview_death death;
    struct shmview_stream *stream = stream_of(driver, request);
    int64_t deadline = deadline_of(request);
    int r = truth_of(request, "latest", false)
                ? shmview_stream_take_latest(stream, deadline, &frame)
                : shmview_stream_take(stream, deadline, &frame);
    if (r == SHMVIEW_STREAM_ENDED)
        *ret_value = json_string("ended");
    if (r == SHMVIEW_WRITER_DIED && shmview_stream_death(stream, &death) == 0)
        *ret_value = json_pack("{s:I, s:s, s:I}", "pid", (json_int_t)death.pid, "command",
                               death.command, "when_ns", (json_int_t)death.when_ns);
    if (r == 0) {
        keep_frame(driver, request, &frame);
        *ret_value = told_frame(&frame);
    }
    return r < 0 ? r : 0;
}

/* Sets what a loaned frame carries besides its views. */
static int run_set(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_frame *frame = frame_of(driver, request);
    int64_t lengths[SHMVIEW_MAX_NDIM];
    uint32_t n;
    (void)ret_value;
    frame->time_ns = number_of(request, "time_ns", frame->time_ns);
    if (text_of(request, "user"))
        frame->user_bytes =
            (uint32_t)bytes_of(text_of(request, "user"), frame->user, SHMVIEW_STREAM_USER_BYTES);
    numbers_of(request, "lengths", lengths, &n);
    for (uint32_t i = 0; i < n; i++) {
        int r = shmview_frame_set_length(frame, i, (uint64_t)lengths[i]);
        if (r)
            return r;
    }
    return 0;
}

static int run_view(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_view view;
    const struct named_frame *frame = find_frame(driver, text_of(request, "frame"));
    char name[2 * NAMED_BYTES];
    (void)ret_value;
    int r = shmview_frame_view(&frame->frame, text_of(request, "name"), &view);
    if (r)
        return r;
    snprintf(name, sizeof name, "%s.%s", frame->name, text_of(request, "name"));
    json_auto_t *named = json_pack("{s:s}", "view", name);
    *new_view(driver, named) = view;
    return 0;
}

static int run_publish(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_frame *frame = frame_of(driver, request);
    int r = shmview_frame_publish(frame);
    if (r)
        return r;
    *ret_value = json_integer((json_int_t)frame->sequence);
    forget_frame(driver, request);
    return 0;
}

static int run_discard(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    shmview_frame_discard(frame_of(driver, request));
    forget_frame(driver, request);
    return 0;
}

static int run_release(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    shmview_frame_release(frame_of(driver, request));
    forget_frame(driver, request);
    return 0;
}

static int run_pass(struct driver *driver, const json_t *request, json_t **ret_value)
{
    uint64_t sequence;
    int r = shmview_frame_pass(frame_of(driver, request), (uint32_t)number_of(request, "stage", 0),
                               &sequence);
    if (r == 0)
        *ret_value = json_integer((json_int_t)sequence);
    return r;
}

const struct operation_row stream_operations[] = {
    {"stream_create", run_create},
    {"stream_open", run_open},
    {"stream_close", run_close},
    {"stream_info", run_info},
    {"stream_join", run_join},
    {"stream_finish", run_finish},
    {"stream_status", run_status},
    {"stream_wait", run_wait},
    {"loan", run_loan},
    {"take", run_take},
    {"frame_set", run_set},
    {"frame_view", run_view},
    {"publish", run_publish},
    {"discard", run_discard},
    {"release", run_release},
    {"pass", run_pass},
    {NULL, NULL},
};
