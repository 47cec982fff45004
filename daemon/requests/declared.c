/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/declared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/memory/object_write.h"
#include "daemon/requests/creation.h"
#include "daemon/requests/departure.h"
#include "daemon/requests/state.h"
#include "daemon/segments/charge.h"

/* Logs how an existing segment differs from its declaration. */
__attribute__((format(printf, 2, 3))) static void differs(const struct config_segment *want,
                                                          const char *format, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    log_warning("segment '%s' is left as it is: %s:%u declares it otherwise: %s", want->name,
                want->file, want->line, text);
}

/* Whether the segment has a layout with this name. Logs a difference. text is the canonical form of
 * the declared layout, n bytes with the NUL. Segments keep layouts in that form too, so equal
 * layouts have equal bytes. */
static bool has_layout(const struct segment *segment, const struct config_segment *want,
                       const char *name, const char *text, size_t n)
{
    const struct layout *has = layouts_find(&segment->layouts, name);
    size_t n_own;
    const char *own = has ? layouts_text_of(&segment->layouts, has, &n_own) : NULL;
    if (own && (n_own != n - 1 || memcmp(own, text, n_own) != 0))
        differs(want, "layout '%s'", name);
    return has;
}

/* Adds a layout. No quota can refuse it, because the administrator has declared it. */
static int add_layout(struct segment *segment, const char *name, const char *text, size_t n)
{
    charge_declared_layout(segment, n);
    int r = segment_add_layout(segment, name, text, n);
    if (r < 0)
        quota_refund(segment->payer, QUOTA_LAYOUT_BYTES, n);
    return r;
}

static void add_layouts(struct segment *segment, const struct config_segment *want)
{
    for (size_t i = 0; i < want->n_layouts; i++) {
        const struct wire_layout *layout = &want->layouts[i];
        size_t n = 0;
        CLEANUP_FREE char *text = wire_layout_text(layout, &n);
        if (text && has_layout(segment, want, layout->name, text, n))
            continue;
        if (segment->layouts.n == LIMIT_LAYOUTS) {
            differs(want, "layout '%s' is missing; the segment has %d, which is the limit",
                    layout->name, LIMIT_LAYOUTS);
            continue;
        }
        int r = text ? add_layout(segment, layout->name, text, n) : -ENOMEM;
        if (r < 0)
            log_error("layout '%s' of segment '%s' cannot be added: %s", layout->name,
                      segment->name, strerror(-r));
    }
}

/* --- Streams ------------------------------------------------------------- */

/* The bytes of a header that a plan decides, and that never change. */
#define PLAN_BYTES offsetof(struct shmview_stream_header, pad0)

/* Whether these are the first bytes of a stream that nobody could open: all are 0, or those of the
 * plan but for the magic number. */
static bool is_unfinished(const struct shmview_stream_header *has,
                          const struct shmview_stream_header *plan)
{
    struct shmview_stream_header begun = *plan;
    static const struct shmview_stream_header none;
    begun.magic = 0;
    return memcmp(has, &none, sizeof none) == 0 || memcmp(has, &begun, sizeof begun) == 0;
}

/* Writes the first bytes of a stream, and its magic number last, because with that number clients
 * believe the rest. */
static int write_header(int fd, const struct shmview_stream_header *plan)
{
    const size_t first = sizeof plan->magic;
    int r = object_write(fd, (const char *)plan + first, sizeof *plan - first, first);
    return r ? r : object_write(fd, &plan->magic, sizeof plan->magic, 0);
}

/* Makes a stream of the segment, unless it is one. Logs errors and differences. */
static void make_stream(struct segment *segment, const struct config_segment *want)
{
    const struct shmview_stream_header *plan = &want->stream;
    struct shmview_stream_header has;
    struct object object;
    segment_object(segment, DATA, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDWR);
    int r = fd < 0 ? fd : 0;
    if (r == 0) {
        ssize_t n = pread(fd, &has, sizeof has, 0);
        r = n < 0 ? -errno : n == sizeof has ? 0 : -EIO;
    }
    if (r == 0 && memcmp(&has, plan, PLAN_BYTES) == 0)
        return;
    if (r == 0 && !is_unfinished(&has, plan)) {
        differs(want, has.magic == plan->magic ? "another stream" : "a stream");
        return;
    }
    if (r == 0)
        r = write_header(fd, plan);
    if (r)
        log_error("the stream of segment '%s' cannot be written: %s", want->name, strerror(-r));
}

void declared_complete(struct segment *segment, const struct config_segment *want)
{
    add_layouts(segment, want);
    if (want->is_stream && segment->lock)
        make_stream(segment, want);
}

/* Whether the segment was created with the declared wish for huge pages and nodes. */
static bool is_placed_as(const struct segment *s, const struct config_segment *want)
{
    static const struct placement none;
    const struct placement *p = s->placement ? s->placement : &none;
    return p->huge == want->huge && p->numa == want->numa &&
           (want->numa != SHMVIEW_NUMA_NODE || p->node == want->node);
}

/* Logs each difference between a segment and its declaration, and adds missing layouts. */
static void compare(struct segment *s, const struct config_segment *want)
{
    if (s->size != want->size) {
        /* the views of the declared layouts were checked against the declared size, not this one */
        differs(want, "%" PRIu64 " bytes, not %" PRIu64, want->size, s->size);
        return;
    }
    if (s->lock != want->lock)
        differs(want, want->lock ? "with a lock" : "without a lock");
    if (want->backing && s->sealed != (want->backing == SHMVIEW_BACKING_SEALED))
        differs(want, "backing %s, not %s", wire_backing_name(want->backing),
                wire_backing_name(s->sealed ? SHMVIEW_BACKING_SEALED : SHMVIEW_BACKING_FILE));
    if (!is_placed_as(s, want))
        differs(want, "another placement (huge, numa)");
    if (s->lifetime != want->lifetime)
        differs(want, "lifetime %s, not %s", wire_lifetime_name(want->lifetime),
                wire_lifetime_name(s->lifetime));
    if (s->access->uid != want->access.uid)
        differs(want, "owner %u, not %u", want->access.uid, s->access->uid);
    if (s->access->gid != want->access.gid)
        differs(want, "group %u, not %u", want->access.gid, s->access->gid);
    if (s->access->mode != want->access.mode)
        differs(want, "mode 0%03o, not 0%03o", want->access.mode, s->access->mode);
    if (!access_same_entries(s->access, &want->access))
        differs(want, "another acl");
    if (strcmp(segment_label(s), want->label ? want->label : "") != 0)
        differs(want, "another label");
    declared_complete(s, want);
}

void declared_done(struct state *state)
{
    if (--state->declared.n_pending == 0)
        state->declared.done(state);
}

void declared_start(struct state *state)
{
    const struct config *config = state->config;
    state->declared.n_pending = 1; /* for this loop, so that done() is not called before its end */
    for (size_t i = 0; i < config->n_segments; i++) {
        const struct config_segment *want = &config->segments[i];
        /* a dead client's segment of that name may be waiting for its removal */
        struct segment *s = departure_settle(state, registry_find(&state->registry, want->name));
        if (!s || !s->named)
            creation_declare(state, want);
        else if (!s->allocated)
            log_warning("segment '%s', declared at %s:%u, is being created by a client", want->name,
                        want->file, want->line);
        else
            compare(s, want);
    }
    declared_done(state);
}
