/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon knows about a segment: its layouts, for Segment#layouts and Shmview.attach_array.
 */
#include "facts.h"

#include <shmview/describe.h>

/* One request. The caller frees description. */
struct asking {
    struct shmview_connection *connection;
    const char *name;
    const struct shmview_description *description;
    int r;
};

static int describe(void *arg)
{
    struct asking *a = arg;
    a->description = NULL; /* a forked child calls again: then it is that of its parent */
    return a->r = shmview_describe(a->connection, a->name, &a->description);
}

static VALUE numbers_of(const int64_t *numbers, uint32_t n)
{
    VALUE array = rb_ary_new_capa(n);
    for (uint32_t d = 0; d < n; d++)
        rb_ary_push(array, LL2NUM(numbers[d]));
    return array;
}

static void put(VALUE hash, const char *key, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(key)), value);
}

/* Returns a view in the form that Segment#define takes. */
static VALUE build_view(const struct shmview_view_description *v)
{
    VALUE view = rb_hash_new();
    put(view, "format", rb_utf8_str_new_cstr(v->format));
    put(view, "shape", numbers_of(v->shape, v->ndim));
    put(view, "offset", ULL2NUM(v->offset));
    put(view, "strides", numbers_of(v->strides, v->ndim));
    if (v->suboffsets)
        put(view, "suboffsets", numbers_of(v->suboffsets, v->ndim));
    put(view, "readonly", truth(v->flags & SHMVIEW_VIEW_READ_ONLY));
    return view;
}

static VALUE build_layouts(VALUE arg)
{
    const struct shmview_description *d = ((struct asking *)arg)->description;
    VALUE layouts = rb_hash_new();
    for (size_t i = 0; i < d->n_layouts; i++) {
        const struct shmview_layout_description *layout = d->layouts[i];
        VALUE views = rb_hash_new();
        for (size_t k = 0; k < layout->n_views; k++)
            rb_hash_aset(views, rb_utf8_str_new_cstr(layout->views[k]->name),
                         build_view(layout->views[k]));
        rb_hash_aset(layouts, rb_utf8_str_new_cstr(layout->name), views);
    }
    return layouts;
}

/* Returns [mode, owner, group, entries]; an entry is [kind, id, right]. */
static VALUE build_access(VALUE arg)
{
    const struct shmview_description *d = ((struct asking *)arg)->description;
    VALUE entries = rb_ary_new();
    for (size_t i = 0; i < d->n_entries; i++) {
        const struct shmview_entry_description *e = d->entries[i];
        rb_ary_push(entries,
                    rb_ary_new_from_args(3, UINT2NUM(e->kind), LL2NUM(e->id), access_of(e->right)));
    }
    return rb_ary_new_from_args(4, LL2NUM(d->mode), LL2NUM(d->owner), LL2NUM(d->group), entries);
}

static VALUE free_description(VALUE arg)
{
    shmview_description_free(((struct asking *)arg)->description);
    return Qnil;
}

/* Asks the daemon and returns what build makes of the description. Raises the errors and interrupts
 * of the request. */
static VALUE ask(VALUE name, VALUE connection, VALUE (*build)(VALUE asking))
{
    name = name_of(name);
    connection = connection_value(connection);
    struct asking a = {
        .connection = connection_use(connection)->handle,
        .name = StringValueCStr(name),
    };
    struct told told;
    int state = call_unlocked(connection, describe, &a, &told);
    RB_GC_GUARD(name);
    if (state) {
        shmview_description_free(a.description);
        rb_jump_tag(state);
    }
    if (a.r)
        raise_told(&told, fact("name", name));
    return rb_ensure(build, (VALUE)&a, free_description, (VALUE)&a);
}

/* Core.layouts(name, connection): returns the Hash of Segment#layouts. */
static VALUE core_layouts(VALUE module, VALUE name, VALUE connection)
{
    (void)module;
    return ask(name, connection, build_layouts);
}

/* Core.access(name, connection): returns [mode, owner, group, entries]. */
static VALUE core_access(VALUE module, VALUE name, VALUE connection)
{
    (void)module;
    return ask(name, connection, build_access);
}

void Init_describe(void)
{
    VALUE core = rb_path2class("Shmview::Core");
    rb_define_module_function(core, "layouts", core_layouts, 2);
    rb_define_module_function(core, "access", core_access, 2);
}
