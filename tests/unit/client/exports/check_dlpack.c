/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack, the producer's side: which views can be exported, the members of the tensor by its
 * header, the way back, and deleters that run exactly once. */
#include "client/exports/dlpack.h"

#include <pthread.h>

#include "unit/unit.h"

#include "client/views/handle.h"
#include "unit/faults.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define I64(...)                                                                                   \
    (int64_t[])                                                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static _Alignas(64) unsigned char memory[1024];
static struct shmview_segment *seg;
static int n_released;

static void count_release(void *arg)
{
    ck_assert_ptr_eq(arg, memory);
    n_released++;
}

static void begin(unsigned flags)
{
    n_released = 0;
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (unsigned char)(i * 7);
    ck_assert_int_eq(shmview_wrap(memory, sizeof memory, flags, count_release, memory, &seg), 0);
}

static void end(void)
{
    ck_assert_int_eq(shmview_detach(seg), 0);
    ck_assert_int_eq(n_released, 1);
}

static void good(int r)
{
    ck_assert_msg(r == 0, "%d: %s", r, shmview_error_text());
}

static void refused(int r, int error, const char *part)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

static struct shmview_view make(const char *format, uint64_t offset, uint32_t ndim,
                                const int64_t *shape, const int64_t *strides)
{
    struct shmview_view v;
    good(shmview_view_make(
        seg,
        &(struct shmview_view_spec){
            .format = format, .offset = offset, .ndim = ndim, .shape = shape, .strides = strides},
        &v));
    return v;
}

static void same(const int64_t *a, const int64_t *b, size_t bytes)
{
    ck_assert_mem_eq(a, b, bytes);
}

/* --- Types --------------------------------------------------------------- */

/* Codes and bits of DLPack 1.1. */
static const struct {
    const char *format;
    uint8_t code, bits;
} types[] = {
    {"int8", 0, 8},
    {"int16", 0, 16},
    {"int32", 0, 32},
    {"int64", 0, 64},
    {"uint8", 1, 8},
    {"uint16", 1, 16},
    {"uint32", 1, 32},
    {"uint64", 1, 64},
    {"float16", 2, 16},
    {"float32", 2, 32},
    {"float64", 2, 64},
    {"bfloat16", 4, 16},
    {"complex64", 5, 64},
    {"complex128", 5, 128},
    {"bool", 6, 8},
    {"float8_e3m4", 7, 8},
    {"float8_e4m3", 8, 8},
    {"float8_e4m3b11fnuz", 9, 8},
    {"float8_e4m3fn", 10, 8},
    {"float8_e4m3fnuz", 11, 8},
    {"float8_e5m2", 12, 8},
    {"float8_e5m2fnuz", 13, 8},
    {"float8_e8m0fnu", 14, 8},
};

/* Exports and imports a view; the bytes must be unchanged. */
static void there_and_back(const char *format, uint8_t code, uint8_t bits)
{
    struct DLManagedTensor *t;
    struct shmview_segment *s;
    struct shmview_view back, v = make(format, 64, 2, I64(3, 5), NULL);
    good(shmview_dlpack_export(&v, &t));
    ck_assert_int_eq(t->tensor.type.code, code);
    ck_assert_int_eq(t->tensor.type.bits, bits);
    ck_assert_int_eq(t->tensor.type.lanes, 1);
    good(shmview_dlpack_import(t, &s, &back));
    ck_assert_uint_eq(back.dtype, v.dtype);
    ck_assert_str_eq(back.format, v.format);
    ck_assert_ptr_eq(back.data, v.data);
    ck_assert_ptr_eq(back.segment, s);
    ck_assert_uint_eq(back.nbytes, v.nbytes);
    ck_assert_uint_eq(back.flags, 0);
    ck_assert_mem_eq(back.shape, v.shape, sizeof v.shape);
    ck_assert_mem_eq(back.strides, v.strides, sizeof v.strides);
    ck_assert_uint_eq(shmview_size(s), v.nbytes);
    refused(shmview_detach(seg), SHMVIEW_ERR_BUSY, "1 buffers");
    good(shmview_detach(s)); /* deletes the tensor */
    ck_assert_uint_eq(seg->n_buffers, 0);
}

START_TEST(every_type_there_and_back)
{
    begin(0);
    for (size_t i = 0; i < COUNT(types); i++)
        there_and_back(types[i].format, types[i].code, types[i].bits);
    end();
}
END_TEST

START_TEST(types_that_dlpack_has_not)
{
    static const char *const formats[] = {
        ">i", "<i", ">f", "g", "P", "c", "5s", "5p", "T{i:a:f:b:}", "(3)f",
    };
    const uint16_t one = 1;
    struct DLManagedTensor *t = NULL;
    struct DLManagedTensorVersioned *versioned = NULL;
    begin(0);
    for (size_t i = 0; i < COUNT(formats); i++) {
        if (formats[i][0] == (*(const char *)&one ? '<' : '>'))
            continue; /* the byte order of this machine */
        struct shmview_view v = make(formats[i], 0, 0, NULL, NULL);
        refused(shmview_dlpack_export(&v, &t), SHMVIEW_ERR_CONVERSION, v.format);
        refused(shmview_dlpack_export_versioned(&v, &versioned), SHMVIEW_ERR_CONVERSION, "DLPack");
    }
    ck_assert(!t && !versioned);
    ck_assert_uint_eq(seg->n_buffers, 0);
    end();
}
END_TEST

/* --- Exporting ----------------------------------------------------------- */

START_TEST(members_of_a_tensor)
{
    struct DLManagedTensor *t;
    struct DLManagedTensorVersioned *w;
    begin(0);
    struct shmview_view v = make("h", 100, 3, I64(2, 3, 4), I64(-48, 0, 6));
    good(shmview_dlpack_export(&v, &t));
    ck_assert_ptr_eq(t->tensor.data, memory + 100);
    ck_assert_int_eq(t->tensor.device_type, 1);
    ck_assert_int_eq(t->tensor.device_id, 0);
    ck_assert_int_eq(t->tensor.ndim, 3);
    ck_assert_uint_eq(t->tensor.byte_offset, 0);
    same(t->tensor.shape, I64(2, 3, 4), 24);
    same(t->tensor.strides, I64(-24, 0, 3), 24);
    good(shmview_dlpack_export_versioned(&v, &w));
    ck_assert_uint_eq(w->major, 1);
    ck_assert_uint_eq(w->flags, 0);
    ck_assert_ptr_eq(w->tensor.data, memory + 100);
    same(w->tensor.shape, I64(2, 3, 4), 24);
    same(w->tensor.strides, I64(-24, 0, 3), 24);
    refused(shmview_detach(seg), SHMVIEW_ERR_BUSY, "2 buffers");
    t->deleter(t);
    w->deleter(w);
    v = make("d", 0, 2, I64(0, 3), NULL); /* without elements there is no address */
    good(shmview_dlpack_export(&v, &t));
    ck_assert_ptr_null(t->tensor.data);
    same(t->tensor.shape, I64(0, 3), 16);
    t->deleter(t);
    v = make("d", 16, 0, NULL, NULL);
    good(shmview_dlpack_export(&v, &t));
    ck_assert_int_eq(t->tensor.ndim, 0);
    ck_assert_ptr_eq(t->tensor.data, memory + 16);
    t->deleter(t);
    end();
}
END_TEST

START_TEST(strides_that_are_no_elements)
{
    struct DLManagedTensor *t = NULL;
    begin(0);
    struct shmview_view v = make("Zf", 0, 2, I64(2, 3), I64(64, 12));
    refused(shmview_dlpack_export(&v, &t), SHMVIEW_ERR_CONTIGUOUS,
            "dimension 1: a stride of 12 bytes");
    v = make("Zf", 0, 2, I64(2, 1), I64(64, 12)); /* the second stride is never used */
    good(shmview_dlpack_export(&v, &t));
    t->deleter(t);
    v = make("Zf", 0, 2, I64(0, 3), I64(64, 12));
    good(shmview_dlpack_export(&v, &t));
    t->deleter(t);
    t = NULL;
    struct shmview_view_spec rows = {
        .format = "i", .ndim = 1, .shape = I64(3), .strides = I64(8), .suboffsets = I64(0)};
    good(shmview_view_make(seg, &rows, &v));
    refused(shmview_dlpack_export(&v, &t), SHMVIEW_ERR_CONTIGUOUS, "suboffsets");
    ck_assert_ptr_null(t);
    end();
}
END_TEST

START_TEST(read_only_is_said)
{
    struct DLManagedTensor *t = NULL;
    struct DLManagedTensorVersioned *w;
    struct shmview_segment *s;
    struct shmview_view back;
    begin(SHMVIEW_WRAP_READ_ONLY);
    struct shmview_view v = make("f", 0, 1, I64(4), NULL);
    refused(shmview_dlpack_export(&v, &t), SHMVIEW_ERR_READ_ONLY, "old form");
    ck_assert_ptr_null(t);
    good(shmview_dlpack_export_versioned(&v, &w));
    ck_assert_uint_eq(w->flags, 1);
    good(shmview_dlpack_import_versioned(w, &s, &back));
    ck_assert_uint_eq(back.flags, SHMVIEW_VIEW_READ_ONLY);
    ck_assert_int_eq(shmview_access(s), SHMVIEW_READ);
    good(shmview_detach(s));
    end();
}
END_TEST

static void *delete_in_thread(void *tensor)
{
    struct DLManagedTensorVersioned *t = tensor;
    t->deleter(t);
    return NULL;
}

START_TEST(the_last_tensor_detaches)
{
    struct DLManagedTensorVersioned *a, *b;
    pthread_t thread;
    begin(0);
    struct shmview_view v = make("f", 0, 1, I64(4), NULL);
    good(shmview_dlpack_export_versioned(&v, &a));
    good(shmview_dlpack_export_versioned(&v, &b));
    good(shmview_detach_later(seg));
    a->deleter(a);
    ck_assert_int_eq(n_released, 0);
    ck_assert_ptr_eq(b->tensor.data, memory);
    ck_assert_int_eq(pthread_create(&thread, NULL, delete_in_thread, b), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(n_released, 1);
}
END_TEST

/* --- Memory -------------------------------------------------------------- */

START_TEST(no_memory_for_export)
{
    struct DLManagedTensor *t = NULL;
    struct DLManagedTensorVersioned *w = NULL;
    begin(0);
    struct shmview_view v = make("f", 0, 1, I64(4), NULL);
    refused(shmview_dlpack_import(NULL, NULL, NULL), SHMVIEW_ERR_INVALID, ""); /* room for text */
    faults_begin(FAULTS_MEMORY, 1);
    refused(shmview_dlpack_export(&v, &t), SHMVIEW_ERR_NO_MEMORY, "out of memory");
    ck_assert(faults_end());
    faults_begin(FAULTS_MEMORY, 1);
    refused(shmview_dlpack_export_versioned(&v, &w), SHMVIEW_ERR_NO_MEMORY, "out of memory");
    ck_assert(faults_end());
    seg->n_buffers = 0x7fffffff;
    refused(shmview_dlpack_export(&v, &t), SHMVIEW_ERR_NO_MEMORY, "2147483647 buffers");
    refused(shmview_dlpack_export_versioned(&v, &w), SHMVIEW_ERR_NO_MEMORY, "buffers");
    seg->n_buffers = 0;
    ck_assert(!t && !w);
    end();
}
END_TEST

UNIT_MAIN("dlpack", UNIT_TEST(every_type_there_and_back), UNIT_TEST(types_that_dlpack_has_not),
          UNIT_TEST(members_of_a_tensor), UNIT_TEST(strides_that_are_no_elements),
          UNIT_TEST(read_only_is_said), UNIT_TEST(the_last_tensor_detaches),
          UNIT_TEST(no_memory_for_export))
