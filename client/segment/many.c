/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, attaches and detaches many segments, a batch of requests at a time. */
#include <shmview/many.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/error.h"
#include "client/segment/export.h"
#include "common/base/util.h"

struct batch {
    struct shmview_connection *connection;
    const char *const *names;
    const uint64_t *sizes; /* NULL: attaches those that exist */
    size_t n;
    struct wire_create create; /* to create: what is the same for all */
    int access;                /* to attach */
    unsigned flags;
    struct shmview_segment **segments; /* handles: empty, then complete or NULL */
    struct reply replies[BATCH_MAX];
};

/* --- A batch ------------------------------------------------------------- */

/* Returns the text of a request, which is new, or NULL. */
static char *make_one(const struct batch *b, size_t i)
{
    struct wire_create create = b->create;
    if (!b->sizes)
        return wire_attach_text(
            &(struct wire_attach){.name = b->names[i], .access = b->access, .id = WIRE_ABSENT});
    create.name = b->names[i];
    create.size = (int64_t)b->sizes[i];
    return wire_create_text(&create);
}

/* Makes the text of the requests. Returns it and its length, or NULL. */
static char *make_text(const struct batch *b, size_t *ret_bytes)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_bytes);
    bool ok = f;
    for (size_t i = 0; ok && i < b->n; i++) {
        CLEANUP_FREE char *one = make_one(b, i);
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
static int make_handles(const struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (!(b->segments[i] = segment_new(b->connection)))
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

/* Removes a segment if the call has created it, which this client still has attached. */
static void undo_create(const struct batch *b, size_t i)
{
    if (b->sizes)
        segment_undo(b->connection, b->names[i]);
}

/* Completes a handle from its reply, unless an earlier one has failed: then undoes the request, and
 * keeps the text of that error. Returns 0 or an error. */
static int take_reply(const struct batch *b, size_t i, struct reply *reply, int earlier)
{
    const char *reason;
    struct shmview_segment *s = b->segments[i];
    int r = earlier;
    bool refused = reply->wire.error;
    if (r == 0 && refused) {
        int error = wire_error_code(&reply->wire, &reason);
        r = fail(error, "%s", reason);
    } else if (r == 0) {
        r = segment_take(s, reply, b->flags, b->sizes ? b->names[i] : NULL);
        s = NULL;
    } else if (!refused) {
        undo_create(b, i);
        if (reply->held)
            connection_detach(s->connection, reply->held);
    }
    if (r) {
        free(s);
        b->segments[i] = NULL;
    }
    return r;
}

/* Attaches those that had no reply, because the daemon was restarted. */
static int attach_rest(const struct batch *b, size_t first)
{
    int r = 0;
    for (size_t i = first; i < b->n && r == 0; i++)
        r = shmview_attach(b->connection, b->names[i], b->access, b->flags, &b->segments[i]);
    return r;
}

/* Creates the segments of a batch one after the other, because a connection hands over the memory
 * of one segment at a time. Returns 0 or an error. */
static int create_each(const struct batch *b)
{
    int r = 0;
    for (size_t i = 0; i < b->n && r == 0; i++) {
        struct wire_create create = b->create;
        create.name = b->names[i];
        create.size = (int64_t)b->sizes[i];
        r = segment_create(b->connection, &create, b->flags, &b->segments[i]);
    }
    return r;
}

/* Creates or attaches the segments of a batch. After an error some handles may be complete; the
 * others are NULL. */
static int run_batch(struct batch *b)
{
    size_t bytes, n = 0;
    if (b->sizes && b->create.memory == WIRE_MEMORY_CLIENT)
        return create_each(b);
    CLEANUP_FREE char *text = make_text(b, &bytes);
    int r = text ? make_handles(b) : fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (r) {
        free_handles(b, 0);
        return r;
    }
    int called = connection_call_batch(b->connection, text, bytes, b->replies, b->n, &n);
    for (size_t i = 0; i < n; i++) {
        r = take_reply(b, i, &b->replies[i], r);
        reply_deinit(&b->replies[i]);
    }
    free_handles(b, n);
    if (r || b->sizes || called != -SHMVIEW_ERR_DISCONNECTED)
        return r ? r : called;
    return attach_rest(b, n);
}

/* --- All ----------------------------------------------------------------- */

/* Does all of b, of which names, sizes and segments are the first ones, a batch at a time, or
 * nothing. Returns 0 or an error. */
static int run_all(struct batch *b)
{
    const struct batch all = *b;
    size_t done = 0;
    int r = 0;
    NOT_CANCELLED;
    for (; done < all.n && r == 0; done += b->n) {
        b->names = all.names + done;
        b->sizes = all.sizes ? all.sizes + done : NULL;
        b->segments = all.segments + done;
        b->n = all.n - done < BATCH_MAX ? all.n - done : BATCH_MAX;
        r = run_batch(b);
    }
    for (size_t i = 0; i < done && r; i++)
        if (all.segments[i]) {
            undo_create(&all, i);
            segment_close(STEAL(all.segments[i]));
        }
    return r;
}

/* Clears the handles, and checks that there are all names. Returns 0 or an error. */
static int begin(const char *const *names, size_t n, struct shmview_segment **segments)
{
    for (size_t i = 0; i < n; i++)
        segments[i] = NULL;
    for (size_t i = 0; i < n; i++)
        if (!names[i])
            return fail(SHMVIEW_ERR_INVALID, "name %zu is NULL", i);
    return 0;
}

int shmview_attach_many(struct shmview_connection *connection, const char *const *names, size_t n,
                        int access, unsigned flags, struct shmview_segment **segments)
{
    int r = begin(names, n, segments);
    for (size_t i = 0; i < n && r == 0; i++)
        r = check_segment_name(names[i]);
    if (r)
        return r;
    if (!wire_access_name(access) || flags & ~SHMVIEW_POPULATE)
        return fail(SHMVIEW_ERR_INVALID, "access %d, flags 0x%x", access, flags);
    CLEANUP_FREE struct batch *b = malloc(sizeof *b);
    if (!b)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    b->connection = connection;
    b->names = names;
    b->sizes = NULL;
    b->n = n;
    b->access = access;
    b->flags = flags;
    b->segments = segments;
    return run_all(b);
}

int shmview_create_many(struct shmview_connection *connection, const char *const *names,
                        const uint64_t *sizes, size_t n,
                        const struct shmview_create_options *options,
                        struct shmview_segment **segments)
{
    int r = begin(names, n, segments);
    CLEANUP_FREE struct batch *b = r ? NULL : malloc(sizeof *b);
    if (r == 0 && !b)
        r = fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (r == 0)
        r = segment_read_options(options, &b->create, &b->flags);
    if (r)
        return r;
    for (size_t i = 0; i < n && r == 0; i++)
        r = segment_name_create(&b->create, names[i], sizes[i]);
    b->connection = connection;
    b->names = names;
    b->sizes = sizes;
    b->n = n;
    b->segments = segments;
    if (r == 0)
        r = run_all(b);
    free(b->create.grant.acl);
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
        /* the release function of foreign memory may use the connection */
        if (together && segments[i] && !segments[i]->connection) {
            connection_unlock(c);
            together = false;
        }
        r = shmview_detach(segments[i]);
        if (r == 0)
            segments[i] = NULL;
    }
    if (together)
        connection_unlock(c);
    return r;
}
