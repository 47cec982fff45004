/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: makes every request for every kind of view. The answers must follow CPython's rules for
 * memoryviews, and a consumer that knows only PEP 3118 must find every element. */
#include "unit/unit.h"

#include "client/views/handle.h"
#include "unit/faults.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static _Alignas(64) union {
    unsigned char bytes[512];
    uint64_t stored[64];
    int32_t ints[128];
} memory;

static struct shmview_segment *seg;

static void begin(unsigned flags)
{
    for (int i = 0; i < 128; i++)
        memory.ints[i] = i;
    ck_assert_int_eq(shmview_wrap(&memory, sizeof memory, flags, NULL, NULL, &seg), 0);
}

static void end(void)
{
    ck_assert_uint_eq(seg->n_buffers, 0);
    ck_assert_int_eq(shmview_detach(seg), 0);
}

static void make(const struct shmview_view_spec *spec, struct shmview_view *ret)
{
    int r = shmview_view_make(seg, spec, ret);
    ck_assert_msg(r == 0, "%s", shmview_error_text());
}

static void refused(int r, int error, const char *part)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

/* --- A consumer ---------------------------------------------------------- */

/* Finds an element by the formula of PEP 3118. Without strides the order is C's. */
static void *item_at(const struct shmview_buffer *b, const ptrdiff_t *index)
{
    char *p = b->buf;
    ptrdiff_t step = (ptrdiff_t)b->itemsize;
    if (!b->strides) {
        for (uint32_t d = b->ndim; d-- > 0; step *= b->shape[d])
            p += index[d] * step;
        return p;
    }
    for (uint32_t d = 0; d < b->ndim; d++) {
        p += index[d] * b->strides[d];
        if (b->suboffsets && b->suboffsets[d] >= 0)
            p = *(char **)(void *)p + b->suboffsets[d];
    }
    return p;
}

/* Each element of the buffer must be that of the view. */
static void same_elements(const struct shmview_buffer *b, const struct shmview_view *v)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    void *there;
    ck_assert_uint_eq(b->ndim, v->ndim);
    for (uint64_t i = 0; i < v->nbytes / v->itemsize; i++) {
        ck_assert_int_eq(shmview_view_pointer(v, index, &there), 0);
        ck_assert_ptr_eq(item_at(b, index), there);
        for (uint32_t d = v->ndim; d-- > 0;) {
            if (++index[d] < v->shape[d])
                break;
            index[d] = 0;
        }
    }
}

/* --- All requests -------------------------------------------------------- */

#define MATRIX(n0, n1)                                                                             \
    .ndim = 2, .shape = (const int64_t[])                                                          \
    {                                                                                              \
        n0, n1                                                                                     \
    }
#define CUBE                                                                                       \
    .ndim = 3, .shape = (const int64_t[])                                                          \
    {                                                                                              \
        2, 2, 2                                                                                    \
    }
#define STEPS(...)                                                                                 \
    .strides = (const int64_t[])                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SUB(...)                                                                                   \
    .suboffsets = (const int64_t[])                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The answers of memoryview to these requests on such a buffer, in this order: SIMPLE ND STRIDES
 * C_CONTIGUOUS F_CONTIGUOUS ANY_CONTIGUOUS INDIRECT */
static const struct kind {
    const char *name, *answers;
    struct shmview_view_spec spec;
} kinds[] = {
    {"scalar", "+++++++", {.format = "i", .offset = 8}},
    {"array", "+++++++", {.format = "i", .ndim = 1, .shape = (const int64_t[]){6}}},
    {"every other", "--+---+", {.format = "i", .ndim = 1, .shape = (const int64_t[]){3}, STEPS(8)}},
    {"reversed",
     "--+---+",
     {.format = "i", .offset = 20, .ndim = 1, .shape = (const int64_t[]){6}, STEPS(-4)}},
    {"repeated", "--+---+", {.format = "i", .ndim = 1, .shape = (const int64_t[]){4}, STEPS(0)}},
    {"C", "++++-++", {.format = "i", MATRIX(2, 3)}},
    {"Fortran", "--+-+++", {.format = "i", MATRIX(2, 3), STEPS(4, 8)}},
    {"padded", "--+---+", {.format = "h", MATRIX(2, 3), STEPS(8, 2)}},
    {"row", "+++++++", {.format = "i", MATRIX(1, 3), STEPS(40, 4)}},
    {"column", "+++++++", {.format = "i", MATRIX(3, 1), STEPS(4, 4)}},
    {"empty", "+++++++", {.format = "i", MATRIX(0, 3), STEPS(4, 40)}},
    {"C cube", "++++-++", {.format = "d", CUBE}},
    {"Fortran cube", "--+-+++", {.format = "d", CUBE, STEPS(8, 16, 32)}},
    {"mixed cube", "--+---+", {.format = "d", CUBE, STEPS(16, 32, 8)}},
    {"rows", "------+", {.format = "i", .offset = 256, MATRIX(3, 4), STEPS(8, 4), SUB(0, -1)}},
    {"no rows", "------+", {.format = "i", MATRIX(0, 4), STEPS(8, 4), SUB(0, -1)}},
};

/* Returns the columns of the table that a request needs, as bits; 0: there is no such request. */
static unsigned columns(unsigned flags)
{
    switch (flags & ~(0x1u | 0x4u)) { /* WRITABLE, FORMAT */
    case 0:
        return flags & 0x4 ? 0 : 1u << 0; /* memoryview: bytes have no format */
    case 0x8:
        return 1u << 1;
    case 0x18:
        return 1u << 2;
    default:
        if ((flags & 0x18) != 0x18 || flags & ~0x1fdu)
            return 0;
        return (flags >> 5 & 0xf) << 3;
    }
}

static void check_members(const struct shmview_buffer *b, const struct shmview_view *v,
                          unsigned flags)
{
    ck_assert_ptr_eq(b->segment, seg);
    ck_assert_uint_eq(b->len, v->nbytes);
    ck_assert_uint_eq(b->itemsize, v->itemsize); /* that of the view, whatever the format */
    ck_assert_int_eq(b->readonly, (v->flags & SHMVIEW_VIEW_READ_ONLY) != 0);
    ck_assert_ptr_eq(b->format, flags & 0x4 ? v->format : NULL);
    ck_assert_uint_eq(b->ndim, flags & 0x8 ? v->ndim : 1);
    ck_assert_int_eq(b->shape != NULL, flags & 0x8 && v->ndim);
    ck_assert_int_eq(b->strides != NULL, flags & 0x10 && v->ndim);
    ck_assert_int_eq(b->suboffsets != NULL, (v->flags & SHMVIEW_VIEW_INDIRECT) != 0);
    if (!b->suboffsets)
        ck_assert_ptr_eq(b->buf, v->data);
    if (b->shape)
        ck_assert_mem_eq(b->shape, v->shape, v->ndim * sizeof *b->shape);
    if (b->strides && !b->suboffsets)
        ck_assert_mem_eq(b->strides, v->strides, v->ndim * sizeof *b->strides);
    if (flags & 0x8)
        same_elements(b, v);
}

/* Returns the expected answer to one request. */
static int answer(const struct kind *kind, bool read_only, unsigned flags)
{
    unsigned needs = columns(flags);
    if (!needs)
        return -SHMVIEW_ERR_INVALID;
    if (flags & 0x1 && read_only)
        return -SHMVIEW_ERR_READ_ONLY;
    for (unsigned i = 0; i < 7; i++)
        if (needs & 1u << i && kind->answers[i] != '+')
            return -SHMVIEW_ERR_CONTIGUOUS;
    return 0;
}

static void request_all(const struct kind *kind, bool read_only)
{
    struct shmview_view v;
    memcpy(memory.stored + 32, (const uint64_t[]){64, 128, 96}, 24);
    make(&kind->spec, &v);
    for (unsigned flags = 0; flags < 0x800; flags++) {
        struct shmview_buffer untouched, b;
        memset(&untouched, 0xaa, sizeof b);
        b = untouched;
        int r = shmview_buffer_get(&v, flags, &b);
        ck_assert_msg(r == answer(kind, read_only, flags), "%s, flags 0x%x: %d (%s)", kind->name,
                      flags, r, shmview_error_text());
        if (r) {
            ck_assert_mem_eq(&b, &untouched, sizeof b);
            continue;
        }
        ck_assert_uint_eq(seg->n_buffers, 1);
        check_members(&b, &v, flags);
        shmview_buffer_release(&b);
    }
}

START_TEST(every_request_for_every_kind)
{
    for (unsigned flags = 0; flags <= SHMVIEW_WRAP_READ_ONLY; flags++) {
        begin(flags);
        for (size_t i = 0; i < COUNT(kinds); i++)
            request_all(&kinds[i], flags);
        end();
    }
}
END_TEST

START_TEST(refusals_say_why)
{
    struct shmview_view v;
    struct shmview_buffer b;
    begin(SHMVIEW_WRAP_READ_ONLY);
    make(&kinds[14].spec, &v);
    refused(shmview_buffer_get(&v, 0x2, &b), SHMVIEW_ERR_INVALID, "unknown flags 0x2");
    refused(shmview_buffer_get(&v, 0x28, &b), SHMVIEW_ERR_INVALID, "0x20 needs the whole of");
    refused(shmview_buffer_get(&v, 0x4, &b), SHMVIEW_ERR_INVALID, "FORMAT needs ND");
    refused(shmview_buffer_get(&v, 0x119, &b), SHMVIEW_ERR_READ_ONLY, "wants to write");
    refused(shmview_buffer_get(&v, 0x18, &b), SHMVIEW_ERR_CONTIGUOUS, "suboffsets");
    refused(shmview_buffer_get(&v, 0x138, &b), SHMVIEW_ERR_CONTIGUOUS, "wants C order");
    make(&kinds[2].spec, &v);
    refused(shmview_buffer_get(&v, 0x58, &b), SHMVIEW_ERR_CONTIGUOUS, "Fortran's");
    refused(shmview_buffer_get(&v, 0x8, &b), SHMVIEW_ERR_CONTIGUOUS, "takes no strides");
    end();
}
END_TEST

/* --- Releasing ----------------------------------------------------------- */

START_TEST(release_zeroes)
{
    struct shmview_view v;
    struct shmview_buffer a, b, zero = {0};
    begin(0);
    make(&kinds[5].spec, &v);
    ck_assert_int_eq(shmview_buffer_get(&v, SHMVIEW_BUFFER_STRIDES, &a), 0);
    ck_assert_int_eq(shmview_buffer_get(&v, SHMVIEW_BUFFER_STRIDES, &b), 0);
    memset(&v, 0, sizeof v); /* the buffers have copies of their members */
    ck_assert_int_eq(a.shape[0] * a.shape[1], 6);
    ck_assert_ptr_ne(a.shape, b.shape);
    shmview_buffer_release(&a);
    shmview_buffer_release(&a); /* the second call does nothing */
    shmview_buffer_release(NULL);
    ck_assert_mem_eq(&a, &zero, sizeof a);
    ck_assert_uint_eq(seg->n_buffers, 1);
    shmview_buffer_release(&b);
    end();
}
END_TEST

START_TEST(the_count_has_an_end)
{
    struct shmview_view v;
    struct shmview_buffer b;
    begin(0);
    make(&kinds[5].spec, &v);
    seg->n_buffers = 0x7fffffff;
    refused(shmview_buffer_get(&v, SHMVIEW_BUFFER_ND, &b), SHMVIEW_ERR_NO_MEMORY, "2147483647");
    seg->n_buffers = 0x80000001; /* one buffer is out, and the segment is detached */
    refused(shmview_buffer_get(&v, SHMVIEW_BUFFER_ND, &b), SHMVIEW_ERR_INVALID, "was detached");
    seg->n_buffers = 0;
    end();
}
END_TEST

/* --- Memory -------------------------------------------------------------- */

/* Returns how many allocations a request makes; each of them fails once. */
static unsigned allocations(const struct shmview_view *v, unsigned flags)
{
    struct shmview_buffer untouched, b;
    memset(&untouched, 0xaa, sizeof b);
    for (unsigned n = 1;; n++) {
        b = untouched;
        faults_begin(FAULTS_MEMORY, n);
        int r = shmview_buffer_get(v, flags, &b);
        if (!faults_end()) {
            ck_assert_int_eq(r, 0);
            shmview_buffer_release(&b);
            return n - 1;
        }
        refused(r, SHMVIEW_ERR_NO_MEMORY, "out of memory");
        ck_assert_mem_eq(&b, &untouched, sizeof b);
        ck_assert_uint_eq(seg->n_buffers, 0);
    }
}

START_TEST(one_allocation_at_most)
{
    struct shmview_view v;
    begin(0);
    make(&kinds[0].spec, &v);
    refused(shmview_buffer_get(&v, 2, NULL), SHMVIEW_ERR_INVALID, ""); /* the text has its room */
    ck_assert_uint_eq(allocations(&v, SHMVIEW_BUFFER_INDIRECT), 0);
    make(&kinds[5].spec, &v);
    ck_assert_uint_eq(allocations(&v, SHMVIEW_BUFFER_SIMPLE), 0);
    ck_assert_uint_eq(allocations(&v, SHMVIEW_BUFFER_STRIDES), 1);
    memcpy(memory.stored + 32, (const uint64_t[]){64, 128, 96}, 24);
    make(&kinds[14].spec, &v);
    ck_assert_uint_eq(allocations(&v, SHMVIEW_BUFFER_INDIRECT), 1);
    end();
}
END_TEST

UNIT_MAIN("buffer", UNIT_TEST(every_request_for_every_kind), UNIT_TEST(refusals_say_why),
          UNIT_TEST(release_zeroes), UNIT_TEST(the_count_has_an_end),
          UNIT_TEST(one_allocation_at_most))
