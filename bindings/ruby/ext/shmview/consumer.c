/* SPDX-License-Identifier: Apache-2.0 */
/* Shmview::MemoryView: a consumer of MemoryViews, with the functions of ruby/memory_view.h as
 * methods. The functions of Ruby 3.1 do not check their arguments, so the methods do: a wrong index
 * raises an error and does not read foreign memory. */
#include "memory_view.h"

#include <string.h>

static VALUE cMemoryView;

struct consumer {
    VALUE object;    /* the exporter, kept alive by this reference; nil: released */
    struct got *got; /* owned; NULL: new was not called yet */
};

/* Not movable: the MemoryView refers to the object too, and init_as_byte_array() to the bytes of a
 * String, which are in its slot if it is short. */
static void consumer_mark(void *data)
{
    rb_gc_mark(((struct consumer *)data)->object);
}
static void consumer_free(void *data)
{
    struct consumer *self = data;
    if (self->got)
        got_free(self->got);
    xfree(self);
}
static size_t consumer_size(const void *data)
{
    const struct consumer *self = data;
    return sizeof *self + (self->got ? sizeof *self->got : 0);
}

/* Without RUBY_TYPED_FREE_IMMEDIATELY, because releasing calls the class of the exporter, whose
 * code must not run inside the collector. */
static const rb_data_type_t consumer_type = {
    .wrap_struct_name = "Shmview::MemoryView",
    .function =
        {
            .dmark = consumer_mark,
            .dfree = consumer_free,
            .dsize = consumer_size,
        },
    .flags = RUBY_TYPED_WB_PROTECTED,
};

static VALUE consumer_alloc(VALUE class)
{
    struct consumer *consumer;
    VALUE self = TypedData_Make_Struct(class, struct consumer, &consumer_type, consumer);
    consumer->object = Qnil;
    return self;
}

static struct consumer *consumer_of(VALUE self)
{
    return rb_check_typeddata(self, &consumer_type);
}

/* Returns the MemoryView. Raises Closed after release. */
static rb_memory_view_t *use(VALUE self)
{
    struct consumer *consumer = consumer_of(self);
    if (!consumer->got || NIL_P(consumer->got->view.obj))
        raise_closed("the MemoryView");
    return &consumer->got->view;
}

/* --- Obtaining and releasing --------------------------------------------- */

/*
 * call-seq: new(object, flags = 0)
 *
 * Obtains the MemoryView of +object+. +flags+ states which members the caller can handle: SIMPLE,
 * WRITABLE, FORMAT, MULTI_DIMENSIONAL, STRIDES, ROW_MAJOR, COLUMN_MAJOR, ANY_CONTIGUOUS, INDIRECT,
 * or-ed. A view of Shmview also gives all members to a caller that asks for no dimensions, because
 * Fiddle does so and uses them. The caller owes release; otherwise the collector does it. Until
 * then the memory stays mapped. Raises NotContiguous if the object exports no MemoryView, or none
 * that fits.
 */
static VALUE consumer_initialize(int argc, VALUE *argv, VALUE self)
{
    struct consumer *consumer = consumer_of(self);
    VALUE object, flags = Qnil;
    rb_scan_args(argc, argv, "11", &object, &flags);
    if (consumer->got)
        rb_raise(rb_eTypeError, "the MemoryView was got already");
    struct got *got = got_get(object, NIL_P(flags) ? 0 : NUM2INT(flags));
    if (!got)
        raise_text(SHMVIEW_ERR_CONTIGUOUS,
                   "a %s exports no MemoryView that fits these flags; ask for other ones",
                   rb_obj_classname(object));
    consumer->got = got;
    RB_OBJ_WRITE(self, &consumer->object, object);
    return self;
}

/* Releases the MemoryView. Does nothing if it was released before. Returns nil. */
static VALUE consumer_release(VALUE self)
{
    struct consumer *consumer = consumer_of(self);
    if (consumer->got)
        got_release(consumer->got);
    RB_OBJ_WRITE(self, &consumer->object, Qnil);
    return Qnil;
}

/*
 * call-seq: available?(object)
 *
 * Returns whether the class of the object exports MemoryViews and the object can export one now.
 * new can still fail. Like rb_memory_view_available_p(), but safe for a BasicObject.
 */
static VALUE consumer_s_available(VALUE class, VALUE object)
{
    (void)class;
    return truth(got_is_available(object));
}

/*
 * call-seq: init_as_byte_array(string)
 *
 * Returns a read-only MemoryView of the bytes of a String, with one dimension, by
 * rb_memory_view_init_as_byte_array(). Later changes of the String do not affect it.
 */
static VALUE consumer_s_init_as_byte_array(VALUE class, VALUE string)
{
    VALUE self = consumer_alloc(class), bytes = rb_str_new_frozen(StringValue(string));
    struct consumer *consumer = consumer_of(self);
    consumer->got = got_new();
    RB_OBJ_WRITE(self, &consumer->object, bytes);
    rb_memory_view_init_as_byte_array(&consumer->got->view, bytes, RSTRING_PTR(bytes),
                                      RSTRING_LEN(bytes), true);
    return self;
}

/* --- Its members --------------------------------------------------------- */

/* Returns the object that exports the memory; nil after release. */
static VALUE consumer_obj(VALUE self)
{
    return consumer_of(self)->object;
}
/* Returns the address of element [0, ..., 0], or of the pointer to it. Raises Closed, like all
 * methods below. */
static VALUE consumer_data(VALUE self)
{
    return ULL2NUM((uintptr_t)use(self)->data);
}
/* Returns how many bytes there are from data on. */
static VALUE consumer_byte_size(VALUE self)
{
    return SSIZET2NUM(use(self)->byte_size);
}
/* Returns whether the memory must not be written. */
static VALUE consumer_is_readonly(VALUE self)
{
    return truth(use(self)->readonly);
}
/* Returns the format of an element, in the letters of Array#pack; nil: unsigned bytes. */
static VALUE consumer_format(VALUE self)
{
    const char *format = use(self)->format;
    return format ? rb_utf8_str_new_cstr(format) : Qnil;
}
/* Returns the bytes of an element. */
static VALUE consumer_item_size(VALUE self)
{
    return SSIZET2NUM(use(self)->item_size);
}
/* Returns the number of dimensions. */
static VALUE consumer_ndim(VALUE self)
{
    return SSIZET2NUM(use(self)->ndim);
}

static VALUE numbers_or_nil(const ssize_t *numbers, ssize_t n)
{
    if (!numbers)
        return Qnil;
    VALUE array = rb_ary_new();
    for (ssize_t d = 0; d < n; d++)
        rb_ary_push(array, SSIZET2NUM(numbers[d]));
    return array;
}
/* Returns the length of each dimension, in elements; nil: one dimension of byte_size / item_size.
 */
static VALUE consumer_shape(VALUE self)
{
    const rb_memory_view_t *view = use(self);
    return numbers_or_nil(view->shape, view->ndim);
}
/* Returns the bytes from one element to the next in each dimension; nil: row-major without gaps. */
static VALUE consumer_strides(VALUE self)
{
    const rb_memory_view_t *view = use(self);
    return numbers_or_nil(view->strides, view->ndim);
}
/* Returns for each dimension that leads to pointers the bytes to add to the pointer, and -1 for
 * every other one; nil if no dimension does. */
static VALUE consumer_sub_offsets(VALUE self)
{
    const rb_memory_view_t *view = use(self);
    return numbers_or_nil(view->sub_offsets, view->ndim);
}

static VALUE component_of(const rb_memory_view_item_component_t *c)
{
    static const char *const keys[] = {"format", "native_size", "little_endian",
                                       "offset", "size",        "repeat"};
    VALUE values[] = {
        rb_utf8_str_new(&c->format, 1), truth(c->native_size_p), truth(c->little_endian_p),
        SIZET2NUM(c->offset),           SIZET2NUM(c->size),      SIZET2NUM(c->repeat)};
    VALUE hash = rb_hash_new();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        rb_hash_aset(hash, ID2SYM(rb_intern(keys[i])), values[i]);
    return hash;
}

/*
 * Returns the parts of an element, an Array of Hashes with format, native_size, little_endian,
 * offset, size (bytes) and repeat; nil if the exporter left them out: see prepare_item_desc.
 */
static VALUE consumer_item_desc(VALUE self)
{
    const rb_memory_view_t *view = use(self);
    if (!view->item_desc.components)
        return Qnil;
    VALUE array = rb_ary_new();
    for (size_t i = 0; i < view->item_desc.length; i++)
        rb_ary_push(array, component_of(&view->item_desc.components[i]));
    return array;
}

/*
 * Fills item_desc from the format and returns it, by rb_memory_view_prepare_item_desc(). Returns
 * nil without a format. Raises RuntimeError for a format that Ruby does not know.
 */
static VALUE consumer_prepare_item_desc(VALUE self)
{
    rb_memory_view_prepare_item_desc(use(self));
    return consumer_item_desc(self);
}

/* --- Elements ------------------------------------------------------------ */

#define NDIM_MAX 64

/* Returns the address of an element, and checks the indices, which Ruby does not. */
static void *locate(VALUE self, int argc, const VALUE *argv, ssize_t *indices)
{
    if (argc > NDIM_MAX)
        raise_text(SHMVIEW_ERR_LIMIT, "%d indices, the limit is %d", argc, NDIM_MAX);
    for (int d = 0; d < argc; d++)
        indices[d] = NUM2SSIZET(argv[d]); /* may run Ruby code, so before use() */
    rb_memory_view_t *view = use(self);
    if (argc != view->ndim)
        raise_text(SHMVIEW_ERR_BOUNDS, "%d indices, the MemoryView has %zd dimensions", argc,
                   view->ndim);
    for (int d = 0; d < argc; d++) {
        ssize_t n = got_length(view, d), i = indices[d];
        indices[d] = i < 0 ? i + n : i;
        if (indices[d] < 0 || indices[d] >= n)
            raise_text(SHMVIEW_ERR_BOUNDS, "index %zd of dimension %d, which has length %zd", i, d,
                       n);
    }
    char *p = rb_memory_view_get_item_pointer(view, indices);
    if (view->ndim == 1 && view->sub_offsets && view->sub_offsets[0] >= 0)
        p = *(char **)(void *)p + view->sub_offsets[0]; /* Ruby 3.1 omits this step */
    return p;
}

/*
 * call-seq: item_pointer(i, j, ...)
 *
 * Returns the address of an element, by rb_memory_view_get_item_pointer(). Indices below 0 count
 * from the end. Raises Bounds, Limit, Closed.
 */
static VALUE consumer_item_pointer(int argc, VALUE *argv, VALUE self)
{
    ssize_t indices[NDIM_MAX];
    return ULL2NUM((uintptr_t)locate(self, argc, argv, indices));
}

/*
 * call-seq:
 *   item(i, j, ...)
 *   memory_view[i, j, ...]
 *
 * Returns an element as rb_memory_view_get_item() makes it: an Integer or Float, or an Array if it
 * has several parts. Indices below 0 count from the end. Raises Bounds, Limit, Closed, RuntimeError
 * for a format that Ruby does not know.
 */
static VALUE consumer_item(int argc, VALUE *argv, VALUE self)
{
    ssize_t indices[NDIM_MAX];
    const unsigned char *p = locate(self, argc, argv, indices);
    rb_memory_view_t *view = use(self);
    if (!view->format)
        return INT2FIX(*p);
    rb_memory_view_prepare_item_desc(view);
    return rb_memory_view_extract_item_members(p, view->item_desc.components,
                                               view->item_desc.length);
}

/* --- Contiguity ---------------------------------------------------------- */

/* Calls a function of Ruby on a copy with shape and strides filled in, because Ruby 3.1 reads both
 * even if they are NULL. */
static VALUE ask(VALUE self, bool (*call)(const rb_memory_view_t *))
{
    rb_memory_view_t view = *use(self);
    ssize_t shape[NDIM_MAX], strides[NDIM_MAX];
    if (view.ndim > NDIM_MAX)
        return Qfalse;
    for (ssize_t d = 0; d < view.ndim; d++)
        shape[d] = got_length(&view, d);
    got_strides(&view, strides);
    view.shape = shape;
    view.strides = strides;
    return truth(call(&view));
}

/* Returns whether the elements lie without gaps, and the last index varies fastest, by
 * rb_memory_view_is_row_major_contiguous(). */
static VALUE consumer_is_row_major(VALUE self)
{
    return ask(self, rb_memory_view_is_row_major_contiguous);
}
/* Like row_major?, but the first index varies fastest. */
static VALUE consumer_is_column_major(VALUE self)
{
    return ask(self, rb_memory_view_is_column_major_contiguous);
}
/* Returns whether row_major? or column_major? is true, by rb_memory_view_is_contiguous(). */
static VALUE consumer_is_contiguous(VALUE self)
{
    return ask(self, rb_memory_view_is_contiguous);
}

/* --- Functions ----------------------------------------------------------- */

/*
 * call-seq: item_size_from_format(format)
 *
 * Returns the bytes of an element of a format, by rb_memory_view_item_size_from_format(). Raises
 * FormatError; error[:at] is the index of the character at which the format is wrong.
 */
static VALUE consumer_s_item_size(VALUE class, VALUE format)
{
    (void)class;
    const char *text = StringValueCStr(format), *error = NULL;
    ssize_t size = rb_memory_view_item_size_from_format(text, &error);
    if (size < 0) {
        VALUE facts = fact("format", format);
        ssize_t at = error ? error - text : 0;
        rb_hash_aset(facts, ID2SYM(rb_intern("at")), SSIZET2NUM(at));
        raise_text_with(SHMVIEW_ERR_FORMAT, facts,
                        "'%s': no format of MemoryView from character %zd on", text, at);
    }
    return SSIZET2NUM(size);
}

/*
 * call-seq: fill_contiguous_strides(shape, item_size, row_major: true)
 *
 * Returns the strides, in bytes, of an array of this shape without gaps, by
 * rb_memory_view_fill_contiguous_strides(). The last index varies fastest, or the first one if
 * +row_major+ is false. Raises Overflow, Limit.
 */
static VALUE consumer_s_fill_strides(int argc, VALUE *argv, VALUE class)
{
    const ID keywords[] = {id_row_major};
    VALUE lengths, item_size, options = Qnil, row_major;
    ssize_t shape[NDIM_MAX], strides[NDIM_MAX], bytes;
    (void)class;
    rb_scan_args(argc, argv, "2:", &lengths, &item_size, &options);
    rb_get_kwargs(options, keywords, 0, 1, &row_major);
    VALUE array = rb_ary_dup(rb_Array(lengths));
    long n = RARRAY_LEN(array);
    if (n > NDIM_MAX)
        raise_text(SHMVIEW_ERR_LIMIT, "%ld dimensions, the limit is %d", n, NDIM_MAX);
    bytes = NUM2SSIZET(item_size);
    if (bytes < 0)
        rb_raise(rb_eArgError, "item_size is a number of bytes, not %zd", bytes);
    ssize_t step = bytes;
    for (long d = 0; d < n; d++) {
        shape[d] = NUM2SSIZET(rb_ary_entry(array, d));
        if (shape[d] < 0)
            rb_raise(rb_eArgError, "a length is 0 or more, not %zd", shape[d]);
        if (__builtin_mul_overflow(step, shape[d] ? shape[d] : 1, &step))
            raise_text(SHMVIEW_ERR_OVERFLOW, "the size of the array overflows in dimension %ld", d);
    }
    rb_memory_view_fill_contiguous_strides(n, bytes, shape, row_major == Qundef || RTEST(row_major),
                                           strides);
    return numbers_or_nil(strides, n);
}

static void define_flags(void)
{
    static const struct {
        const char *name;
        int value;
    } flags[] = {
        {"SIMPLE", RUBY_MEMORY_VIEW_SIMPLE},
        {"WRITABLE", RUBY_MEMORY_VIEW_WRITABLE},
        {"FORMAT", RUBY_MEMORY_VIEW_FORMAT},
        {"MULTI_DIMENSIONAL", RUBY_MEMORY_VIEW_MULTI_DIMENSIONAL},
        {"STRIDES", RUBY_MEMORY_VIEW_STRIDES},
        {"ROW_MAJOR", RUBY_MEMORY_VIEW_ROW_MAJOR},
        {"COLUMN_MAJOR", RUBY_MEMORY_VIEW_COLUMN_MAJOR},
        {"ANY_CONTIGUOUS", RUBY_MEMORY_VIEW_ANY_CONTIGUOUS},
        {"INDIRECT", RUBY_MEMORY_VIEW_INDIRECT},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        rb_define_const(cMemoryView, flags[i].name, INT2FIX(flags[i].value));
}

void Init_consumer(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
#endif
    /*
     * Document-class: Shmview::MemoryView
     *
     * The MemoryView that an object of any class exports, member by member, and the functions of
     * ruby/memory_view.h as methods. Useful for tests, for teaching, and to pass an address to a C
     * function.
     */
    cMemoryView = rb_define_class_under(mShmview, "MemoryView", rb_cObject);
    define_flags();
    rb_define_alloc_func(cMemoryView, consumer_alloc);
    rb_undef_method(cMemoryView, "initialize_copy");
    rb_define_singleton_method(cMemoryView, "available?", consumer_s_available, 1);
    rb_define_singleton_method(cMemoryView, "init_as_byte_array", consumer_s_init_as_byte_array, 1);
    rb_define_singleton_method(cMemoryView, "item_size_from_format", consumer_s_item_size, 1);
    rb_define_singleton_method(cMemoryView, "fill_contiguous_strides", consumer_s_fill_strides, -1);
    rb_define_method(cMemoryView, "initialize", consumer_initialize, -1);
    rb_define_method(cMemoryView, "release", consumer_release, 0);
    rb_define_method(cMemoryView, "obj", consumer_obj, 0);
    rb_define_method(cMemoryView, "data", consumer_data, 0);
    rb_define_method(cMemoryView, "byte_size", consumer_byte_size, 0);
    rb_define_method(cMemoryView, "readonly?", consumer_is_readonly, 0);
    rb_define_method(cMemoryView, "format", consumer_format, 0);
    rb_define_method(cMemoryView, "item_size", consumer_item_size, 0);
    rb_define_method(cMemoryView, "ndim", consumer_ndim, 0);
    rb_define_method(cMemoryView, "shape", consumer_shape, 0);
    rb_define_method(cMemoryView, "strides", consumer_strides, 0);
    rb_define_method(cMemoryView, "sub_offsets", consumer_sub_offsets, 0);
    rb_define_method(cMemoryView, "item_desc", consumer_item_desc, 0);
    rb_define_method(cMemoryView, "prepare_item_desc", consumer_prepare_item_desc, 0);
    rb_define_method(cMemoryView, "item_pointer", consumer_item_pointer, -1);
    rb_define_method(cMemoryView, "item", consumer_item, -1);
    rb_define_method(cMemoryView, "[]", consumer_item, -1);
    rb_define_method(cMemoryView, "row_major?", consumer_is_row_major, 0);
    rb_define_method(cMemoryView, "column_major?", consumer_is_column_major, 0);
    rb_define_method(cMemoryView, "contiguous?", consumer_is_contiguous, 0);
}
