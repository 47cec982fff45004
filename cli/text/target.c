/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/target.h"

#include <inttypes.h>
#include <string.h>

#include "cli/shell/suggest.h"
#include "cli/text/bus_error.h"
#include "cli/text/layout_text.h"

#define NOTICE_NS  INT64_C(1000000000) /* after this time the holders are printed */
#define COPY_ALIGN 64                  /* suits every type of element */

/* --- The lock ---------------------------------------------------------------- */

/* Writes the holders of the lock to text, "12 python3, 13 python3". Returns text, or "somebody" if
 * none is known. */
static const char *holders(struct target *t, char *text, size_t bytes)
{
    struct shmview_lock_party parties[64];
    struct shmview_lock_status status;
    size_t n = 0;
    text[0] = '\0';
    if (shmview_lock_query(t->segment, &status, parties, ARRAY_LEN(parties)))
        return "somebody";
    for (size_t i = 0; i < status.n_parties && i < ARRAY_LEN(parties); i++)
        if (parties[i].role == SHMVIEW_HOLDS || parties[i].role == SHMVIEW_HOLDS_SHARED) {
            int more = snprintf(text + n, bytes - n, "%s%" PRIu32 " %.16s", n ? ", " : "",
                                parties[i].pid, parties[i].command);
            n = more > 0 && n + (size_t)more < bytes ? n + (size_t)more : n;
        }
    return text[0] ? text : "somebody";
}

/* Takes the lock, shared for reading. Returns what the library returns. */
static int take(struct target *t, int access, int64_t deadline)
{
    return access == SHMVIEW_WRITE ? shmview_lock_until(t->segment, deadline)
                                   : shmview_lock_shared_until(t->segment, deadline);
}

/* Prints the holders after --timeout. Suggests --no-lock only for reading: writing without the lock
 * would damage what others do. Returns the exit status. */
static int fail_locked(struct target *t)
{
    char who[256];
    warn_text(t->c, "'%s' is locked by %s: give a longer --timeout%s", t->name,
              holders(t, who, sizeof who),
              shmview_access(t->segment) == SHMVIEW_WRITE ? "" : ", or read it with --no-lock");
    return EXIT_TIMED_OUT;
}

static void warn_died(struct target *t)
{
    struct shmview_death death = {0};
    shmview_owner_died(t->segment, &death);
    warn_text(t->c, "'%s': %" PRIu32 " %.16s died while it wrote: the bytes may be half written",
              t->name, death.pid, death.command);
}

/* Takes the lock, first for NOTICE_NS and then, after a message, until the deadline. Returns 0,
 * also if the segment has no lock, or the exit status. */
static int lock(struct target *t, int access)
{
    char who[256];
    const int64_t end =
        t->how->has_timeout ? shmview_deadline(t->how->timeout_ns) : SHMVIEW_FOREVER;
    const int64_t notice = shmview_deadline(NOTICE_NS);
    int r = take(t, access, notice < end ? notice : end);
    if (r == -SHMVIEW_ERR_TIMED_OUT && notice < end) {
        warn_text(t->c, "waiting for the lock of '%s', which %s holds", t->name,
                  holders(t, who, sizeof who));
        r = take(t, access, end);
    }
    if (r == -SHMVIEW_ERR_NO_LOCK)
        return 0; /* the segment was created without a lock */
    if (r == -SHMVIEW_ERR_TIMED_OUT)
        return fail_locked(t);
    if (r < 0)
        return fail_call(t->c, r);
    t->is_locked = true;
    t->owner_died = r == SHMVIEW_OWNER_DIED;
    if (t->owner_died)
        warn_died(t);
    return 0;
}

/* Gets the description, once. Returns 0 or the exit status. */
static int describe(struct target *t)
{
    int r = t->description ? 0 : shmview_describe(t->c->connection, t->name, &t->description);
    return r ? fail_segment(t->c, r, t->name) : 0;
}

/* Prints the views whose names resemble the one that was typed; with their layouts, if the user
 * named a layout. t->description must be set. */
static void suggest_views(const struct target *t)
{
    char typed[SUGGEST_BYTES], name[SUGGEST_BYTES];
    struct suggest s = {.typed = typed};
    const char *colon = t->layout[0] ? ":" : "";
    snprintf(typed, sizeof typed, "%s%s%s", t->layout, colon, t->view);
    for (size_t i = 0; i < t->description->n_layouts; i++) {
        const struct shmview_layout_description *layout = t->description->layouts[i];
        for (size_t k = 0; k < layout->n_views; k++) {
            snprintf(name, sizeof name, "%s%s%s", colon[0] ? layout->name : "", colon,
                     layout->views[k]->name);
            suggest_offer(&s, name);
        }
    }
    suggest_print(&s);
}

/* Requests the layouts before the lock is taken. Requests must not be made under the lock, because
 * other programs would wait for as long as the daemon does not answer. If the user named a layout,
 * opening the view once suffices: the handle then knows it, and later calls need no request. */
static int ask(struct target *t)
{
    struct shmview_view unused;
    shmview_description_free(t->description);
    t->description = NULL;
    if (!t->layout[0])
        return describe(t);
    int r = shmview_view_open(t->segment, t->layout, t->view, &unused);
    int status = r ? fail_call(t->c, r) : 0;
    if (r == -SHMVIEW_ERR_NO_LAYOUT && describe(t) == 0)
        suggest_views(t);
    return status;
}

/* Takes the newest frame if the segment is a stream, and joins no queue for it. A program that
 * writes needs slots of its own, so a stream is refused for writing. Returns 0 or the exit status.
 */
static int take_frame(struct target *t, int access)
{
    char name[TARGET_NAME_BYTES + sizeof t->stage];
    if (!stream_is(t->segment))
        return t->stage[0] ? fail_usage(t->c, "'%s%s': '%s' is no stream, and has no stages",
                                        t->name, t->stage, t->name)
                           : 0;
    if (access == SHMVIEW_WRITE)
        return fail_text(t->c,
                         "'%s' is a stream, and its readers must not see half of a change: publish "
                         "frames with 'shmviewctl replay FILE %s'",
                         t->name, t->name);
    snprintf(name, sizeof name, "%s%s", t->name, t->stage);
    return stream_take_latest(t->c, name, &t->stream, &t->frame);
}

/* Takes the lock and reads the phase. A layout may have been declared and made current after ask();
 * then *ret_is_new is set and the lock given back, because learning its name needs a request.
 * Returns 0 or the exit status. */
static int look(struct target *t, int access, bool *ret_is_new)
{
    int status = t->how->no_lock || t->stream ? 0 : lock(t, access);
    if (status)
        return status;
    if (shmview_phase_read(t->segment, &t->phase))
        t->phase = (struct shmview_phase){0}; /* the segment was created without a lock */
    *ret_is_new = t->phase.generation && !t->phase.name[0];
    if (*ret_is_new)
        target_unlock(t);
    return 0;
}

int target_open(struct target *t, int access)
{
    bool is_new = false;
    int status = attach(t->c, t->name, access, &t->segment);
    if (status)
        return status;
    bus_error_catch();
    status = take_frame(t, access);
    if (status)
        return status;
    do { /* until the handle knows the current layout; usually once */
        int r = is_new ? shmview_phase_get(t->segment, &t->phase) : 0;
        status = r ? fail_call(t->c, r) : ask(t);
        status = status ? status : look(t, access, &is_new);
    } while (status == 0 && is_new);
    return status;
}

bool target_holds(const struct target *t)
{
    return t->is_locked || t->stream;
}

void target_unlock(struct target *t)
{
    shmview_frame_release(&t->frame);
    if (!t->is_locked)
        return;
    /* this program repairs nothing, so the next owner must get the report too */
    int r = t->owner_died ? shmview_unlock_not_repaired(t->segment) : shmview_unlock(t->segment);
    if (r)
        fail_call(t->c, r);
    t->is_locked = false;
}

void target_close(struct target *t)
{
    target_unlock(t);
    shmview_description_free(t->description);
    t->description = NULL;
    while (t->n_copies)
        shmview_detach(t->copies[--t->n_copies]);
    free(t->copies);
    t->copies = NULL;
    shmview_stream_close(t->stream);
    t->stream = NULL;
    shmview_detach(t->segment);
    t->segment = NULL;
}

/* --- The view ---------------------------------------------------------------- */

/* Takes the bytes of the segment, or if the user named a view those of v, as elements that `as`
 * describes. Without lengths there are as many elements as fit. Returns 0 or the exit status. */
static int cast_as(struct target *t, const struct shmview_view_spec *as, struct shmview_view *v)
{
    int r;
    if (t->view[0] && (as->offset || as->strides))
        return fail_usage(t->c,
                          "--as '%s': bytes are counted from the beginning of a segment, and '%s' "
                          "names a view: give a format and lengths",
                          t->how->as, target_text(t));
    if (t->view[0])
        r = shmview_view_recast(v, as->format, v);
    else if (as->ndim == 0)
        r = shmview_view_cast(t->segment, as->format, as->offset, SHMVIEW_REST, v);
    else
        r = shmview_view_make(t->segment, as, v);
    if (r == 0 && t->view[0] && as->ndim)
        r = shmview_view_reshape(v, as->ndim, as->shape, v);
    return r ? fail_call(t->c, r) : 0;
}

/* Applies --as to *v. Its syntax is that of a view in a layout, so a layout of one view is parsed.
 * Returns 0 or the exit status. */
static int cast(struct target *t, struct shmview_view *v)
{
    struct layout_text layout = {.n = 0};
    CLEANUP_FREE char *text = NULL;
    if (asprintf(&text, "--as: as=%s", t->how->as) < 0)
        return fail_memory(t->c);
    int status = layout_text_parse(t->c, text, &layout);
    if (status == 0 && layout.n != 1)
        status = fail_usage(t->c, "--as '%s': this is more than one view", t->how->as);
    if (status == 0)
        status = cast_as(t, &layout.specs[0], v);
    layout_text_deinit(&layout);
    return status;
}

/* Refuses a view whose layout is not the current one. Returns the exit status. */
static int fail_stale(struct target *t, const char *layout, const char *view)
{
    return fail_text(
        t->c,
        "view '%s' is of layout '%s', but '%s' is in phase '%s' now, whose views use "
        "the same bytes: wait with 'shmviewctl wait %s --phase %s', or take it as it is "
        "with --any-phase",
        view, layout, t->name, t->phase.name, t->name, layout);
}

int target_layout(struct target *t, const struct shmview_layout_description **ret)
{
    const struct shmview_layout_description *found = NULL;
    int status = describe(t);
    if (status)
        return status;
    for (size_t i = 0; i < t->description->n_layouts; i++)
        if (t->phase.generation == 0 ||
            strcmp(t->description->layouts[i]->name, t->phase.name) == 0)
            found = t->description->layouts[i];
    if (t->phase.generation == 0 && t->description->n_layouts > 1)
        found = NULL;
    *ret = found;
    return 0;
}

int target_open_view(struct target *t, const char *layout, const char *view,
                     struct shmview_view *ret_view)
{
    bool of_frame = t->stream && strcmp(layout, STREAM_LAYOUT) == 0;
    int r = of_frame ? shmview_frame_view(&t->frame, view, ret_view)
                     : shmview_view_open(t->segment, layout, view, ret_view);
    if (r)
        return fail_call(t->c, r);
    if (shmview_view_is_stale(ret_view) && !t->how->any_phase)
        return fail_stale(t, layout, view);
    return 0;
}

static bool has_view(const struct shmview_layout_description *layout, const char *view)
{
    for (size_t i = 0; i < layout->n_views; i++)
        if (strcmp(layout->views[i]->name, view) == 0)
            return true;
    return false;
}

/* Writes "float:A, float:B, int:D": all views, or those called `view`. Returns their number. */
static size_t list_views(const struct target *t, const char *view, char *text, size_t bytes)
{
    size_t count = 0, n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < t->description->n_layouts; i++) {
        const struct shmview_layout_description *layout = t->description->layouts[i];
        for (size_t k = 0; k < layout->n_views; k++) {
            if (view && strcmp(layout->views[k]->name, view) != 0)
                continue;
            int more = snprintf(text + n, bytes - n, "%s%s:%s", count++ ? ", " : "", layout->name,
                                layout->views[k]->name);
            n = more > 0 && n + (size_t)more < bytes ? n + (size_t)more : n;
        }
    }
    return count;
}

/* Finds the layout that has t->view, if the user named none. The current layout comes first. If
 * only another layout has the view, it is found too, and target_open_view() prints why it is
 * refused. Two of them are an error, because either could be meant. Returns 0 or the exit status.
 */
static int find_layout(struct target *t, const char **ret)
{
    char text[512];
    const struct shmview_layout_description *found = NULL;
    int status = describe(t);
    if (status)
        return status;
    for (size_t i = 0; i < t->description->n_layouts; i++) {
        const struct shmview_layout_description *layout = t->description->layouts[i];
        bool is_current = t->phase.generation && strcmp(layout->name, t->phase.name) == 0;
        if (has_view(layout, t->view) && (!found || is_current))
            found = layout;
    }
    if (!found) {
        list_views(t, NULL, text, sizeof text);
        warn_text(t->c, "'%s' has no view '%s'; it has %s: 'shmviewctl show %s' shows more",
                  t->name, t->view, text[0] ? text : "none", t->name);
        suggest_views(t);
        return EXIT_NOT_FOUND;
    }
    *ret = found->name;
    if (t->phase.generation && strcmp(found->name, t->phase.name) == 0)
        return 0;
    if (list_views(t, t->view, text, sizeof text) > 1)
        return fail_text(t->c, "'%s' has more than one view '%s': name one of %s", t->name, t->view,
                         text);
    return 0;
}

void target_flatten(struct shmview_view *v)
{
    while (v->format[0] == '(' && shmview_view_field(v, NULL, v) == 0)
        ;
}

int target_view(struct target *t, struct shmview_view *ret_view)
{
    struct problem problem;
    struct shmview_view v;
    int status = 0;
    const char *layout = t->layout;
    if (t->view[0] && !layout[0])
        status = find_layout(t, &layout);
    if (status)
        return status;
    int r = 0;
    snprintf(t->found, sizeof t->found, "%s", layout);
    if (t->view[0])
        status = target_open_view(t, layout, t->view, &v);
    else if (!t->how->as)
        r = shmview_view_cast(t->segment, "B", 0, SHMVIEW_REST, &v);
    if (r)
        status = fail_call(t->c, r);
    if (status == 0 && t->how->as)
        status = cast(t, &v);
    if (status == 0)
        target_flatten(&v);
    if (status == 0 && slice_apply(&t->slice, &v, &v, &problem))
        status = fail_text(t->c, "%s: %s", target_text(t), problem.text);
    if (status == 0)
        *ret_view = v;
    return status;
}

/* Makes *ret a view of `memory` and copies the elements of view there. A view without gaps keeps
 * its order, C or Fortran, and is copied as one run of bytes; any other gets C order. Returns 0 or
 * a negated SHMVIEW_ERR_*. */
static int copy_to(struct shmview_segment *memory, const struct shmview_view *view,
                   struct shmview_view *ret)
{
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM];
    const bool is_fortran = !shmview_is_contiguous(view) && shmview_view_is_contiguous(view, 'F');
    const struct shmview_view_spec spec = {
        .format = view->format, .ndim = view->ndim, .shape = shape, .strides = strides};
    for (uint32_t d = 0; d < view->ndim; d++)
        shape[d] = view->shape[d];
    int r =
        shmview_fill_strides(view->ndim, shape, view->itemsize, is_fortran ? 'F' : 'C', strides);
    r = r ? r : shmview_view_make(memory, &spec, ret);
    if (r)
        return r;
    if (is_fortran || shmview_is_contiguous(view)) {
        memcpy(ret->data, view->data, view->nbytes);
        return 0;
    }
    memset(ret->data, 0, view->nbytes); /* padding within elements is not copied */
    return shmview_copy(ret, view);
}

int target_copy(struct target *t, struct shmview_view *view)
{
    struct shmview_segment **copies =
        realloc(t->copies, (t->n_copies + 1) * sizeof(struct shmview_segment *));
    if (!copies)
        return fail_memory(t->c);
    t->copies = copies;
    void *memory = aligned_alloc(COPY_ALIGN, (view->nbytes / COPY_ALIGN + 1) * COPY_ALIGN);
    if (!memory)
        return fail_memory(t->c);
    int r = shmview_wrap(memory, view->nbytes, 0, free, memory, &copies[t->n_copies]);
    if (r) {
        free(memory);
        return fail_call(t->c, r);
    }
    struct shmview_view copy;
    r = copy_to(copies[t->n_copies++], view, &copy);
    if (r)
        return fail_call(t->c, r);
    *view = copy;
    return 0;
}
