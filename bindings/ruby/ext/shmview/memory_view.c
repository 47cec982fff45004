/* SPDX-License-Identifier: Apache-2.0 */
/* Views and segments as exporters of MemoryViews.
 *
 * A consumer gets a buffer of libshmview, which keeps the memory mapped until the consumer releases
 * it. At the end of the process that can be after the View was freed. So all that the release needs
 * is in a struct export outside of Ruby's memory. */
#include "memory_view.h"

#include <stdlib.h>
#include <string.h>

/* One MemoryView that a consumer has. Its private_data points here; release() frees it. */
struct export
{
    struct shmview_buffer buffer;
    struct link *link; /* keeps the connection until the release; NULL: foreign memory */
    char *format;      /* malloc() */
};

static void export_free(struct export *e)
{
    if (!e)
        return;
    shmview_buffer_release(&e->buffer);
    link_drop(e->link);
    free(e->format);
    free(e);
}

/* --- What the consumer can handle ---------------------------------------- */

/* Returns whether all bits of wish are set. The flags of MemoryView include each other: STRIDES has
 * the bits of MULTI_DIMENSIONAL. */
static bool asks(int flags, int wish)
{
    return (flags & wish) == wish;
}

/* Returns whether a consumer with these flags can use the view. The flags state which members it
 * can handle. A consumer without flags for dimensions, such as Fiddle, reads all members. */
static bool fits(const struct shmview_view *v, int flags)
{
    bool row_major = shmview_view_is_contiguous(v, 'C');
    bool is_indirect = v->flags & SHMVIEW_VIEW_INDIRECT;
    int order = flags & RUBY_MEMORY_VIEW_ANY_CONTIGUOUS;
    if (asks(order, RUBY_MEMORY_VIEW_ANY_CONTIGUOUS))
        return shmview_view_is_contiguous(v, 'A');
    if (asks(order, RUBY_MEMORY_VIEW_ROW_MAJOR))
        return row_major;
    if (asks(order, RUBY_MEMORY_VIEW_COLUMN_MAJOR))
        return shmview_view_is_contiguous(v, 'F');
    if (asks(flags, RUBY_MEMORY_VIEW_INDIRECT))
        return true;
    if (asks(flags, RUBY_MEMORY_VIEW_STRIDES))
        return !is_indirect;
    if (asks(flags, RUBY_MEMORY_VIEW_MULTI_DIMENSIONAL))
        return row_major;
    /* rb_memory_view_get_item_pointer() of Ruby 3.1 ignores the sub-offset if ndim is 1 */
    return !(is_indirect && v->ndim == 1);
}

/* Returns how many bytes a consumer may use from data on: to the end of the last element, or of the
 * last pointer to a row. Elements before data (negative strides) do not count. */
static ssize_t reach(const struct shmview_buffer *b)
{
    ssize_t bytes = (ssize_t)b->itemsize;
    for (uint32_t d = 0; d < b->ndim; d++) {
        if (b->shape[d] == 0)
            return 0;
        if (b->strides[d] > 0)
            bytes += (b->shape[d] - 1) * b->strides[d];
        if (b->suboffsets && b->suboffsets[d] >= 0)
            return bytes - (ssize_t)b->itemsize + (ssize_t)sizeof(void *);
    }
    return bytes;
}

/* --- Exporting and releasing --------------------------------------------- */

/* Returns a new export, which the caller owes export_free(), or NULL. Does not raise, because Ruby
 * expects a result. */
static struct export *export_new(const struct segment *seg, const struct shmview_view *v)
{
    struct export *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->format = ruby_format(v->format);
    if (!e->format ||
        shmview_buffer_get(v, SHMVIEW_BUFFER_INDIRECT | SHMVIEW_BUFFER_FORMAT, &e->buffer)) {
        free(e->format);
        free(e);
        return NULL;
    }
    if (seg->link)
        e->link = link_take(seg->link);
    return e;
}

/* Fills item_desc, which Ruby frees when the consumer releases the MemoryView. */
static VALUE fill_components(VALUE arg)
{
    rb_memory_view_prepare_item_desc((rb_memory_view_t *)arg);
    return Qnil;
}

/* Fills *ret for a consumer. Returns false if the view does not fit the flags or memory is short.
 */
static bool get(VALUE self, const struct segment *seg, const struct shmview_view *v,
                rb_memory_view_t *ret, int flags)
{
    bool readonly = is_read_only(seg, v) || RB_OBJ_FROZEN(self);
    if ((readonly && asks(flags, RUBY_MEMORY_VIEW_WRITABLE)) || !fits(v, flags))
        return false;
    struct export *e = export_new(seg, v);
    if (!e)
        return false;
    *ret = (rb_memory_view_t){
        .obj = self,
        .data = e->buffer.buf,
        .byte_size = reach(&e->buffer),
        .readonly = readonly,
        .format = e->format,
        .item_size = (ssize_t)e->buffer.itemsize,
        .ndim = (ssize_t)e->buffer.ndim,
        .shape = e->buffer.shape,
        .strides = e->buffer.strides,
        .sub_offsets = e->buffer.suboffsets,
        .private_data = e,
    };
    int state; /* not 0 only if memory is short */
    rb_protect(fill_components, (VALUE)ret, &state);
    if (state == 0 && ret->item_desc.components)
        return true;
    if (state)
        rb_set_errinfo(Qnil);
    export_free(e);
    return false;
}

static bool release(VALUE self, rb_memory_view_t *view)
{
    (void)self;
    export_free(view->private_data);
    view->private_data = NULL;
    return true;
}

static bool is_usable(const struct view *view)
{
    return view->seg && view->seg->handle && !shmview_view_is_stale(&view->v);
}

static bool view_available(VALUE self)
{
    return is_usable(view_of(self));
}
static bool view_get(VALUE self, rb_memory_view_t *ret, int flags)
{
    struct view *view = view_of(self);
    return is_usable(view) && get(self, view->seg, &view->v, ret, flags);
}

/* A segment exports its bytes, like a view of "B". */
static bool segment_available(VALUE self)
{
    return segment_of(self)->handle;
}
static bool segment_get(VALUE self, rb_memory_view_t *ret, int flags)
{
    const struct segment *seg = segment_of(self);
    struct shmview_view v;
    return seg->handle && shmview_view_cast(seg->handle, "B", 0, SHMVIEW_REST, &v) == 0 &&
           get(self, seg, &v, ret, flags);
}

void Init_memory_view(void)
{
    static const rb_memory_view_entry_t views = {view_get, release, view_available};
    static const rb_memory_view_entry_t segments = {segment_get, release, segment_available};
    rb_memory_view_register(cView, &views);
    rb_memory_view_register(cSegment, &segments);
}
