/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of views whose rows are stored as offsets: checks the table of addresses, and the offsets
 * that a peer may have written. */
#include "unit/unit.h"

#include <inttypes.h>

#include "client/views/handle.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define I64(...)                                                                                   \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define AT(bytes) ((uint64_t)(bytes))

static _Alignas(64) union {
    char bytes[512];
    uint64_t stored[64];
    int32_t ints[128];
} memory;

static struct shmview_segment *seg;

static void begin(void)
{
    for (int i = 0; i < 128; i++)
        memory.ints[i] = i;
    ck_assert_int_eq(shmview_wrap(&memory, sizeof memory, 0, NULL, NULL, &seg), 0);
}

static void end(void)
{
    ck_assert_int_eq(shmview_detach(seg), 0);
}

static struct shmview_view make(const char *format, uint64_t offset, uint32_t ndim,
                                const int64_t *shape, const int64_t *strides,
                                const int64_t *suboffsets)
{
    struct shmview_view v;
    const struct shmview_view_spec spec = {
        .format = format,
        .offset = offset,
        .ndim = ndim,
        .shape = shape,
        .strides = strides,
        .suboffsets = suboffsets,
    };
    int r = shmview_view_make(seg, &spec, &v);
    ck_assert_msg(r == 0, "%s", shmview_error_text());
    return v;
}

/* Gets a buffer: a table for the first dimensions, and the view's strides for the others. */
static struct shmview_buffer get(const struct shmview_view *v, uint32_t table)
{
    struct shmview_buffer b;
    int r = shmview_buffer_get(v, SHMVIEW_BUFFER_INDIRECT, &b);
    ck_assert_msg(r == 0, "%s", shmview_error_text());
    ptrdiff_t step = sizeof(char *);
    ck_assert_ptr_ne(b.buf, v->data);
    for (uint32_t d = v->ndim; d-- > 0;) {
        ck_assert_int_eq(b.suboffsets[d], d == table - 1 ? 0 : -1);
        ck_assert_int_eq(b.strides[d], d < table ? step : v->strides[d]);
        step *= d < table ? v->shape[d] : 1;
    }
    return b;
}

static void refuses(const struct shmview_view *v, int error, const char *part)
{
    struct shmview_buffer b;
    int r = shmview_buffer_get(v, SHMVIEW_BUFFER_INDIRECT, &b);
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

/* --- Tables -------------------------------------------------------------- */

START_TEST(rows_by_offset)
{
    begin();
    memcpy(memory.stored, (uint64_t[]){AT(300), AT(100), AT(496)}, 24);
    struct shmview_view v = make("i", 0, 2, I64(3, 4), I64(8, 4), I64(0, -1));
    struct shmview_buffer b = get(&v, 1);
    char **rows = b.buf;
    ck_assert_ptr_eq(rows[0], memory.bytes + 300);
    ck_assert_ptr_eq(rows[1], memory.bytes + 100);
    ck_assert_ptr_eq(rows[2], memory.bytes + 496); /* its last byte is that of the segment */
    ck_assert_uint_eq(b.len, 48);
    shmview_buffer_release(&b);
    /* backwards, with suboffsets to skip, and each row from its end */
    v = make("i", 16, 2, I64(3, 4), I64(-8, -4), I64(12, -1));
    memcpy(memory.stored, (uint64_t[]){AT(0), AT(100), AT(496)}, 24);
    b = get(&v, 1);
    rows = b.buf;
    ck_assert_ptr_eq(rows[0], memory.bytes + 508);
    ck_assert_ptr_eq(rows[2], memory.bytes + 12); /* its last element begins at byte 0 */
    shmview_buffer_release(&b);
    end();
}
END_TEST

START_TEST(offsets_of_single_elements)
{
    begin();
    memcpy(memory.stored, (uint64_t[]){AT(400), AT(508), AT(0)}, 24);
    struct shmview_view v = make("i", 0, 1, I64(3), I64(8), I64(0));
    struct shmview_buffer b = get(&v, 1);
    char **rows = b.buf;
    ck_assert_int_eq(*(int *)(void *)rows[0], 100);
    ck_assert_ptr_eq(rows[1], memory.bytes + 508);
    ck_assert_ptr_eq(rows[2], memory.bytes);
    shmview_buffer_release(&b);
    end();
}
END_TEST

/* Offsets of offsets after a plain dimension still give one flat table. */
START_TEST(tables_of_tables)
{
    begin();
    for (uint64_t i = 0; i < 4; i++) /* 2 x 2 rows of 3, from byte 256 on */
        memory.stored[16 + i] = 256 + 16 * (3 - i);
    memcpy(memory.stored, (uint64_t[]){8 * 18 - 8, 8 * 16 - 8}, 16);
    struct shmview_view v = make("i", 0, 3, I64(2, 2, 3), I64(8, 8, 4), I64(8, 4, -1));
    struct shmview_buffer b = get(&v, 2);
    char **rows = b.buf;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            ck_assert_ptr_eq(rows[2 * i + j],
                             memory.bytes + 256 + 16 * (3 - (2 * (1 - i) + j)) + 4);
    shmview_buffer_release(&b);
    v = make("i", 128, 3, I64(2, 2, 3), I64(16, 8, 4), I64(-1, 0, -1));
    b = get(&v, 2);
    rows = b.buf;
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_eq(rows[i], memory.bytes + 256 + 16 * (3 - i));
    shmview_buffer_release(&b);
    end();
}
END_TEST

/* Without elements no offset is read, and addresses can still be computed. */
START_TEST(rows_of_nothing)
{
    begin();
    memset(&memory, 0xff, sizeof memory);
    struct shmview_view v = make("i", 0, 2, I64(3, 0), I64(8, 4), I64(0, -1));
    struct shmview_buffer b = get(&v, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(((char **)b.buf)[i], memory.bytes);
    shmview_buffer_release(&b);
    const int64_t far = (int64_t)1 << 30;
    v = make("B", 0, 3, I64(0, far, far), I64(8, 8, 1), I64(-1, 0, -1));
    ck_assert_int_eq(shmview_buffer_get(&v, SHMVIEW_BUFFER_INDIRECT, &b), 0);
    ck_assert_uint_eq(b.len, 0);
    shmview_buffer_release(&b);
    end();
}
END_TEST

/* --- Peers --------------------------------------------------------------- */

/* Tests every offset that row 1 of three may hold. Each row has its elements from `before` bytes
 * before its first one to `from` bytes after the start of that element. */
static void row_one_is_checked(const struct shmview_view *v, uint64_t before, uint64_t from)
{
    const uint64_t last = sizeof memory - from;
    const uint64_t bad[] = {
        last + 4,
        sizeof memory,
        sizeof memory + 4,
        before - 4,
        UINT64_MAX,
        UINT64_MAX - 3,
        INT64_MAX,
        AT(1) << 63,
        (AT(1) << 63) + 100,
        UINT64_MAX - from + 1,
    };
    const uint64_t good[] = {before, last};
    struct shmview_buffer b;
    for (size_t i = 0; i < COUNT(bad); i++) {
        memory.stored[1] = bad[i];
        refuses(v, SHMVIEW_ERR_BOUNDS, "row [1]: ");
    }
    for (size_t i = 0; i < COUNT(good); i++) {
        memory.stored[1] = good[i];
        ck_assert_msg(shmview_buffer_get(v, SHMVIEW_BUFFER_INDIRECT, &b) == 0, "%" PRIu64 ": %s",
                      good[i], shmview_error_text());
        ck_assert_ptr_eq(((char **)b.buf)[1], memory.bytes + good[i]);
        shmview_buffer_release(&b);
    }
}

START_TEST(what_peers_stored_is_checked)
{
    begin();
    memcpy(memory.stored, (uint64_t[]){AT(200), AT(200), AT(200)}, 24);
    struct shmview_view v = make("i", 0, 2, I64(3, 4), I64(8, -4), I64(0, -1));
    row_one_is_checked(&v, 12, 4);
    v = make("i", 0, 3, I64(3, 4, 5), I64(8, -20, 8), I64(0, -1, -1));
    row_one_is_checked(&v, 60, 36);
    memory.stored[1] = 202;
    refuses(&v, SHMVIEW_ERR_MISALIGNED, "row [1]: the element would lie at byte 202");
    memory.stored[1] = 200;
    v = make("i", 0, 3, I64(2, 2, 4), I64(0, 8, 4), I64(-1, 0, -1));
    memory.stored[1] = 500;
    refuses(&v, SHMVIEW_ERR_BOUNDS, "row [0, 1]: ");
    end();
}
END_TEST

START_TEST(tables_have_a_limit)
{
    const int64_t many = 1 << 20, far = (int64_t)1 << 31;
    begin();
    memory.stored[0] = 8;
    struct shmview_view v = make("B", 0, 3, I64(many, 129, 2), I64(0, 0, 1), I64(-1, 0, -1));
    refuses(&v, SHMVIEW_ERR_NO_MEMORY, "135266304 rows, the limit is 134217728");
    v = make("B", 0, 3, I64(far, far, 1), I64(0, 0, 1), I64(-1, 0, -1));
    refuses(&v, SHMVIEW_ERR_NO_MEMORY, "4611686018427387904 rows");
    end();
}
END_TEST

UNIT_MAIN("buffer_rows", UNIT_TEST(rows_by_offset), UNIT_TEST(offsets_of_single_elements),
          UNIT_TEST(tables_of_tables), UNIT_TEST(rows_of_nothing),
          UNIT_TEST(what_peers_stored_is_checked), UNIT_TEST(tables_have_a_limit))
