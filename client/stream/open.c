/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, opens and closes streams. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/error.h"
#include "client/segment/export.h"
#include "client/stream/stream.h"
#include "client/views/handle.h"
#include "common/stream/plan.h"

/* How long an opener waits for a creator that has not stored the header yet. */
#define READY_NS      900000000
#define READY_STEP_NS 1000000

/* --- The handle ---------------------------------------------------------- */

static void stream_free(struct shmview_stream *s)
{
    free(s->views);
    free(s->writer.free);
    free(s->writer.holders);
    free(s);
}

/* Sets what depends on the slot of this process, if it has one, and forgets what belongs to an
 * ancestor. A thread of that may have had a claim, or been half way through a change. */
static void own_stream(struct shmview_stream *s)
{
    const struct lock *l = stream_lock(s);
    uint16_t *free_slots = s->writer.free;
    if (s->me)
        s->me = slot_at(l, l->me & SHMVIEW_SLOT_MASK);
    s->reader = (struct reader){.taken = 0};
    s->writer = (struct writer){.free = free_slots, .holders = s->writer.holders};
    holders_forget(s);
    atomic_store_explicit(&s->epoch, process_epoch(), memory_order_release);
}

void stream_own(struct shmview_stream *s)
{
    DETAILS;
    if (!stream_is_own(s))
        own_stream(s);
}

int stream_prepare(struct shmview_stream *s)
{
    NOT_CANCELLED;
    int r = lock_enter(lock_of(s->segment));
    if (r)
        return r;
    stream_own(s);
    return 0;
}

/* Sets the addresses of the parts. The plan must have been checked. */
static void find_parts(struct shmview_stream *s)
{
    unsigned char *base = s->segment->data;
    struct shmview_control *control = stream_lock(s)->control;
    s->header = s->segment->data;
    s->slots = base + s->plan.slots_offset;
    s->mask = s->plan.n_cells - 1;
    s->n_holds = (s->plan.n_slots + 63) / 64;
    for (uint32_t k = 0; k < s->plan.n_stages; k++) {
        void *words = base + s->plan.stages_offset + k * s->plan.stage_bytes;
        s->stages[k].words = words;
        s->stages[k].ring = (uint64_t *)(s->stages[k].words + 1);
        s->stages[k].gate = control ? &control->stream_readers[k] : NULL;
    }
    if (control)
        s->me = slot_at(stream_lock(s), stream_lock(s)->me & SHMVIEW_SLOT_MASK);
}

/* Copies and checks the header, once its creator has stored it. Returns 0 or an error. */
static int read_header(struct shmview_stream *s)
{
    struct shmview_segment *segment = s->segment;
    struct view_fault fault;
    if (segment->size < sizeof s->plan)
        return fail(SHMVIEW_ERR_INVALID, "segment '%s' is no stream", segment->name);
    struct shmview_stream_header *header = segment->data;
    int64_t until = now_ns() + READY_NS;
    while (atomic_load_explicit(word(&header->magic), memory_order_acquire) == 0) {
        int r = now_ns() < until ? wait_a_moment(READY_STEP_NS) : 0;
        if (r)
            return r;
        if (now_ns() >= until)
            break;
    }
    memcpy(&s->plan, header, sizeof s->plan);
    if (stream_plan_check(&s->plan, segment->size, &fault) == 0)
        return 0;
    return fail((int)fault.error, "segment '%s': %s", segment->name, fault.text);
}

/* Makes a handle of a segment that is attached. Returns 0, after which the handle owns the segment,
 * or an error. */
static int stream_new(struct shmview_segment *segment, uint32_t stage,
                      struct shmview_stream **ret_stream)
{
    struct shmview_stream *s = aligned_alloc(_Alignof(struct shmview_stream), sizeof *s);
    if (!s)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    memset(s, 0, sizeof *s);
    s->segment = segment;
    s->stage = stage;
    int r = read_header(s);
    if (r == 0 && stage >= s->plan.n_stages)
        r = fail(SHMVIEW_ERR_INVALID, "stage %u of stream '%s', which has %u", stage, segment->name,
                 s->plan.n_stages);
    if (r == 0 && !segment->lock.control && segment->access != SHMVIEW_PEEK)
        r = fail_no_lock(segment);
    if (r == 0) {
        find_parts(s);
        s->views = calloc(s->plan.n_views, sizeof *s->views);
        s->writer.free = calloc(s->plan.n_slots, sizeof *s->writer.free);
        if (!s->views || !s->writer.free)
            r = fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    }
    if (r == 0 && segment->access == SHMVIEW_WRITE)
        r = holders_open(s);
    if (r == 0)
        r = stream_open_views(s);
    if (r)
        stream_free(s);
    else
        *ret_stream = s;
    return r;
}

/* --- Create -------------------------------------------------------------- */

/* Places the views of a spec, and makes the plan. Returns 0 or an error. */
static int plan_spec(const struct shmview_stream_spec *spec, struct view_desc *descs,
                     struct formats *pool, struct shmview_stream_header *plan, uint64_t *ret_size)
{
    struct view_fault fault = {.error = 0};
    for (size_t i = 0; i < spec->n_views; i++) {
        const struct shmview_view_spec *v = &spec->views[i];
        if (view_spec_describe(v, pool, &descs[i], &fault))
            return fail_view(v->name, &fault);
    }
    *plan = (struct shmview_stream_header){
        .mode = spec->mode,
        .n_slots = spec->n_slots,
        .history = spec->history,
        .n_stages = spec->n_stages,
        .n_views = (uint32_t)spec->n_views,
        .flags = spec->flags & ~SHMVIEW_PLACED,
    };
    if (stream_place(descs, spec->n_views, spec->flags & SHMVIEW_PLACED, &plan->frame_bytes,
                     &fault) ||
        stream_plan(plan, ret_size, &fault))
        return fail((int)fault.error, "a stream: %s", fault.text);
    return 0;
}

/* Declares the views of slot 0, and stores the header. Returns 0 or an error. */
static int make_stream(struct shmview_segment *segment, const struct shmview_stream_spec *spec,
                       const struct view_desc *descs, const struct shmview_stream_header *plan)
{
    struct shmview_view_spec *views = calloc(spec->n_views, sizeof *views);
    if (!views)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < spec->n_views; i++) {
        views[i] = spec->views[i];
        views[i].offset = plan->frames_offset + descs[i].offset;
    }
    int r = shmview_define(segment, STREAM_LAYOUT, views, spec->n_views);
    free(views);
    if (r)
        return r;
    struct shmview_stream_header *header = segment->data;
    size_t first = offsetof(struct shmview_stream_header, version);
    memcpy((char *)header + first, (const char *)plan + first, sizeof *plan - first);
    atomic_store_explicit(word(&header->magic), plan->magic, memory_order_release);
    return 0;
}

static int create_planned(struct shmview_connection *connection, const char *name,
                          const struct shmview_stream_spec *spec, const struct view_desc *descs,
                          const struct shmview_stream_header *plan, uint64_t size,
                          struct shmview_stream **ret_stream)
{
    struct shmview_segment *segment;
    int r = shmview_create(connection, name, size, spec->options, &segment);
    if (r)
        return r;
    r = make_stream(segment, spec, descs, plan);
    if (r == 0)
        r = stream_new(segment, 0, ret_stream);
    if (r) {
        char text[ERROR_TEXT_BYTES];
        snprintf(text, sizeof text, "%s", shmview_error_text());
        shmview_remove(connection, name); /* its text replaces that of the first error */
        shmview_detach(segment);
        set_error_text("%s", text);
    }
    return r;
}

/* Checks what is needed to read the spec. Returns 0 or an error. */
static int check_spec(const struct shmview_stream_spec *spec)
{
    if (spec->struct_bytes != sizeof *spec)
        return fail(SHMVIEW_ERR_INVALID, "a stream spec of %u bytes; this library knows %zu",
                    spec->struct_bytes, sizeof *spec);
    if (spec->flags & ~(SHMVIEW_MANY_WRITERS | SHMVIEW_PLACED))
        return fail(SHMVIEW_ERR_INVALID, "a stream with flags 0x%x", spec->flags);
    if (!spec->views || spec->n_views < 1 || spec->n_views > SHMVIEW_STREAM_VIEWS_MAX)
        return fail(SHMVIEW_ERR_INVALID, "a stream with %zu views, a frame has 1 to %u",
                    spec->views ? spec->n_views : 0, SHMVIEW_STREAM_VIEWS_MAX);
    if (spec->options && spec->options->struct_bytes >= sizeof(uint32_t) * 3 &&
        spec->options->flags & SHMVIEW_NO_LOCK)
        return fail(SHMVIEW_ERR_INVALID, "a stream needs a lock, for the slots of its clients");
    return 0;
}

int shmview_stream_create(struct shmview_connection *connection, const char *name,
                          const struct shmview_stream_spec *spec,
                          struct shmview_stream **ret_stream)
{
    struct shmview_stream_header plan;
    struct formats pool = {0};
    uint64_t size;
    int r = check_spec(spec);
    if (r)
        return r;
    struct view_desc *descs = calloc(spec->n_views, sizeof *descs);
    if (!descs)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    r = plan_spec(spec, descs, &pool, &plan, &size);
    if (r == 0)
        r = create_planned(connection, name, spec, descs, &plan, size, ret_stream);
    formats_deinit(&pool);
    free(descs);
    return r;
}

/* --- Open and close ------------------------------------------------------ */

/* Splits "camera:1" into a name and a stage. Returns 0 or an error. */
static int split_name(const char *name, char *ret_name, uint32_t *ret_stage)
{
    const char *colon = name ? strchr(name, ':') : NULL;
    size_t n = colon ? (size_t)(colon - name) : name ? strlen(name) : 0;
    *ret_stage = 0;
    if (n > LIMIT_NAME_BYTES || !name)
        return check_segment_name(name);
    memcpy(ret_name, name, n);
    ret_name[n] = 0;
    if (!colon)
        return 0;
    if (colon[1] < '0' || colon[1] > '9' || colon[2])
        return fail(SHMVIEW_ERR_INVALID, "'%.140s' does not end in ':' and the number of a stage",
                    name);
    *ret_stage = (uint32_t)(colon[1] - '0');
    return 0;
}

int shmview_stream_open(struct shmview_connection *connection, const char *name, int access,
                        struct shmview_stream **ret_stream)
{
    char segment_name[LIMIT_NAME_BYTES + 1];
    struct shmview_segment *segment;
    uint32_t stage;
    NOT_CANCELLED;
    int r = split_name(name, segment_name, &stage);
    if (r == 0)
        r = shmview_attach(connection, segment_name, access, 0, &segment);
    if (r)
        return r;
    r = stream_new(segment, stage, ret_stream);
    if (r)
        shmview_detach(segment);
    return r;
}

/* How many frames this process has loaned or taken. Another process with write access can store any
 * id as the owner of a slot: a client that only reads owns none, and the sum must not wrap. */
static uint32_t count_frames(struct shmview_stream *s)
{
    const struct lock *l = stream_lock(s);
    uint32_t n = 0, n_owned = 0, n_free = s->writer.n_free - s->writer.first;
    if (!s->me || !stream_is_own(s) || !slot_is_mine(l))
        return 0;
    for (uint32_t w = 0; s->reader.was_here && w < s->n_holds; w++)
        n += (uint32_t)__builtin_popcountll(atomic_load(word64(&s->me->stream_holds[w])));
    for (uint32_t f = 0; s->segment->access == SHMVIEW_WRITE && f < s->plan.n_slots; f++)
        n_owned += atomic_load(word(&slot_words(s, f)->owner)) == l->me;
    return n + (n_owned > n_free ? n_owned - n_free : 0);
}

/* Ends the use of the stream by this process. */
static void stream_leave(struct shmview_stream *s)
{
    if (!s->me || !stream_is_own(s) || !slot_is_mine(stream_lock(s)))
        return;
    shmview_stream_leave(s);
    atomic_store(word(&s->me->stream_user), 0);
    writer_leave(s);
}

int shmview_stream_close(struct shmview_stream *stream)
{
    if (!stream)
        return 0;
    uint32_t n = count_frames(stream);
    if (n)
        return fail(SHMVIEW_ERR_BUSY, "%u frames of '%s' are neither released nor published", n,
                    stream->segment->name);
    /* before leaving, and once only: other threads may release buffers */
    int r = segment_check_idle(stream->segment);
    if (r)
        return r;
    stream_leave(stream);
    r = shmview_detach(stream->segment);
    if (r == 0)
        stream_free(stream);
    return r;
}

void shmview_stream_close_later(struct shmview_stream *stream)
{
    struct shmview_stream *s = stream;
    if (!s)
        return;
    if (s->me && s->segment->access == SHMVIEW_WRITE && stream_is_own(s) &&
        slot_is_mine(stream_lock(s)))
        for (uint32_t f = 0; f < s->plan.n_slots; f++) {
            uint32_t mine = stream_lock(s)->me;
            swap(&slot_words(s, f)->owner, &mine, 0);
        }
    stream_leave(s);
    shmview_detach_later(s->segment);
    stream_free(s);
}

/* --- Facts --------------------------------------------------------------- */

void shmview_stream_info_get(const struct shmview_stream *stream,
                             struct shmview_stream_info *ret_info)
{
    const struct shmview_stream_header *plan = &stream->plan;
    *ret_info = (struct shmview_stream_info){
        .mode = plan->mode,
        .n_slots = plan->n_slots,
        .history = plan->history,
        .n_stages = plan->n_stages,
        .stage = stream->stage,
        .flags = plan->flags,
        .n_views = plan->n_views,
        .frame_bytes = plan->frame_bytes,
    };
}

struct shmview_segment *shmview_stream_segment(const struct shmview_stream *stream)
{
    return stream->segment;
}

int shmview_stream_fd(struct shmview_stream *stream, int *ret_fd)
{
    struct shmview_stream *s = stream;
    int r = s->me ? stream_enter(s) : fail_no_lock(s->segment);
    if (r == 0)
        r = shmview_change_fd(s->segment, ret_fd);
    if (r)
        return r;
    atomic_store(&s->is_watched, true);
    gate_close(s->stages[s->stage].gate, SHMVIEW_GATE_WATCHED);
    gate_close(&stream_lock(s)->control->stream_writers, SHMVIEW_GATE_WATCHED);
    return 0;
}
