/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a segment: cast from its bytes, or opened from its layouts.
 *
 * libshmview wants C strings and C arrays. Converting an argument can run Ruby code that changes
 * another argument, so every text is copied or frozen, and every number converted, before the
 * segment is looked at. */
#include <string.h>

#include "view.h"

/* --- Arguments ----------------------------------------------------------- */

/* Names of numpy and classes of Ruby, as the bindings for Python have them; libshmview has the
 * other names. */
static const char *basic_format(const char *s)
{
    static const char *const names[][2] = {
        {"float", "d"},    {"double", "d"},  {"single", "f"}, {"int", "l"},      {"uint", "L"},
        {"complex", "Zd"}, {"Integer", "q"}, {"Float", "d"},  {"Complex", "Zd"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(s, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* A short name of numpy is a letter and digits ("f4"), which no format of PEP 3118 is. It gets the
 * mark of this machine's byte order, by which libshmview recognises a typestr ("<f4"). Every other
 * text goes to libshmview as it is. */
VALUE format_text(VALUE format)
{
    VALUE text = rb_String(format);
    const char *s = StringValueCStr(text);
    size_t n = strlen(s);
    if (n < 2 || !((s[0] >= 'a' && s[0] <= 'z') || (s[0] >= 'A' && s[0] <= 'Z')))
        return text;
    if (strspn(s + 1, "0123456789") != n - 1) {
        const char *basic = basic_format(s);
        return basic ? rb_utf8_str_new_cstr(basic) : text;
    }
    bool is_byte = strcmp(s + 1, "1") == 0 || s[0] == 'S';
    return rb_sprintf("%s%s",
                      is_byte                                     ? "|"
                      : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "<"
                                                                  : ">",
                      s);
}

uint32_t parse_numbers(const char *what, VALUE numbers, int64_t *ret)
{
    VALUE array = rb_Array(numbers);
    long n = RARRAY_LEN(array);
    if (n > SHMVIEW_MAX_NDIM)
        rb_raise(rb_eArgError, "%s: %ld dimensions, the limit is %d", what, n, SHMVIEW_MAX_NDIM);
    for (long i = 0; i < n && i < RARRAY_LEN(array); i++)
        ret[i] = NUM2LL(rb_ary_entry(array, i));
    return (uint32_t)n;
}

/* The description of one view, with the numbers that spec points to. describe() fills all but the
 * texts. */
struct description {
    struct shmview_view_spec spec;
    long name_at, format_at; /* of a view in a layout: where keep_text() put the two texts */
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM], suboffsets[SHMVIEW_MAX_NDIM];
};

/* Converts the arguments. Raises ArgumentError, TypeError, RangeError. */
static void describe(struct description *d, VALUE offset, VALUE shape, VALUE strides,
                     VALUE suboffsets, VALUE readonly)
{
    if (RTEST(rb_funcall(rb_Integer(offset), '<', 1, INT2FIX(0))))
        rb_raise(rb_eArgError, "offset is a byte of the segment, not %+" PRIsVALUE, offset);
    d->spec.offset = NUM2ULL(offset);
    d->spec.ndim = parse_numbers("shape", shape, d->shape);
    d->spec.shape = d->shape;
    d->spec.flags = RTEST(readonly) ? SHMVIEW_VIEW_READ_ONLY : 0;
    uint32_t n = d->spec.ndim;
    if ((!NIL_P(strides) && parse_numbers("strides", strides, d->strides) != n) ||
        (!NIL_P(suboffsets) && parse_numbers("suboffsets", suboffsets, d->suboffsets) != n))
        rb_raise(rb_eArgError,
                 "strides and suboffsets need a shape, and are as many as its lengths");
    d->spec.strides = NIL_P(strides) ? NULL : d->strides;
    d->spec.suboffsets = NIL_P(suboffsets) ? NULL : d->suboffsets;
}

/* --- Casts --------------------------------------------------------------- */

/* _cast(format, shape, offset, strides, suboffsets, readonly): Segment#cast without defaults. */
static VALUE segment_cast(VALUE self, VALUE format, VALUE shape, VALUE offset, VALUE strides,
                          VALUE suboffsets, VALUE readonly)
{
    VALUE text = format_text(format);
    struct description d = {.spec = {.format = StringValueCStr(text)}};
    struct shmview_view v;
    bool rest = NIL_P(shape) && NIL_P(strides) && NIL_P(suboffsets);
    describe(&d, offset, NIL_P(shape) ? rb_ary_new() : shape, strides, suboffsets, readonly);
    struct shmview_segment *handle = segment_use(self)->handle;
    int r = rest ? shmview_view_cast(handle, d.spec.format, d.spec.offset, SHMVIEW_REST, &v)
                 : shmview_view_make(handle, &d.spec, &v);
    if (r)
        raise_error(r, fact("format", text));
    v.flags |= d.spec.flags;
    RB_GC_GUARD(text);
    return view_new(self, &v);
}

/* --- Layouts ------------------------------------------------------------- */

/* The arguments and results of one call; each of the three functions below uses some of them. */
struct layout_call {
    struct shmview_segment *handle;
    const char *layout, *name;
    const struct shmview_view_spec *specs;
    size_t n;
    struct shmview_view v;
    struct shmview_phase phase;
    int r;
};

static int open_view(void *arg)
{
    struct layout_call *c = arg;
    return c->r = shmview_view_open(c->handle, c->layout, c->name, &c->v);
}
static int get_phase(void *arg)
{
    struct layout_call *c = arg;
    return c->r = shmview_phase_get(c->handle, &c->phase);
}
static int define(void *arg)
{
    struct layout_call *c = arg;
    return c->r = shmview_define(c->handle, c->layout, c->specs, c->n);
}

/* Makes the call without the GVL, because it may wait for the daemon. Raises the exceptions of
 * interrupts; the result is in c->r and *told. */
static void make_call(VALUE self, int (*call)(void *), struct layout_call *c, struct told *told)
{
    c->handle = segment_use(self)->handle;
    int state = call_unlocked(self, call, c, told);
    if (state)
        rb_jump_tag(state);
}

/* Returns the current layout. If no phase has begun, returns the only layout that was declared
 * through this object and has a view of that name. Raises NoLayout if there is not exactly one. */
static VALUE choose_layout(VALUE self, VALUE name)
{
    struct layout_call c = {0};
    struct told told;
    make_call(self, get_phase, &c, &told);
    if (c.r && c.r != -SHMVIEW_ERR_NO_LOCK)
        raise_told(&told, Qnil);
    if (c.r == 0 && c.phase.generation)
        return rb_utf8_str_new_cstr(c.phase.name);
    VALUE known = segment_of(self)->layouts;
    VALUE names = NIL_P(known) ? Qnil : rb_hash_aref(known, name);
    if (NIL_P(names) || RARRAY_LEN(names) != 1)
        raise_text_with(
            SHMVIEW_ERR_NO_LAYOUT, fact("view", name),
            "no phase is current, so the layout must be named: view(\"%s\", layout: ...)",
            StringValueCStr(name));
    return RARRAY_AREF(names, 0);
}

/*
 * call-seq: view(name, layout: nil)
 *
 * Opens the View called +name+ of +layout+. nil is the current layout; before the first phase it is
 * the only layout declared through this object that has such a view. The view belongs to the
 * current phase, and raises StaleView at each use after that. Blocks for one round trip if the
 * layout is new to this object. Raises NoLayout, Closed, Disconnected.
 */
static VALUE segment_view(int argc, VALUE *argv, VALUE self)
{
    const ID keywords[] = {id_layout};
    VALUE name, options = Qnil, layout;
    rb_scan_args(argc, argv, "1:", &name, &options);
    rb_get_kwargs(options, keywords, 0, 1, &layout);
    name = name_of(name);
    layout = layout == Qundef || NIL_P(layout) ? choose_layout(self, name) : name_of(layout);
    struct layout_call c = {.layout = StringValueCStr(layout), .name = StringValueCStr(name)};
    struct told told;
    make_call(self, open_view, &c, &told);
    if (c.r) {
        VALUE facts = fact("layout", layout);
        rb_hash_aset(facts, ID2SYM(rb_intern("view")), name);
        raise_told(&told, facts);
    }
    RB_GC_GUARD(name);
    RB_GC_GUARD(layout);
    return view_new(self, &c.v);
}

/*
 * call-seq: segment["A"]
 *
 * Returns view("A").
 */
static VALUE segment_aref(VALUE self, VALUE name)
{
    return segment_view(1, &name, self);
}

/* The entries of one view in the argument of _define, as layouts.rb orders them. */
enum {
    NAME,
    FORMAT,
    OFFSET,
    SHAPE,
    STRIDES,
    SUBOFFSETS,
    READONLY
};

/* Appends a copy of text, with its NUL, to texts, a String that no other code sees. Returns its
 * offset, because a pointer would become invalid when texts grows. */
static long keep_text(VALUE texts, VALUE text)
{
    long at = RSTRING_LEN(texts);
    const char *s = StringValueCStr(text);
    rb_str_cat(texts, s, (long)strlen(s) + 1);
    return at;
}

void view_specs_begin(VALUE views, struct view_specs *ret)
{
    Check_Type(views, T_ARRAY);
    long n = RARRAY_LEN(views);
    struct description *all = rb_alloc_tmp_buffer(&ret->room, (n + 1) * (long)sizeof *all);
    ret->specs = rb_alloc_tmp_buffer(&ret->specs_room, (n + 1) * (long)sizeof *ret->specs);
    ret->n = (size_t)n;
    ret->texts = rb_str_buf_new(0);
    for (long i = 0; i < n; i++) {
        VALUE view = RARRAY_AREF(views, i);
        memset(&all[i], 0, sizeof all[i]);
        all[i].name_at = keep_text(ret->texts, RARRAY_AREF(view, NAME));
        all[i].format_at = keep_text(ret->texts, format_text(RARRAY_AREF(view, FORMAT)));
        describe(&all[i], RARRAY_AREF(view, OFFSET), RARRAY_AREF(view, SHAPE),
                 RARRAY_AREF(view, STRIDES), RARRAY_AREF(view, SUBOFFSETS),
                 RARRAY_AREF(view, READONLY));
    }
    for (long i = 0; i < n; i++) {
        ret->specs[i] = all[i].spec;
        ret->specs[i].name = RSTRING_PTR(ret->texts) + all[i].name_at;
        ret->specs[i].format = RSTRING_PTR(ret->texts) + all[i].format_at;
    }
}

void view_specs_end(struct view_specs *specs)
{
    rb_free_tmp_buffer(&specs->specs_room);
    rb_free_tmp_buffer(&specs->room);
    RB_GC_GUARD(specs->texts);
}

/* _define(layout, views): declares one layout, by call_unrepeated(), because a repeated request
 * would find the layout of the first one. views are as view_specs_begin() takes them. */
static VALUE segment_define(VALUE self, VALUE layout, VALUE views)
{
    struct view_specs specs;
    view_specs_begin(views, &specs);
    struct segment *segment = segment_use(self);
    struct layout_call c = {segment->handle, StringValueCStr(layout), .specs = specs.specs,
                            .n = specs.n};
    struct told told;
    int state = call_unrepeated(self, define, &c, &told);
    if (state)
        rb_jump_tag(state);
    if (c.r)
        raise_told(&told, fact("layout", layout));
    view_specs_end(&specs);
    RB_GC_GUARD(views);
    RB_GC_GUARD(layout);
    return self;
}

/* --- Formats ------------------------------------------------------------- */

/* Returns one component as a Hash. */

static VALUE component_value(const struct shmview_component *c)
{
    static const char *const keys[] = {"name", "offset", "itemsize", "repeat", "depth", "shape"};
    VALUE hash = rb_hash_new(), shape = rb_ary_new();
    for (uint32_t d = 0; d < c->ndim; d++)
        rb_ary_push(shape, UINT2NUM(c->shape[d]));
    VALUE values[] = {c->name[0] ? rb_utf8_str_new_cstr(c->name) : Qnil,
                      UINT2NUM(c->offset),
                      UINT2NUM(c->itemsize),
                      UINT2NUM(c->repeat),
                      UINT2NUM(c->depth),
                      shape};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        rb_hash_aset(hash, ID2SYM(rb_intern(keys[i])), values[i]);
    return hash;
}

/* Core.format(text): returns [canonical text, itemsize, align, components, whether an element is an
 * Array in Ruby]. layouts.rb needs them to place views that have no offset. Raises FormatError. */
static VALUE core_format(VALUE module, VALUE format)
{
    (void)module;
    VALUE text = format_text(format), room, list_room;
    const char *s = StringValueCStr(text);
    struct shmview_format *parsed = rb_alloc_tmp_buffer(&room, (long)sizeof *parsed);
    int r = shmview_format_parse(s, parsed, NULL, 0);
    if (r) {
        VALUE facts = fact("format", text);
        rb_hash_aset(facts, ID2SYM(rb_intern("at")), UINT2NUM(parsed->error_at));
        raise_error(r, facts);
    }
    uint32_t n = parsed->n_components;
    struct shmview_component *list =
        rb_alloc_tmp_buffer(&list_room, (long)((n + 1) * sizeof *list));
    r = shmview_format_parse(s, parsed, list, n);
    if (r)
        raise_error(r, Qnil);
    VALUE components = rb_ary_new();
    for (uint32_t i = 0; i < n; i++)
        rb_ary_push(components, component_value(&list[i]));
    VALUE told = rb_ary_new_from_args(5, rb_utf8_str_new_cstr(parsed->text),
                                      UINT2NUM(parsed->itemsize), UINT2NUM(parsed->align),
                                      components, truth(parsed->dtype == SHMVIEW_STRUCT));
    rb_free_tmp_buffer(&list_room);
    rb_free_tmp_buffer(&room);
    RB_GC_GUARD(text);
    return told;
}

void Init_segment_view(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cSegment = rb_define_class_under(mShmview, "Segment", rb_cObject);
#endif
    rb_define_private_method(cSegment, "_cast", segment_cast, 6);
    rb_define_private_method(cSegment, "_define", segment_define, 2);
    rb_define_method(cSegment, "view", segment_view, -1);
    rb_define_method(cSegment, "[]", segment_aref, 1);
    rb_define_module_function(rb_path2class("Shmview::Core"), "format", core_format, 1);
}
