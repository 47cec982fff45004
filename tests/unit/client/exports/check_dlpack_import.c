/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack, the consumer's side: the memory that a tensor reaches, every refusal, and the deleter,
 * which runs once or stays with the caller. */
#include "client/exports/dlpack.h"

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
static int n_deleted;

static void good(int r)
{
    ck_assert_msg(r == 0, "%d: %s", r, shmview_error_text());
}

static void refused(int r, int error, const char *part)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

/* --- Importing ----------------------------------------------------------- */

static void count_deleted(struct DLManagedTensor *self)
{
    ck_assert_ptr_nonnull(self->owner);
    n_deleted++;
}

static void count_deleted_versioned(struct DLManagedTensorVersioned *self)
{
    ck_assert_ptr_nonnull(self->owner);
    n_deleted++;
}

static struct DLManagedTensor tensor_of(int32_t ndim, int64_t *shape, int64_t *strides)
{
    n_deleted = 0;
    return (struct DLManagedTensor){
        .tensor = {.data = memory,
                   .device_type = 1,
                   .ndim = ndim,
                   .type = {0, 32, 1},
                   .shape = shape,
                   .strides = strides},
        .owner = memory,
        .deleter = count_deleted,
    };
}

/* Imports the tensor. Element [0, ..., 0] must be at byte `first` of memory, and the segment must
 * have the bytes from low to high. */
static void imports(struct DLManagedTensor *t, ptrdiff_t first, ptrdiff_t low, ptrdiff_t high)
{
    struct shmview_segment *s;
    struct shmview_view v;
    good(shmview_dlpack_import(t, &s, &v));
    ck_assert_ptr_eq(v.data, memory + first);
    ck_assert_ptr_eq(shmview_data(s), memory + low);
    ck_assert_uint_eq(shmview_size(s), (uint64_t)(high - low));
    ck_assert_int_eq(n_deleted, 0);
    good(shmview_detach(s));
    ck_assert_int_eq(n_deleted, 1);
}

START_TEST(import_sees_all_that_strides_reach)
{
    struct DLManagedTensor t = tensor_of(2, I64(3, 5), NULL);
    imports(&t, 0, 0, 60);
    t = tensor_of(2, I64(3, 5), I64(1, 3));
    imports(&t, 0, 0, 60);
    t = tensor_of(2, I64(3, 5), I64(10, 0));
    imports(&t, 0, 0, 84);
    t = tensor_of(2, I64(3, 5), I64(-5, 1));
    t.tensor.byte_offset = 100;
    imports(&t, 100, 60, 120);
    t = tensor_of(3, I64(3, 1, 5), I64(-5, INT64_MAX / 4, -2));
    t.tensor.byte_offset = 100;
    imports(&t, 100, 28, 104);
    t = tensor_of(0, NULL, NULL);
    imports(&t, 0, 0, 4);
    t.deleter = NULL; /* a producer may have no deleter */
    struct shmview_segment *s;
    struct shmview_view v;
    good(shmview_dlpack_import(&t, &s, &v));
    good(shmview_detach(s));
}
END_TEST

START_TEST(import_of_nothing)
{
    struct shmview_segment *s;
    struct shmview_view v;
    struct DLManagedTensor t = tensor_of(3, I64(3, 0, 5), I64(1, 2, 3));
    t.tensor.data = NULL;
    good(shmview_dlpack_import(&t, &s, &v));
    ck_assert_uint_eq(v.nbytes, 0);
    ck_assert_int_eq(v.shape[2], 5);
    ck_assert_uint_eq(shmview_size(s), 0);
    good(shmview_detach(s));
    ck_assert_int_eq(n_deleted, 1);
}
END_TEST

/* Tensors of int32 with one fault each, and the text of the error. */
#define TENSOR(at, device, n, code, bits, lanes, ...)                                              \
    {                                                                                              \
        .data = at, .device_type = device, .device_id = 3, .ndim = n, .type = {code, bits, lanes}, \
        __VA_ARGS__                                                                                \
    }
#define SHAPE(...)                                                                                 \
    .shape = (int64_t[])                                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define STRIDES(...)                                                                               \
    .strides = (int64_t[])                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define DEVICE(n)               TENSOR(memory, n, 2, 0, 32, 1, SHAPE(2, 3))
#define TYPE(code, bits, lanes) TENSOR(memory, 1, 2, code, bits, lanes, SHAPE(2, 3))
#define NDIM(n)                 TENSOR(memory, 1, n, 0, 32, 1, SHAPE(2, 3))
#define DATA(at, ...)           TENSOR(at, 1, 2, 0, 32, 1, __VA_ARGS__)
static const struct {
    int error;
    const char *part;
    struct dlpack_tensor tensor;
} bad[] = {
    {SHMVIEW_ERR_CONVERSION, "device type 2 (CUDA), number 3", DEVICE(2)},
    {SHMVIEW_ERR_CONVERSION, "device type 0 (unknown)", DEVICE(0)},
    {SHMVIEW_ERR_CONVERSION, "device type 5 (unknown)", DEVICE(5)},
    {SHMVIEW_ERR_CONVERSION, "device type -1 (unknown)", DEVICE(-1)},
    {SHMVIEW_ERR_CONVERSION, "device type 18 (Trainium)", DEVICE(18)},
    {SHMVIEW_ERR_CONVERSION, "device type 19 (unknown)", DEVICE(19)},
    {SHMVIEW_ERR_CONVERSION, "32 bits, 4 lanes", TYPE(0, 32, 4)},
    {SHMVIEW_ERR_CONVERSION, "32 bits, 0 lanes", TYPE(0, 32, 0)},
    {SHMVIEW_ERR_CONVERSION, "code 0, 4 bits", TYPE(0, 4, 1)},
    {SHMVIEW_ERR_CONVERSION, "code 2, 128 bits", TYPE(2, 128, 1)},
    {SHMVIEW_ERR_CONVERSION, "code 3, 64 bits", TYPE(3, 64, 1)},
    {SHMVIEW_ERR_CONVERSION, "code 6, 1 bits", TYPE(6, 1, 1)},
    {SHMVIEW_ERR_CONVERSION, "code 17, 4 bits", TYPE(17, 4, 1)},
    {SHMVIEW_ERR_INVALID, "ndim 9", NDIM(9)},
    {SHMVIEW_ERR_INVALID, "ndim -1", NDIM(-1)},
    {SHMVIEW_ERR_INVALID, "shape is NULL", DATA(memory, .shape = NULL)},
    {SHMVIEW_ERR_INVALID, "shape[1] is -3", DATA(memory, SHAPE(2, -3))},
    {SHMVIEW_ERR_INVALID, "shape[1] is -3", DATA(memory, SHAPE(0, -3))},
    {SHMVIEW_ERR_INVALID, "data is NULL", DATA(NULL, SHAPE(2, 3))},
    {SHMVIEW_ERR_INVALID, "data is NULL", DATA(NULL, SHAPE(2, 3), .byte_offset = 64)},
    {SHMVIEW_ERR_MISALIGNED, "byte_offset 2", DATA(memory, SHAPE(2, 3), .byte_offset = 2)},
    {SHMVIEW_ERR_MISALIGNED, "alignment of int32", DATA(memory + 1, SHAPE(2, 3))},
    {SHMVIEW_ERR_OVERFLOW, "strides[1]", DATA(memory, SHAPE(2, 3), STRIDES(1, INT64_MAX / 4 + 1))},
    {SHMVIEW_ERR_OVERFLOW, "strides[0]", DATA(memory, SHAPE(2, 3), STRIDES(INT64_MIN / 4 - 1, 1))},
    {SHMVIEW_ERR_OVERFLOW, "dimension 1", DATA(memory, SHAPE(2, 4), STRIDES(1, INT64_MAX / 8))},
    {SHMVIEW_ERR_OVERFLOW, "dimension 1",
     DATA(memory, SHAPE(2, 2), STRIDES(INT64_MAX / 8, INT64_MAX / 4))},
    {SHMVIEW_ERR_OVERFLOW, "dimension 1", DATA(memory, SHAPE(INT64_MAX, INT64_MAX))},
    {SHMVIEW_ERR_OVERFLOW, "dimension 1", DATA(memory, SHAPE(INT64_MAX / 8, 8), STRIDES(0, 0))},
    {SHMVIEW_ERR_OVERFLOW, "outside", DATA(memory, SHAPE(2, 2), STRIDES(INT64_MIN / 4, 1))},
    {SHMVIEW_ERR_OVERFLOW, "outside", DATA(memory, SHAPE(2, 2), .byte_offset = UINT64_MAX - 3)},
    {SHMVIEW_ERR_OVERFLOW, "outside",
     DATA(memory, SHAPE(2, 2), STRIDES(INT64_MAX / 4 - 4, -16))}, /* only one way fits at a time */
    {SHMVIEW_ERR_OVERFLOW, "outside", DATA((void *)(UINTPTR_MAX - 11), SHAPE(2, 2))},
};

START_TEST(import_refuses)
{
    struct shmview_segment *untouched = (void *)memory, *s = untouched;
    struct shmview_view v = {.ndim = 77};
    struct DLManagedTensor t = tensor_of(0, NULL, NULL);
    refused(shmview_dlpack_import(NULL, &s, &v), SHMVIEW_ERR_INVALID, "no tensor");
    refused(shmview_dlpack_import_versioned(NULL, &s, &v), SHMVIEW_ERR_INVALID, "no tensor");
    for (size_t i = 0; i < COUNT(bad); i++) {
        t.tensor = bad[i].tensor;
        refused(shmview_dlpack_import(&t, &s, &v), bad[i].error, bad[i].part);
    }
    ck_assert_ptr_eq(s, untouched);
    ck_assert_uint_eq(v.ndim, 77);
    ck_assert_int_eq(n_deleted, 0); /* it still belongs to the caller */
}
END_TEST

START_TEST(versions)
{
    static const uint32_t majors[] = {0, 2, UINT32_MAX};
    struct shmview_segment *s = NULL;
    struct shmview_view v;
    struct DLManagedTensorVersioned t = {
        .minor = 9, .owner = memory, .deleter = count_deleted_versioned, .flags = 1};
    for (size_t i = 0; i < COUNT(majors); i++) {
        t.major = majors[i]; /* no other member may be read */
        t.tensor.shape = (void *)1;
        refused(shmview_dlpack_import_versioned(&t, &s, &v), SHMVIEW_ERR_UNSUPPORTED, ".9; ");
    }
    ck_assert_int_eq(n_deleted, 0);
    t.major = 1;
    t.tensor = tensor_of(2, I64(3, 5), NULL).tensor;
    for (t.flags = 0; t.flags < 8; t.flags++) { /* read-only, copied, padded */
        good(shmview_dlpack_import_versioned(&t, &s, &v));
        ck_assert_uint_eq(v.flags, t.flags & 1 ? SHMVIEW_VIEW_READ_ONLY : 0);
        good(shmview_detach(s));
        ck_assert_int_eq(n_deleted, (int)t.flags + 1);
    }
}
END_TEST

/* --- Memory -------------------------------------------------------------- */

/* The deleter also waits until the last buffer is released. */
START_TEST(import_waits_for_its_buffers)
{
    struct shmview_segment *s;
    struct shmview_view v;
    struct shmview_buffer b;
    struct DLManagedTensor *again, t = tensor_of(2, I64(3, 5), NULL);
    good(shmview_dlpack_import(&t, &s, &v));
    good(shmview_buffer_get(&v, SHMVIEW_BUFFER_ND, &b));
    good(shmview_dlpack_export(&v, &again));
    refused(shmview_detach(s), SHMVIEW_ERR_BUSY, "2 buffers of 'foreign memory'");
    good(shmview_detach_later(s));
    again->deleter(again);
    ck_assert_int_eq(n_deleted, 0);
    shmview_buffer_release(&b);
    ck_assert_int_eq(n_deleted, 1);
}
END_TEST

/* Each allocation of an import fails once. */
START_TEST(no_memory_for_import)
{
    struct shmview_segment *s = NULL;
    struct shmview_view v;
    struct DLManagedTensor t = tensor_of(2, I64(3, 5), NULL);
    unsigned n = 0;
    faults_errno(ENOMEM);
    refused(shmview_dlpack_import(NULL, NULL, NULL), SHMVIEW_ERR_INVALID, "");
    for (bool failed = true; failed;) {
        faults_begin(FAULTS_MEMORY, ++n);
        int r = shmview_dlpack_import(&t, &s, &v);
        failed = faults_end();
        if (failed)
            refused(r, SHMVIEW_ERR_NO_MEMORY, "");
        ck_assert_int_eq(s == NULL, failed);
        ck_assert_int_eq(n_deleted, 0);
    }
    ck_assert_uint_ge(n, 2);
    good(shmview_detach(s));
    ck_assert_int_eq(n_deleted, 1);
}
END_TEST

UNIT_MAIN("dlpack_import", UNIT_TEST(import_sees_all_that_strides_reach),
          UNIT_TEST(import_of_nothing), UNIT_TEST(import_refuses), UNIT_TEST(versions),
          UNIT_TEST(import_waits_for_its_buffers), UNIT_TEST(no_memory_for_import))
