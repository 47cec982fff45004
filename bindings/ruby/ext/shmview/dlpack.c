/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of DLPack, by their addresses. Ruby has no object that stands for a tensor, so a program
 * gets addresses from a library that it calls through Fiddle, or from another extension.
 *
 * A tensor belongs to one owner at a time, and the owner must call its deleter once.
 * shmview_dlpack_import() makes a segment that does so when it is detached. A second segment around
 * the same memory belongs to the Ruby object, because its end runs through struct got, which also
 * ends it before Ruby frees its objects: the deleter may be a Fiddle::Closure. */
#include "memory_view.h"

static bool is_versioned(VALUE options)
{
    VALUE versioned;
    rb_get_kwargs(options, &id_versioned, 0, 1, &versioned);
    return versioned == Qundef || RTEST(versioned);
}

/* One call of from_dlpack(). rb_ensure() frees got if anything raises before a segment owns it. */
struct importing {
    VALUE tensor;
    void *address;
    bool versioned;
    struct got *got;
};

/* Makes the view of handle that shows the elements of *from, which shows the same memory. */
static int view_again(struct shmview_segment *handle, const struct shmview_view *from,
                      const unsigned char *first, struct shmview_view *ret)
{
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM];
    for (uint32_t d = 0; d < from->ndim; d++) {
        shape[d] = from->shape[d];
        strides[d] = from->strides[d];
    }
    struct shmview_view_spec spec = {
        .format = from->format,
        .offset = (uint64_t)(from->data - first),
        .ndim = from->ndim,
        .shape = shape,
        .strides = strides,
    };
    return shmview_view_make(handle, &spec, ret);
}

static VALUE import(VALUE arg)
{
    struct importing *i = (struct importing *)arg;
    struct shmview_view theirs, v;
    VALUE self = segment_wrap(NULL, i->tensor);
    struct segment *segment = segment_of(self);
    struct got *got = i->got = got_new();
    int r = i->versioned ? shmview_dlpack_import_versioned(i->address, &got->tensor, &theirs)
                         : shmview_dlpack_import(i->address, &got->tensor, &theirs);
    if (r)
        raise_error(r, Qnil);
    unsigned char *first = shmview_data(got->tensor);
    r = shmview_wrap(first, shmview_size(got->tensor),
                     theirs.flags & SHMVIEW_VIEW_READ_ONLY ? SHMVIEW_WRAP_READ_ONLY : 0,
                     got_give_back, got, &segment->handle);
    if (r)
        raise_error(r, Qnil);
    i->got = NULL;
    got_belongs(got, segment);
    r = view_again(segment->handle, &theirs, first, &v);
    if (r)
        raise_error(r, Qnil);
    return view_new(self, &v);
}

static VALUE end_import(VALUE arg)
{
    struct importing *i = (struct importing *)arg;
    if (i->got)
        got_free(i->got);
    return Qnil;
}

/*
 * call-seq: Shmview.from_dlpack(tensor, versioned: true) -> View
 *
 * Returns a View of the memory of a tensor of DLPack, without a copy. +tensor+ is the address of a
 * DLManagedTensorVersioned, or of a DLManagedTensor with <tt>versioned: false</tt>: an Integer, or
 * an object with to_int, such as a Fiddle::Pointer. The address is used as it is, so a wrong one
 * can end the process.
 *
 * Takes over the tensor: its deleter is called once, when view.segment is closed or collected and
 * no consumer has its memory any longer, or at the end of the process. It is called with the GVL
 * held. If an error is raised, the tensor still belongs to the caller, except after NoMemory.
 *
 * Raises ConversionError (another device than the CPU, or a type that has no format), Invalid (a
 * member is wrong), Unsupported (another version than 1), Misaligned, Overflow, NoMemory,
 * TypeError, ArgumentError (the address 0).
 */
static VALUE shmview_s_from_dlpack(int argc, VALUE *argv, VALUE module)
{
    VALUE tensor, options = Qnil;
    (void)module;
    rb_scan_args(argc, argv, "1:", &tensor, &options);
    struct importing i = {.tensor = tensor, .versioned = is_versioned(options)};
    i.address = (void *)(uintptr_t)NUM2ULL(rb_to_int(tensor));
    if (!i.address)
        rb_raise(rb_eArgError, "a tensor is not at the address 0");
    return rb_ensure(import, (VALUE)&i, end_import, (VALUE)&i);
}

/*
 * call-seq: to_dlpack(versioned: true) -> Integer
 *
 * Returns the address of a new tensor of DLPack that shows the elements, without a copy: of a
 * DLManagedTensorVersioned, or of a DLManagedTensor with <tt>versioned: false</tt>. The caller owns
 * the tensor, or the library that the caller passes it to; the owner must call its deleter once, on
 * any thread. Until then the segment cannot be closed (Busy), and stays mapped. The MemoryView of
 * Shmview.wrap is released with the GVL held. If a thread that Ruby does not know calls the
 * deleter, this happens when the next MemoryView is obtained, or at the end of the process.
 *
 * Raises ConversionError (DLPack has no such type: structs, strings, the other byte order),
 * NotContiguous (strides that are no whole number of elements, suboffsets), ReadOnly (a read-only
 * view needs the versioned form), NoMemory, StaleView, Closed.
 */
static VALUE view_to_dlpack(int argc, VALUE *argv, VALUE self)
{
    VALUE options = Qnil;
    struct DLManagedTensor *plain;
    struct DLManagedTensorVersioned *versioned;
    rb_scan_args(argc, argv, "0:", &options);
    bool with_version = is_versioned(options);
    const struct view *view = view_use(self);
    struct shmview_view v = view->v;
    if (RB_OBJ_FROZEN(self) || is_read_only(view->seg, &v))
        v.flags |= SHMVIEW_VIEW_READ_ONLY;
    int r = with_version ? shmview_dlpack_export_versioned(&v, &versioned)
                         : shmview_dlpack_export(&v, &plain);
    if (r)
        raise_error(r, Qnil);
    return ULL2NUM(with_version ? (uintptr_t)versioned : (uintptr_t)plain);
}

void Init_dlpack(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cView = rb_define_class_under(mShmview, "View", rb_cObject);
#endif
    rb_define_singleton_method(mShmview, "from_dlpack", shmview_s_from_dlpack, -1);
    rb_define_method(cView, "to_dlpack", view_to_dlpack, -1);
}
