/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/segment?name=NAME: one segment with its layouts, its attachments, and its lock. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <shmview/describe.h>
#include <shmview/stats.h>

#include "web/api/api.h"

static void put_numbers(struct text *t, const int64_t *numbers, uint32_t n)
{
    text_put(t, "[");
    for (uint32_t d = 0; d < n; d++)
        text_print(t, "%s%" PRId64, d ? "," : "", numbers[d]);
    text_put(t, "]");
}

static void put_view(struct text *t, const struct shmview_view_description *v)
{
    const char *dtype = shmview_dtype_name(v->dtype & ~(uint32_t)SHMVIEW_SWAPPED);
    text_put(t, "{\"name\":");
    text_json(t, v->name);
    text_put(t, ",\"format\":");
    text_json(t, v->format);
    text_put(t, ",\"dtype\":");
    text_json(t, dtype);
    text_print(t,
               ",\"begin\":%" PRIu64 ",\"end\":%" PRIu64 ",\"itemsize\":%u,\"flags\":%u,\"shape\":",
               v->begin, v->end, v->itemsize, v->flags);
    put_numbers(t, v->shape, v->ndim);
    text_put(t, ",\"strides\":");
    put_numbers(t, v->strides, v->ndim);
    text_put(t, "}");
}

static void put_layouts(struct text *t, const struct shmview_description *d)
{
    text_put(t, ",\"layouts\":[");
    for (size_t i = 0; i < d->n_layouts; i++) {
        text_print(t, "%s{\"name\":", i ? "," : "");
        text_json(t, d->layouts[i]->name);
        text_put(t, ",\"views\":[");
        for (size_t k = 0; k < d->layouts[i]->n_views; k++) {
            text_put(t, k ? ",\n" : "\n");
            put_view(t, d->layouts[i]->views[k]);
        }
        text_put(t, "]}");
    }
    text_put(t, "]");
}

/* now_us - since_us is computed here, because the browser may have another clock. */
static void put_parties(struct text *t, const struct shmview_segment_stats *s)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    text_put(t, ",\"parties\":[");
    for (size_t i = 0; i < s->n_parties; i++) {
        const struct shmview_party_stats *p = s->parties[i];
        text_print(
            t, "%s{\"attachment\":%" PRId64 ",\"pid\":%" PRId64 ",\"uid\":%" PRId64 ",\"command\":",
            i ? ",\n" : "\n", p->attachment, p->pid, p->uid);
        text_json(t, p->command);
        text_print(t, ",\"access\":%u,\"holds\":%u,\"waits\":%u,\"since_us\":", p->access, p->holds,
                   p->waits);
        text_json_known(t, p->since_us > 0 ? now_us - p->since_us : -1);
        text_put(t, "}");
    }
    text_put(t, "]");
}

static void put_stats(struct text *t, const struct shmview_segment_stats *s)
{
    const struct {
        const char *name;
        int64_t value;
    } figures[] = {
        {"resident", s->resident},     {"attachments", s->attachments},
        {"created_us", s->created_us}, {"generation", s->generation},
        {"changes", s->changes},       {"owner_deaths", s->owner_deaths},
    };
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        text_print(t, ",\"%s\":", figures[i].name);
        text_json_known(t, figures[i].value);
    }
    text_put(t, ",\"layout\":");
    text_json(t, s->layout);
    put_parties(t, s);
}

void api_segment(const struct request *q, struct reply *reply)
{
    const char *name = request_text(q, "name");
    const struct shmview_description *d;
    const struct shmview_stats *s;
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection)
        return;
    if (!name) {
        reply_error(reply, 400, "the parameter name is missing");
        return;
    }
    int r = shmview_describe(connection, name, &d);
    if (r) {
        api_fail(reply, r);
        return;
    }
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .names = &name, .n_names = 1};
    r = shmview_stats_get(connection, &o, &s);
    if (r) {
        shmview_description_free(d);
        api_fail(reply, r);
        return;
    }
    if (s->n_segments == 0) {
        reply_error(reply, 404, "segment '%s' was removed during this request", d->name);
        shmview_stats_free(s);
        shmview_description_free(d);
        return;
    }
    struct text *t = &reply->body;
    text_print(t, "{\"id\":%" PRId64 ",\"name\":", d->id);
    text_json(t, d->name);
    text_put(t, ",\"label\":");
    text_json(t, d->label);
    text_print(t,
               ",\"size\":%" PRId64
               ",\"has_lock\":%u,\"lifetime\":%u,\"backing\":%u,\"owner\":%" PRId64
               ",\"group\":%" PRId64 ",\"mode\":%" PRId64,
               d->size, d->has_lock, d->lifetime, d->backing, d->owner, d->group, d->mode);
    put_layouts(t, d);
    put_stats(t, s->segments[0]);
    text_put(t, "}\n");
    shmview_stats_free(s);
    shmview_description_free(d);
}
