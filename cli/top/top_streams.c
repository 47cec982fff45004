/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top_streams.h"

#include <string.h>

#include "cli/text/bus_error.h"

/* A creator stores the header of a stream after its layout, so one look may come between. */
#define LOOKS_MOST 2

/* The daemon restores memory that a client has truncated, so a later look may succeed. Each look
 * that a bus error ends may leave an attachment, so one client must not cause many. */
#define GONE_MOST 8

/* --- Attaching ----------------------------------------------------------- */

static void close_guarded(void *arg)
{
    shmview_stream_close(arg);
}

static void detach_guarded(void *arg)
{
    shmview_detach(arg);
}

/* Detaches; the figures stay. To close a stream reads its memory, to detach a segment does not. */
static void let_go(struct top_stream *w)
{
    struct shmview_segment *segment = w->stream ? shmview_stream_segment(w->stream) : NULL;
    if (w->stream && !bus_error_guard(close_guarded, w->stream))
        bus_error_guard(detach_guarded, segment);
    w->stream = NULL;
}

static void stream_deinit(struct top_stream *w)
{
    let_go(w);
    free(w->now);
}

void top_streams_deinit(struct top_streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        stream_deinit(&s->list[i]);
    free(s->list);
    free(s->others);
    *s = (struct top_streams){.n = 0};
}

/* A call that reads the memory of a segment, for bus_error_guard(). */
struct visit {
    struct context *c;
    struct top_stream *w;
    struct stream_facts *facts;
    int r; /* an error of the library */
};

static void open_guarded(void *arg)
{
    struct visit *v = arg;
    v->r = stream_open_if(v->c, v->w->name, &v->w->stream);
}

static void read_guarded(void *arg)
{
    struct visit *v = arg;
    v->r = stream_facts_read(v->w->stream, v->facts);
}

/* Calls f, and notes in w why it failed. Returns 0 or an error of the library. */
static int attempt(struct visit *v, void (*f)(void *arg))
{
    if (!bus_error_guard(f, v)) {
        snprintf(v->w->trouble, sizeof v->w->trouble,
                 "its memory is gone: a client has truncated it");
        if (++v->w->n_gone == GONE_MOST)
            v->w->is_damaged = true;
        return -SHMVIEW_ERR_LOST;
    }
    snprintf(v->w->trouble, sizeof v->w->trouble, "%s", v->r ? shmview_error_text() : "");
    return v->r;
}

/* Gets new figures of a stream that is attached. If there are none, lets it go, so that the next
 * update attaches it again. */
static void read_figures(struct top_stream *w)
{
    struct visit v = {.w = w, .facts = calloc(1, sizeof *v.facts)};
    struct stream_figures figures;
    w->missed = 0;
    w->before_ns = 0;
    if (w->now) {
        stream_figures_of(w->now, w->name, &figures);
        w->before_ns = w->now->now_ns;
        for (uint32_t k = 0; k < figures.n_stages; k++) {
            w->published[k] = figures.stages[k].published;
            w->missed += figures.stages[k].missed;
        }
    }
    free(w->now);
    w->now = NULL;
    if (v.facts && attempt(&v, read_guarded) == 0) {
        w->now = v.facts;
        return;
    }
    free(v.facts);
    let_go(w);
}

bool top_stream_is_written(const struct shmview_segment_stats *s)
{
    for (size_t i = 0; i < s->n_parties; i++)
        if (s->parties[i]->access == SHMVIEW_WRITE)
            return true;
    return (int64_t)s->n_parties < s->attachments; /* the list has not all of them */
}

/* Attaches the stream if that is useful, and gets its figures. A segment whose lifetime is
 * `attached` stays as long as this program has it: while only such programs do, lets it go. */
static void visit(struct top_streams *s, struct context *c, const struct top *t,
                  struct top_stream *w, const struct shmview_segment_stats *segment)
{
    bool is_needed = segment->lifetime != SHMVIEW_ATTACHED || top_stream_is_written(segment);
    if (!w->stream && !w->is_damaged && !t->trouble && (is_needed || !w->is_unused) &&
        s->looks < STREAMS_MOST) {
        int r = attempt(&(struct visit){.c = c, .w = w}, open_guarded);
        s->looks++;
        if (r == -SHMVIEW_ERR_LAYOUT_VERSION || r == -SHMVIEW_ERR_INVALID)
            w->is_damaged = true;
        if (r == -SHMVIEW_ERR_DISCONNECTED)
            s->looks = STREAMS_MOST; /* each further look would wait for a daemon */
        if (r == 0 && !w->stream) {  /* it is not a stream */
            free(w->now);
            w->now = NULL;
        }
    }
    if (!w->stream)
        return;
    read_figures(w);
    w->is_unused = !is_needed && w->now && w->now->n_readers == 0;
    if (w->is_unused)
        snprintf(w->trouble, sizeof w->trouble, "no program writes or reads it");
    if (w->is_unused || s->lets_go)
        let_go(w);
}

/* --- Which streams ------------------------------------------------------- */

/* Compares two structs that begin with an id. */
static int by_id(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Drops the streams that are gone. */
static void drop(struct top_streams *s, const struct top *t)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        s->list[i].is_there = false;
    for (size_t i = 0; s->n && i < t->n_rows; i++) {
        const struct shmview_segment_stats *segment = t->rows[i].segment;
        struct top_stream *w = bsearch(&segment->id, s->list, s->n, sizeof *w, by_id);
        if (w) /* a removed one has its memory, and a row, as long as it is attached */
            w->is_there = segment->is_named;
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].is_there)
            s->list[n++] = s->list[i];
        else
            stream_deinit(&s->list[i]);
    s->n = n;
}

/* Looks at a segment that is not on the list, within the limits, and adds it to the list if it is a
 * stream. Returns how often it was found to be none. */
static unsigned consider(struct top_streams *s, struct context *c, const struct top *t,
                         const struct shmview_segment_stats *segment)
{
    const struct top_other *known =
        s->n_others ? bsearch(&segment->id, s->others, s->n_others, sizeof *known, by_id) : NULL;
    unsigned n_looks = known ? known->n_looks : 0;
    bool may_be = known;
    if (n_looks == LOOKS_MOST)
        return n_looks;
    if (t->trouble || s->n == STREAMS_MOST || s->looks == STREAMS_MOST ||
        s->described == STREAMS_DESCRIBED_MOST) {
        s->n_left++;
        return n_looks;
    }
    if (!known) {
        s->described++;
        if (streams_may_be(c, segment, &may_be)) { /* the daemon is away */
            s->described = STREAMS_DESCRIBED_MOST;
            return 0;
        }
    }
    if (!may_be)
        return LOOKS_MOST;
    struct top_stream *w = &s->list[s->n];
    *w = (struct top_stream){.id = segment->id};
    snprintf(w->name, sizeof w->name, "%s", segment->name);
    visit(s, c, t, w, segment);
    if (!w->now && !w->trouble[0])
        return n_looks + 1;
    s->n++;
    return 0;
}

int top_streams_update(struct top_streams *s, struct context *c, const struct top *t)
{
    struct top_other *others = malloc((t->n_rows + 1) * sizeof *others);
    size_t n_others = 0;
    if (!s->list)
        s->list = calloc(STREAMS_MOST, sizeof *s->list);
    if (!s->list || !others) {
        free(others);
        return fail_memory(c);
    }
    drop(s, t);
    s->n_left = s->looks = s->described = 0;
    for (size_t i = 0, n = s->n; i < t->n_rows; i++) { /* the first n are sorted */
        const struct shmview_segment_stats *segment = t->rows[i].segment;
        struct top_stream *w = n ? bsearch(&segment->id, s->list, n, sizeof *w, by_id) : NULL;
        unsigned n_looks = 0;
        if (w)
            visit(s, c, t, w, segment);
        else if (streams_is_candidate(segment))
            n_looks = consider(s, c, t, segment);
        if (n_looks)
            others[n_others++] = (struct top_other){.id = segment->id, .n_looks = n_looks};
    }
    qsort(s->list, s->n, sizeof *s->list, by_id);
    qsort(others, n_others, sizeof *others, by_id);
    free(s->others);
    s->others = others;
    s->n_others = n_others;
    return 0;
}

const struct top_stream *top_streams_find(const struct top_streams *s, int64_t id)
{
    return s->n ? bsearch(&id, s->list, s->n, sizeof *s->list, by_id) : NULL;
}
