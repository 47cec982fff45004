/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches and detaches many segments, a batch of requests at a time. */
#include <shmview/many.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/error.h"
#include "client/segment/export.h"
#include "common/base/util.h"

struct batch {
    const char *const *names;
    size_t n;
    int access;
    unsigned flags;
    struct shmview_segment **segments; /* handles: empty, then complete or NULL */
    struct reply replies[BATCH_MAX];
};

/* --- A batch ------------------------------------------------------------- */

/* Makes the text of the requests. Returns it and its length, or NULL. */
static char *make_text(const struct batch *b, size_t *ret_bytes)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_bytes);
    bool ok = f;
    for (size_t i = 0; ok && i < b->n; i++) {
        struct wire_attach attach = {.name = b->names[i], .access = b->access, .id = WIRE_ABSENT};
        CLEANUP_FREE char *one = wire_attach_text(&attach);
        ok = one && fwrite(one, strlen(one) + 1, 1, f) == 1;
    }
    if (f && fclose(f))
        ok = false;
    if (!ok) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Makes handles before the requests are sent, so that a lack of memory costs no attachment. */
static int make_handles(struct shmview_connection *connection, const struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (!(b->segments[i] = segment_new(connection)))
            return -SHMVIEW_ERR_NO_MEMORY;
    return 0;
}

/* Frees the handles from the first one on, which are empty. */
static void free_handles(const struct batch *b, size_t first)
{
    for (size_t i = first; i < b->n; i++) {
        free(b->segments[i]);
        b->segments[i] = NULL;
    }
}

/* Completes a handle from its reply, unless an earlier one has failed: then ends the attachment,
 * and keeps the text of that error. Returns 0 or an error. */
static int take_reply(const struct batch *b, size_t i, struct reply *reply, int earlier)
{
    const char *reason;
    struct shmview_segment *s = b->segments[i];
    int r = earlier;
    if (r == 0 && reply->wire.error) {
        int error = wire_error_code(&reply->wire, &reason);
        r = fail(error, "%s", reason);
    } else if (r == 0) {
        r = segment_take(s, reply, b->flags);
        s = NULL;
    } else if (reply->held) {
        connection_detach(s->connection, reply->held);
    }
    if (r) {
        free(s);
        b->segments[i] = NULL;
    }
    return r;
}

/* Attaches those that had no reply, because the daemon was restarted. */
static int attach_rest(struct shmview_connection *connection, const struct batch *b, size_t first)
{
    int r = 0;
    for (size_t i = first; i < b->n && r == 0; i++)
        r = shmview_attach(connection, b->names[i], b->access, b->flags, &b->segments[i]);
    return r;
}

/* Attaches the segments of a batch. After an error some handles may be complete; the others are
 * NULL. */
static int attach_batch(struct shmview_connection *connection, struct batch *b)
{
    size_t bytes, n = 0;
    CLEANUP_FREE char *text = make_text(b, &bytes);
    int r = text ? make_handles(connection, b) : fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (r) {
        free_handles(b, 0);
        return r;
    }
    int called = connection_call_batch(connection, text, bytes, b->replies, b->n, &n);
    for (size_t i = 0; i < n; i++) {
        r = take_reply(b, i, &b->replies[i], r);
        reply_deinit(&b->replies[i]);
    }
    free_handles(b, n);
    if (r || called != -SHMVIEW_ERR_DISCONNECTED)
        return r ? r : called;
    return attach_rest(connection, b, n);
}

/* --- All ----------------------------------------------------------------- */

static int check(const char *const *names, size_t n, int access, unsigned flags)
{
    for (size_t i = 0; i < n; i++) {
        int r = names[i] ? check_segment_name(names[i])
                         : fail(SHMVIEW_ERR_INVALID, "name %zu is NULL", i);
        if (r)
            return r;
    }
    return wire_access_name(access) && !(flags & ~SHMVIEW_POPULATE)
               ? 0
               : fail(SHMVIEW_ERR_INVALID, "access %d, flags 0x%x", access, flags);
}

int shmview_attach_many(struct shmview_connection *connection, const char *const *names, size_t n,
                        int access, unsigned flags, struct shmview_segment **segments)
{
    for (size_t i = 0; i < n; i++)
        segments[i] = NULL;
    int r = check(names, n, access, flags);
    struct batch *b = r ? NULL : malloc(sizeof *b);
    if (r == 0 && !b)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    NOT_CANCELLED;
    for (size_t done = 0; done < n && r == 0; done += b->n) {
        b->names = names + done;
        b->n = n - done < BATCH_MAX ? n - done : BATCH_MAX;
        b->access = access;
        b->flags = flags;
        b->segments = segments + done;
        r = attach_batch(connection, b);
    }
    free(b);
    for (size_t i = 0; i < n && r; i++)
        if (segments[i])
            segment_close(STEAL(segments[i]));
    return r;
}

int shmview_detach_many(struct shmview_segment **segments, size_t n)
{
    NOT_CANCELLED;
    while (n > 0 && !segments[0]) {
        segments++;
        n--;
    }
    struct shmview_connection *c = n > 0 ? segments[0]->connection : NULL;
    bool together = c && connection_trylock(c);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        r = shmview_detach(segments[i]);
        if (r == 0)
            segments[i] = NULL;
    }
    if (together)
        connection_unlock(c);
    return r;
}
