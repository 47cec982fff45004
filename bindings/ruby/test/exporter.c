/* SPDX-License-Identifier: Apache-2.0 */
/* exporter.c - a class for tests. An object exports the MemoryView that its arguments describe,
 * valid or not. */
#include <ruby.h>

#include <ruby/memory_view.h>
#include <stdlib.h>
#include <string.h>

/* Ruby exports it for extensions, but only its own headers declare it. */
int ruby_thread_has_gvl_p(void);

#define NDIM_MAX 16

struct exporter {
    char *bytes, *format;
    ssize_t n, offset, item_size, ndim;
    ssize_t shape[NDIM_MAX], strides[NDIM_MAX];
    bool has_shape, has_strides;
    long n_out;
};

static long n_out;
static long n_without_gvl; /* releases that were called without the GVL */

static void exporter_free(void *data)
{
    struct exporter *self = data;
    free(self->bytes);
    free(self->format);
    xfree(self);
}

static const rb_data_type_t exporter_type = {
    .wrap_struct_name = "Exporter",
    .function = {.dfree = exporter_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE exporter_alloc(VALUE class)
{
    struct exporter *self;
    return TypedData_Make_Struct(class, struct exporter, &exporter_type, self);
}

static struct exporter *exporter_of(VALUE self)
{
    return rb_check_typeddata(self, &exporter_type);
}

static bool fill(VALUE numbers, ssize_t *ret)
{
    if (NIL_P(numbers))
        return false;
    for (long i = 0; i < RARRAY_LEN(numbers); i++)
        ret[i] = NUM2SSIZET(RARRAY_AREF(numbers, i));
    return true;
}

/* new(bytes, format, item_size, shape, strides, offset = 0) */
static VALUE exporter_initialize(int argc, VALUE *argv, VALUE object)
{
    struct exporter *self = exporter_of(object);
    rb_check_arity(argc, 5, 6);
    Check_Type(argv[0], T_STRING);
    self->n = RSTRING_LEN(argv[0]);
    self->bytes = malloc((size_t)self->n + 1);
    memcpy(self->bytes, RSTRING_PTR(argv[0]), (size_t)self->n);
    self->format = NIL_P(argv[1]) ? NULL : strdup(StringValueCStr(argv[1]));
    self->item_size = NUM2SSIZET(argv[2]);
    self->ndim = NIL_P(argv[3]) ? 1 : RARRAY_LEN(argv[3]);
    self->has_shape = fill(argv[3], self->shape);
    self->has_strides = fill(argv[4], self->strides);
    self->offset = argc > 5 ? NUM2SSIZET(argv[5]) : 0;
    return object;
}

static bool get(VALUE object, rb_memory_view_t *view, int flags)
{
    struct exporter *self = exporter_of(object);
    memset(view, 0, sizeof *view);
    view->obj = object;
    view->data = self->bytes + self->offset;
    view->byte_size = self->n - self->offset;
    view->readonly = !(flags & RUBY_MEMORY_VIEW_WRITABLE);
    view->format = self->format;
    view->item_size = self->item_size;
    view->ndim = self->ndim;
    view->shape = self->has_shape ? self->shape : NULL;
    view->strides = self->has_strides ? self->strides : NULL;
    self->n_out++;
    n_out++;
    return true;
}

static bool release(VALUE object, rb_memory_view_t *view)
{
    (void)view;
    exporter_of(object)->n_out--; /* the consumer has kept the object */
    n_out--;
    n_without_gvl += !ruby_thread_has_gvl_p();
    return true;
}

static bool available(VALUE object)
{
    (void)object;
    return true;
}

/* Returns the number of MemoryViews that are not released. */
static VALUE exporter_s_n_out(VALUE class)
{
    (void)class;
    return LONG2NUM(n_out);
}

/* Returns the number of releases that were called without the GVL. */
static VALUE exporter_s_n_without_gvl(VALUE class)
{
    (void)class;
    return LONG2NUM(n_without_gvl);
}

RUBY_FUNC_EXPORTED void Init_exporter(void);
void Init_exporter(void)
{
    static const rb_memory_view_entry_t entry = {get, release, available};
    VALUE class = rb_define_class("Exporter", rb_cObject);
    rb_define_alloc_func(class, exporter_alloc);
    rb_define_method(class, "initialize", exporter_initialize, -1);
    rb_define_singleton_method(class, "n_out", exporter_s_n_out, 0);
    rb_define_singleton_method(class, "n_without_gvl", exporter_s_n_without_gvl, 0);
    rb_memory_view_register(class, &entry);
}
