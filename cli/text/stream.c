/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/stream.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/shell/suggest.h"
#include "cli/text/bus_error.h"

const char *const stream_mode_names[] = {"latest", "lossless", NULL};

/* Reads the bytes of another program's segment by a system call, which fails where an access would
 * raise SIGBUS: verbs that look at many segments must not end because of one. */
static bool read_safely(const void *from, void *to, size_t n)
{
    static int self = -1;
    if (self < 0)
        self = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    return self >= 0 && pread(self, to, n, (off_t)(uintptr_t)from) == (ssize_t)n;
}

bool stream_header(struct shmview_segment *segment, struct shmview_stream_header *ret_header)
{
    struct shmview_stream_header h;
    if (shmview_size(segment) < sizeof h || !read_safely(shmview_data(segment), &h, sizeof h) ||
        h.magic != SHMVIEW_STREAM_MAGIC || h.header_bytes < sizeof h)
        return false;
    if (ret_header)
        *ret_header = h;
    return true;
}

bool stream_may_be(const struct shmview_description *d)
{
    for (size_t i = 0; d->has_lock && i < d->n_layouts; i++)
        if (strcmp(d->layouts[i]->name, STREAM_LAYOUT) == 0)
            return true;
    return false;
}

/* Signs the slot of a segment, for bus_error_await(). Otherwise the first call that needs the slot
 * would sign it. The library writes the slot under a mutex of the whole process, which would stay
 * locked if bus_error_guard() left it there. */
static void sign(void *segment)
{
    uint64_t version;
    shmview_read_begin(segment, &version); /* a later call reports the same error */
}

int stream_open_if(struct context *c, const char *name, struct shmview_stream **ret_stream)
{
    struct shmview_segment *segment;
    *ret_stream = NULL;
    int r = shmview_attach(c->connection, name, SHMVIEW_PEEK, 0, &segment);
    if (r)
        return r;
    bool is_stream = stream_is(segment);
    shmview_detach(segment);
    if (!is_stream)
        return 0;
    r = shmview_stream_open(c->connection, name, SHMVIEW_READ, ret_stream);
    if (r == 0)
        bus_error_await(sign, shmview_stream_segment(*ret_stream));
    return r == -SHMVIEW_ERR_NO_SLOT
               ? shmview_stream_open(c->connection, name, SHMVIEW_PEEK, ret_stream)
               : r;
}

int stream_take_latest(struct context *c, const char *name, struct shmview_stream **ret_stream,
                       struct shmview_frame *ret_frame)
{
    struct shmview_stream *stream;
    int r = shmview_stream_open(c->connection, name, SHMVIEW_READ, &stream);
    if (r)
        return fail_attach(c, r, name);
    do
        r = shmview_stream_take_latest(stream, 0, ret_frame);
    while (r == SHMVIEW_WRITER_DIED);
    if (r == 0) {
        shmview_stream_leave(stream); /* only the frame itself is held */
        *ret_stream = stream;
        return 0;
    }
    int status =
        r == -SHMVIEW_ERR_TIMED_OUT || r == SHMVIEW_STREAM_ENDED
            ? fail_text(c, "stream '%s' has no frame: 'shmviewctl show %s' shows who writes it",
                        name, name)
            : fail_call(c, r);
    shmview_stream_close(stream);
    return status;
}

/* Writes "image, depth" and returns the number of views. */
static size_t list_views(const struct shmview_stream *stream, char *text, size_t bytes)
{
    size_t n = 0, i;
    const char *name;
    text[0] = '\0';
    for (i = 0; (name = shmview_stream_view_name(stream, i)); i++)
        if (n < bytes)
            n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? ", " : "", name);
    return i;
}

int stream_find_view(struct context *c, const struct shmview_stream *stream, const char *name,
                     const char *view, size_t *ret)
{
    struct suggest s = {.typed = view};
    char text[512];
    size_t n = list_views(stream, text, sizeof text);
    if (!view[0] && n > 1)
        return fail_usage(c, "'%s' has %zu views, %s: name one, as in '%s/%s'", name, n, text, name,
                          shmview_stream_view_name(stream, 0));
    for (size_t i = 0; i < n; i++) {
        const char *has = shmview_stream_view_name(stream, i);
        if (!view[0] || strcmp(has, view) == 0) {
            *ret = i;
            return 0;
        }
        suggest_offer(&s, has);
    }
    warn_text(c, "'%s' has no view '%s'; it has %s: 'shmviewctl show %s' shows more", name, view,
              text, name);
    suggest_print(&s);
    return EXIT_NOT_FOUND;
}
