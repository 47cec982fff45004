/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/streams.h"

#include <shmview/many.h>

#define AT_ONCE 64

/* Segments that are attached together. */
struct batch {
    struct context *c;
    const char *names[AT_ONCE];
    uint32_t *modes[AT_ONCE]; /* where the result of each belongs */
    size_t n;
};

/* Reads the modes of n segments, and detaches them. */
static void look(struct shmview_segment **segments, uint32_t **modes, size_t n)
{
    struct shmview_stream_header header;
    for (size_t i = 0; i < n; i++)
        if (stream_header(segments[i], &header))
            *modes[i] = header.mode;
    shmview_detach_many(segments, n);
}

/* Looks at all segments of the batch. If one of them cannot be attached, because it was removed or
 * is another user's, looks at each alone. Returns 0 or an error of the library. */
static int flush(struct batch *b)
{
    struct shmview_segment *segments[AT_ONCE];
    const size_t n = b->n;
    b->n = 0;
    if (shmview_attach_many(b->c->connection, b->names, n, SHMVIEW_PEEK, 0, segments) == 0) {
        look(segments, b->modes, n);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        int r = shmview_attach(b->c->connection, b->names[i], SHMVIEW_PEEK, 0, &segments[0]);
        if (r == -SHMVIEW_ERR_DISCONNECTED)
            return r;
        if (r == 0)
            look(segments, &b->modes[i], 1);
    }
    return 0;
}

bool streams_is_candidate(const struct shmview_segment_stats *s)
{
    return s->is_named && s->has_lock && s->layouts > 0 &&
           s->size >= (int64_t)sizeof(struct shmview_stream_header);
}

int streams_may_be(struct context *c, const struct shmview_segment_stats *s, bool *ret)
{
    const struct shmview_description *description;
    *ret = false;
    if (!streams_is_candidate(s))
        return 0;
    int r = shmview_describe(c->connection, s->name, &description);
    if (r)
        return r == -SHMVIEW_ERR_DISCONNECTED ? r : 0; /* it was removed just now */
    *ret = stream_may_be(description);
    shmview_description_free(description);
    return 0;
}

int streams_find(struct context *c, const struct shmview_segment_stats *const *segments, size_t n,
                 uint32_t *ret_modes)
{
    struct batch b = {.c = c};
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        bool candidate;
        ret_modes[i] = 0;
        r = streams_may_be(c, segments[i], &candidate);
        if (!candidate)
            continue;
        b.names[b.n] = segments[i]->name;
        b.modes[b.n++] = &ret_modes[i];
        if (b.n == AT_ONCE)
            r = flush(&b);
    }
    if (r == 0)
        r = flush(&b);
    return r;
}
