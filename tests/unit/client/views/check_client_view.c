/* SPDX-License-Identifier: Apache-2.0 */
/* Checks view.c of the library: casting and making views, and defining layouts. */
#include "client/views/handle.h"

#include "unit/faults.h"
#include "unit/stub.h"

static unsigned char bytes[4096] __attribute__((aligned(64)));
static struct shmview_connection *conn;
static struct stub stub;

/* Returns a segment that needs no daemon. */
static struct shmview_segment local(int access)
{
    ck_assert_int_eq(process_init(), 0);
    return (struct shmview_segment){.lock.process = process_epoch(),
                                    .connection = conn,
                                    .data = bytes,
                                    .size = 4000,
                                    .id = 77,
                                    .access = access,
                                    .name = "seg"};
}

static void assert_fails(int r, int error, const char *text)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    ck_assert_str_eq(shmview_error_text(), text);
}

#define INTS(...)                                                                                  \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* --- Cast ---------------------------------------------------------------- */

START_TEST(cast)
{
    static const struct {
        const char *format, *canonical;
        uint32_t dtype, itemsize;
    } cases[] = {
        {"int8", "b", SHMVIEW_INT8, 1},       {"B", "B", SHMVIEW_UINT8, 1},
        {"h", "h", SHMVIEW_INT16, 2},         {"uint16", "H", SHMVIEW_UINT16, 2},
        {"=l", "i", SHMVIEW_INT32, 4},        {"u4", "I", SHMVIEW_UINT32, 4},
        {"@q", "q", SHMVIEW_INT64, 8},        {"uint64", "Q", SHMVIEW_UINT64, 8},
        {"float32", "f", SHMVIEW_FLOAT32, 4}, {"f8", "d", SHMVIEW_FLOAT64, 8},
    };
    struct shmview_segment s = local(SHMVIEW_WRITE);
    for (size_t i = 0; i < 10; i++) {
        struct shmview_view v;
        memset(&v, 0xee, sizeof v);
        ck_assert_int_eq(shmview_view_cast(&s, cases[i].format, 8, SHMVIEW_REST, &v), 0);
        ck_assert_ptr_eq(v.data, bytes + 8);
        ck_assert_ptr_eq(v.segment, &s);
        ck_assert_uint_eq(v.nbytes, 3992);
        ck_assert_uint_eq(v.itemsize, cases[i].itemsize);
        ck_assert_uint_eq(v.dtype, cases[i].dtype);
        ck_assert_uint_eq(v.ndim, 1);
        ck_assert_uint_eq(v.flags, 0);
        ck_assert_uint_eq(v.layout, UINT32_MAX);
        ck_assert_uint_eq(v.generation, 0);
        ck_assert_str_eq(v.format, cases[i].canonical);
        ck_assert_int_eq(v.shape[0], (ptrdiff_t)(3992 / cases[i].itemsize));
        ck_assert_int_eq(v.strides[0], (ptrdiff_t)cases[i].itemsize);
        for (int d = 1; d < 8; d++)
            ck_assert(v.shape[d] == 0 && v.strides[d] == 0);
        for (int k = 0; k < 4; k++)
            ck_assert_uint_eq(v.reserved[k], 0);
    }
}
END_TEST

/* Sees the same bytes as int8, int16 and int32. */
START_TEST(casts_see_the_same_bytes)
{
    struct shmview_segment s = local(SHMVIEW_WRITE);
    struct shmview_view b, h, i;
    ck_assert_int_eq(shmview_view_cast(&s, "int8", 0, 10, &b), 0);
    ck_assert_int_eq(shmview_view_cast(&s, "int16", 0, 10, &h), 0);
    for (int16_t k = 0; k < 5; k++)
        SHMVIEW_DATA(int16_t, &h)[k] = k;
    const int8_t wanted[] = {0, 0, 1, 0, 2, 0, 3, 0, 4, 0};
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        ck_assert_mem_eq(SHMVIEW_DATA(int8_t, &b), wanted, 10);
    ck_assert_int_eq(shmview_view_cast(&s, "int32", 0, 8, &i), 0);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        ck_assert_int_eq(SHMVIEW_DATA(int32_t, &i)[1], 3 << 16 | 2);
}
END_TEST

START_TEST(cast_refused)
{
    struct shmview_segment s = local(SHMVIEW_WRITE);
    struct shmview_view v, same;
    memset(&v, 0xee, sizeof v);
    same = v;
    assert_fails(shmview_view_cast(&s, "int16", 0, 3, &v), SHMVIEW_ERR_ILL_SIZED,
                 "3 bytes at byte 0 do not divide into int16 of 2 bytes: the last whole one ends "
                 "at byte 2");
    assert_fails(shmview_view_cast(&s, "int32", 0, 10, &v), SHMVIEW_ERR_ILL_SIZED,
                 "10 bytes at byte 0 do not divide into int32 of 4 bytes: the last whole one ends "
                 "at byte 8");
    assert_fails(
        shmview_view_cast(&s, "int16", 1, 2, &v), SHMVIEW_ERR_MISALIGNED,
        "byte 1 is not a multiple of 2, the alignment of int16; a format with '<' or '=' has none");
    assert_fails(shmview_view_cast(&s, "b", 4000, 1, &v), SHMVIEW_ERR_BOUNDS,
                 "1 bytes at byte 4000 lie outside the segment's 4000 bytes");
    assert_fails(shmview_view_cast(&s, "y", 0, 1, &v), SHMVIEW_ERR_FORMAT,
                 "format \"y\": character 0: 'y' is no type code");
    ck_assert_mem_eq(&v, &same, sizeof v); /* untouched */
}
END_TEST

START_TEST(read_only_by_access)
{
    for (int access = SHMVIEW_PEEK; access <= SHMVIEW_WRITE; access++) {
        struct shmview_segment s = local(access);
        struct shmview_view_spec spec = {.format = "b"};
        struct shmview_view v;
        ck_assert_int_eq(shmview_view_cast(&s, "b", 0, 1, &v), 0);
        ck_assert_uint_eq(v.flags, access == SHMVIEW_WRITE ? 0 : SHMVIEW_VIEW_READ_ONLY);
        ck_assert_int_eq(shmview_view_make(&s, &spec, &v), 0);
        ck_assert_uint_eq(v.flags, access == SHMVIEW_WRITE ? 0 : SHMVIEW_VIEW_READ_ONLY);
        spec.flags = SHMVIEW_VIEW_READ_ONLY;
        ck_assert_int_eq(shmview_view_make(&s, &spec, &v), 0);
        ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    }
}
END_TEST

/* --- Make ---------------------------------------------------------------- */

START_TEST(make)
{
    struct shmview_segment s = local(SHMVIEW_WRITE);
    struct shmview_view v;
    struct shmview_view_spec spec = {
        .format = "int32", .offset = 100, .ndim = 2, .shape = INTS(3, 4)};
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), 0);
    ck_assert_ptr_eq(v.data, bytes + 100);
    ck_assert_uint_eq(v.nbytes, 48);
    ck_assert_int_eq(v.shape[0], 3);
    ck_assert_int_eq(v.strides[0], 16);
    ck_assert_int_eq(v.strides[1], 4);
    spec.strides = INTS(-16, 0);
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), 0);
    ck_assert_int_eq(v.strides[0], -16);
    ck_assert_int_eq(v.strides[1], 0);
    ck_assert_uint_eq(v.nbytes, 48);
    spec = (struct shmview_view_spec){.format = "d", .offset = 8};
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), 0);
    ck_assert_uint_eq(v.ndim, 0);
    ck_assert_uint_eq(v.nbytes, 8);
    spec = (struct shmview_view_spec){
        .format = "b", .ndim = 8, .shape = INTS(1, 1, 1, 1, 1, 1, 1, 4000)};
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), 0);
    ck_assert_uint_eq(v.nbytes, 4000);
}
END_TEST

START_TEST(make_refused)
{
    struct shmview_segment s = local(SHMVIEW_WRITE);
    struct shmview_view v;
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = INTS(1001)};
    assert_fails(shmview_view_make(&s, &spec, &v), SHMVIEW_ERR_BOUNDS,
                 "view 'A': dimension 0 ends at byte 4004, the segment has 4000 bytes");
    spec.name = NULL;
    assert_fails(shmview_view_make(&s, &spec, &v), SHMVIEW_ERR_BOUNDS,
                 "dimension 0 ends at byte 4004, the segment has 4000 bytes");
    spec.ndim = 9;
    assert_fails(shmview_view_make(&s, &spec, &v), SHMVIEW_ERR_INVALID,
                 "9 dimensions (at most 8), flags 0x0, a shape");
    spec.ndim = UINT32_MAX;
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), -SHMVIEW_ERR_INVALID);
    spec = (struct shmview_view_spec){.format = "f", .ndim = 1};
    assert_fails(shmview_view_make(&s, &spec, &v), SHMVIEW_ERR_INVALID,
                 "1 dimensions (at most 8), flags 0x0, no shape");
    spec = (struct shmview_view_spec){.format = "f", .flags = 6};
    assert_fails(shmview_view_make(&s, &spec, &v), SHMVIEW_ERR_INVALID,
                 "0 dimensions (at most 8), flags 0x6, no shape");
    spec = (struct shmview_view_spec){.format = "i", .ndim = 2, .shape = INTS(-1, 2)};
    assert_fails(shmview_view_make(&s, &spec, &v), SHMVIEW_ERR_INVALID,
                 "dimension 0: length -1 < 0");
    spec.strides = INTS(4, 4);
    assert_fails(shmview_view_make(&s, &spec, &v), SHMVIEW_ERR_INVALID,
                 "dimension 0: length -1 < 0");
    spec = (struct shmview_view_spec){.format = "i", .ndim = 1, .shape = INTS(INT64_MAX)};
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), -SHMVIEW_ERR_OVERFLOW);
    spec = (struct shmview_view_spec){.format = "i", .offset = UINT64_MAX - 3};
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), -SHMVIEW_ERR_BOUNDS);
    spec = (struct shmview_view_spec){.format = "nonsense"};
    ck_assert_int_eq(shmview_view_make(&s, &spec, &v), -SHMVIEW_ERR_FORMAT);
}
END_TEST

/* --- Define -------------------------------------------------------------- */

static void expect_known(struct shmview_segment *s, uint32_t index, const char *name)
{
    char known[65] = "";
    layout_known_name(s, index, known, sizeof known);
    ck_assert_str_eq(known, name);
}

START_TEST(define)
{
    const struct stub_step steps[] = {
        STUB_GREETING,
        {.method = "DefineLayout", .reply = "{'parameters':{'index':0}}"},
        {.method = "DefineLayout",
         .reply = "{'error':'io.shmview.LayoutExists','parameters':"
                  "{'layout':'l','reason':'it is there'}}"},
        {.method = "DefineLayout", .reply = "{'parameters':{'index':1}}"}};
    stub_start(&stub, steps, 4);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    struct shmview_segment s = local(SHMVIEW_WRITE);
    struct shmview_view_spec views[] = {
        {.name = "A", .format = "float32", .ndim = 1, .shape = INTS(10)},
        {.name = "B",
         .format = "<i4",
         .offset = 400,
         .ndim = 1,
         .shape = INTS(5),
         .strides = INTS(-8),
         .flags = SHMVIEW_VIEW_READ_ONLY},
        {.name = "C", .format = "d"}};
    ck_assert_int_eq(shmview_define(&s, "l", views, 3), 0);
    /* aliases are resolved here: the daemon receives the canonical letter */
    unit_assert_holds(stub.requests[1], "\"name\":\"seg\"");
    unit_assert_holds(stub.requests[1], "\"id\":77");
    unit_assert_holds(stub.requests[1],
                      "\"views\":[{\"name\":\"A\",\"format\":\"f\",\"shape\":[10],\"offset\":0,"
                      "\"readonly\":false},{\"name\":\"B\",\"format\":\"i\",\"shape\":[5],"
                      "\"strides\":[-8],\"offset\":400,\"readonly\":true},{\"name\":\"C\","
                      "\"format\":\"d\",\"shape\":[],\"offset\":0,\"readonly\":false}]");
    assert_fails(shmview_define(&s, "l", views, 3), SHMVIEW_ERR_LAYOUT_EXISTS, "it is there");
    ck_assert_int_eq(shmview_define(&s, "empty", NULL, 0), 0);
    expect_known(&s, 0, "l");
    expect_known(&s, 1, "empty");
    expect_known(&s, 2, "");
    known_deinit(&s.known);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}
END_TEST

START_TEST(define_refused)
{
    const struct stub_step steps[] = {STUB_GREETING}; /* none of it is sent */
    stub_start(&stub, steps, 1);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    struct shmview_segment s = local(SHMVIEW_WRITE), reader = local(SHMVIEW_READ);
    static struct shmview_view_spec many[LIMIT_VIEWS + 1];
    struct shmview_view_spec v = {.name = "A", .format = "b"};
    assert_fails(shmview_define(&reader, "l", &v, 1), SHMVIEW_ERR_READ_ONLY,
                 "segment 'seg' is attached with access read");
    const char *names[] = {"", ".a", "a b", "\xff"};
    for (int i = 0; i < 5; i++) {
        const char *name = i < 4 ? names[i] : NULL;
        v.name = "A";
        ck_assert_int_eq(shmview_define(&s, name, &v, 1), -SHMVIEW_ERR_INVALID);
        unit_assert_holds(shmview_error_text(), "is not a valid name for a layout");
        v.name = name;
        ck_assert_int_eq(shmview_define(&s, "l", &v, 1), -SHMVIEW_ERR_INVALID);
        unit_assert_holds(shmview_error_text(), "is not a valid name for a view");
    }
    v = (struct shmview_view_spec){.name = "A", .format = "b", .offset = 4000};
    assert_fails(shmview_define(&s, "l", &v, 1), SHMVIEW_ERR_BOUNDS,
                 "view 'A': the first element, 1 bytes at byte 4000, lies outside the segment's "
                 "4000 bytes");
    v = (struct shmview_view_spec){.name = "A", .format = "y"};
    ck_assert_int_eq(shmview_define(&s, "l", &v, 1), -SHMVIEW_ERR_FORMAT);
    assert_fails(shmview_define(&s, "l", many, LIMIT_VIEWS + 1), SHMVIEW_ERR_LIMIT,
                 "257 views, the limit is 256");
    ck_assert_int_eq(shmview_define(&s, "l", many, SIZE_MAX), -SHMVIEW_ERR_LIMIT);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}
END_TEST

START_TEST(every_allocation_of_a_definition_fails)
{
    static struct stub_step steps[200] = {STUB_GREETING};
    /* when memory is short jansson may return a damaged text, which is a valid outcome */
    for (int i = 1; i < 200; i++)
        steps[i] = (struct stub_step){.method = "", .reply = "{'parameters':{'index':0}}"};
    stub_start(&stub, steps, 200);
    struct shmview_view_spec v = {.name = "A", .format = "b", .ndim = 1, .shape = INTS(1)};
    int r = 1;
    for (unsigned n = 1; r; n++) {
        ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
        struct shmview_segment s = local(SHMVIEW_WRITE);
        faults_begin(FAULTS_MEMORY, n);
        r = shmview_define(&s, "l", &v, 1);
        if (faults_end() && r == 0)
            r = 1;
        known_deinit(&s.known);
        ck_assert_int_eq(shmview_disconnect(conn), 0);
    }
    shutdown(stub.listener, SHUT_RDWR);
    pthread_join(stub.thread, NULL);
    close(stub.listener);
}
END_TEST

UNIT_MAIN("client_view", UNIT_TEST(cast), UNIT_TEST(casts_see_the_same_bytes),
          UNIT_TEST(cast_refused), UNIT_TEST(read_only_by_access), UNIT_TEST(make),
          UNIT_TEST(make_refused), UNIT_TEST(define), UNIT_TEST(define_refused),
          UNIT_TEST(every_allocation_of_a_definition_fails))
