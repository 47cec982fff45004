/* SPDX-License-Identifier: Apache-2.0 */
/* Checks copy.c of the library: formats, shapes, and values that cannot be converted. */
#include "client/whole/number.h"

#include "unit/shapes.h"
#include "unit/values.h"

#define HALF (FOREIGN_BYTES / 2)

/* --- The same format ----------------------------------------------------- */

/* Every element is copied, and no other byte changes. */
START_TEST(any_shape)
{
    static const char *const formats[] = {"b",  "h",  "f",           "d",  "Zd",
                                          "3s", "5s", "T{i:a:b:b:}", ">i", "100s"};
    static unsigned char wanted[FOREIGN_BYTES];
    foreign_begin();
    for (int round = 0; round < 3000; round++) {
        const char *format = formats[shapes_random(10)];
        int64_t shape[8];
        uint32_t ndim = shapes_shape(shape);
        struct shmview_view to, from;
        if (round % 100 == 0)
            shapes_scribble();
        if (!shapes_view(format, ndim, shape, 0, HALF, false, &to) ||
            !shapes_view(format, ndim, shape, HALF, HALF, true, &from))
            continue;
        memcpy(wanted, foreign_memory, FOREIGN_BYTES);
        for (uint64_t i = 0; i < to.nbytes / to.itemsize; i++)
            memcpy(wanted + (shapes_at(&to, i) - foreign_memory), shapes_at(&from, i), to.itemsize);
        ck_assert_int_eq(shmview_copy(&to, &from), 0);
        ck_assert_msg(memcmp(wanted, foreign_memory, FOREIGN_BYTES) == 0, "round %d, %s, %u", round,
                      format, ndim);
    }
    foreign_end();
}
END_TEST

/* --- Conversions --------------------------------------------------------- */

static struct value edges[2 * VALUE_EDGES];
static size_t n_edges;

static void make_edges(void)
{
    huge integers[VALUE_EDGES];
    double doubles[VALUE_EDGES];
    size_t n_integers = value_integers(integers), n_doubles = value_doubles(doubles);
    n_edges = 0;
    for (size_t i = 0; i < n_integers; i++)
        edges[n_edges++] = value_int(integers[i]);
    for (size_t i = 0; i < n_doubles; i++)
        edges[n_edges++] = value_real((long double)doubles[i]);
    for (size_t i = 0; i < n_doubles; i += 7)
        edges[n_edges++] = value_complex((long double)doubles[i], 2);
}

static void put(const struct shmview_view *view, uint64_t at, struct value v)
{
    struct shmview_value n =
        v.is_integer && v.i > INT64_MAX
            ? (struct shmview_value){.kind = SHMVIEW_VALUE_UINT, .u = (uint64_t)v.i}
        : v.is_integer ? number_of_int64((int64_t)v.i)
                       : number_of_complex(v.re, v.im);
    VALUE_ASSERT(number_store(view->dtype, &n, shapes_at(view, at)), "%s", view->format);
}

struct side {
    const struct value_type *type;
    bool swapped;
    struct shmview_view view;
};

/* Makes n elements, each `step` times as far from the next as it must be. */
static struct side make_side(const struct value_type *t, bool swapped, uint64_t offset, int64_t n,
                             int64_t step)
{
    const int64_t stride = step * (int64_t)t->bytes;
    const struct shmview_view_spec spec = {
        .format = value_type_format(t, swapped),
        .offset = offset + (step < 0 ? (uint64_t)((1 - n) * stride) : 0),
        .ndim = 1,
        .shape = &n,
        .strides = &stride,
    };
    return (struct side){t, swapped, foreign_view(&spec)};
}

/* Copies all values that the target type has in one call. Then it puts each other value among them:
 * the copy must report its index and skip it. */
static void check_conversion(struct side *to, struct side *from)
{
    static struct value wanted[2 * VALUE_EDGES];
    struct value bad[2 * VALUE_EDGES], as;
    size_t n = 0, n_bad = 0;
    for (size_t i = 0; i < n_edges; i++)
        if (value_convert(from->type, edges[i], &as)) {
            if (value_convert(to->type, as, &wanted[n]))
                put(&from->view, n++, edges[i]);
            else
                bad[n_bad++] = edges[i];
        }
    ck_assert_uint_gt(n, 0);
    from->view.shape[0] = to->view.shape[0] = (ptrdiff_t)n;
    from->view.nbytes = n * from->type->bytes;
    to->view.nbytes = n * to->type->bytes;
    VALUE_ASSERT(shmview_copy(&to->view, &from->view) == 0, "%s from %s: %s", to->view.format,
                 from->view.format, shmview_error_text());
    for (size_t i = 0; i < n; i++)
        VALUE_ASSERT(
            value_same(value_read(to->type, to->swapped, shapes_at(&to->view, i)), wanted[i]),
            "%s from %s, element %zu", to->view.format, from->view.format, i);
    for (size_t k = 0; k<n_bad; k += n_bad> 20 ? n_bad / 20 : 1) {
        size_t at = k * 31 % n;
        char text[200];
        unsigned char kept[32];
        memcpy(kept, shapes_at(&from->view, at), from->type->bytes);
        put(&from->view, at, bad[k]);
        for (size_t i = 0; i < n; i++)
            memset(shapes_at(&to->view, i), 0xc3, to->type->bytes);
        int r = shmview_copy(&to->view, &from->view);
        snprintf(text, sizeof text, "element [%zu]: ", at);
        VALUE_ASSERT(r == -SHMVIEW_ERR_CONVERSION &&
                         strncmp(shmview_error_text(), text, strlen(text)) == 0,
                     "%s from %s at %zu: %d, %s", to->view.format, from->view.format, at, r,
                     shmview_error_text());
        for (size_t i = 0; i < at; i++)
            VALUE_ASSERT(
                value_same(value_read(to->type, to->swapped, shapes_at(&to->view, i)), wanted[i]),
                "%s from %s, %zu before %zu", to->view.format, from->view.format, i, at);
        for (size_t i = 0; i < to->type->bytes; i++)
            VALUE_ASSERT(shapes_at(&to->view, at)[i] == 0xc3, "%s from %s: %zu was written",
                         to->view.format, from->view.format, at);
        memcpy(shapes_at(&from->view, at), kept, from->type->bytes);
    }
}

static void check_all(int64_t to_step, int64_t from_step, bool to_swapped, bool from_swapped)
{
    foreign_begin();
    make_edges();
    for (size_t i = 0; i < N_VALUE_TYPES; i++)
        for (size_t k = 0; k < N_VALUE_TYPES; k++) {
            const struct value_type *q = &value_types[i], *p = &value_types[k];
            if ((to_swapped && !value_type_can_swap(q)) ||
                (from_swapped && !value_type_can_swap(p)) || (i == k && to_swapped == from_swapped))
                continue;
            struct side to = make_side(q, to_swapped, 0, (int64_t)n_edges, to_step);
            struct side from = make_side(p, from_swapped, HALF, (int64_t)n_edges, from_step);
            if (i != k)
                check_conversion(&to, &from);
        }
    foreign_end();
}

START_TEST(contiguous)
{
    check_all(1, 1, false, false);
}
END_TEST

START_TEST(strided_to_contiguous)
{
    check_all(1, 2, false, false);
}
END_TEST

START_TEST(contiguous_to_strided)
{
    check_all(-2, 1, false, false);
}
END_TEST

START_TEST(swapped)
{
    check_all(1, 1, true, false);
    check_all(1, 1, false, true);
    check_all(1, -1, true, true);
}
END_TEST

/* In any shape, a converted view has the values that single elements would get. */
START_TEST(any_shape_converted)
{
    static const char *const formats[] = {"b", "B", "h", "i",  ">i", "q", "f",        ">f",
                                          "d", "e", "?", "Zf", "Zd", "g", "bfloat16", ">h"};
    static unsigned char wanted[FOREIGN_BYTES];
    foreign_begin();
    for (int round = 0; round < 4000; round++) {
        const char *to_format = formats[shapes_random(16)], *format = formats[shapes_random(16)];
        int64_t shape[8];
        uint32_t ndim = shapes_shape(shape);
        struct shmview_view to, from;
        if (!shapes_view(to_format, ndim, shape, 0, HALF, false, &to) ||
            !shapes_view(format, ndim, shape, HALF, HALF, true, &from))
            continue;
        memset(foreign_memory, 0, HALF);
        for (uint64_t i = 0; i < from.nbytes / from.itemsize; i++) {
            struct shmview_value n = number_of_int64((int64_t)shapes_random(128));
            ck_assert(number_store(from.dtype, &n, shapes_at(&from, i)));
        }
        memcpy(wanted, foreign_memory, FOREIGN_BYTES);
        for (uint64_t i = 0; i < to.nbytes / to.itemsize; i++) {
            struct shmview_value n = number_load(from.dtype, shapes_at(&from, i));
            number_store(to.dtype, &n, wanted + (shapes_at(&to, i) - foreign_memory));
        }
        ck_assert_int_eq(shmview_copy(&to, &from), 0);
        ck_assert_msg(memcmp(wanted, foreign_memory, FOREIGN_BYTES) == 0,
                      "round %d, %s from %s, %u dimensions", round, to_format, format, ndim);
    }
    foreign_end();
}
END_TEST

/* The error names the first element in C order, even if the copy runs in another order. */
START_TEST(first_of_several)
{
    foreign_begin();
    struct shmview_view to = foreign_view(&(struct shmview_view_spec){
        .format = "b", .ndim = 2, .shape = INTS(40, 50), .strides = INTS(1, 40)});
    struct shmview_view from = foreign_view(&(struct shmview_view_spec){
        .format = "i", .offset = HALF, .ndim = 2, .shape = INTS(40, 50)});
    memset(foreign_memory, 0x11, 2000);
    for (int i = 0; i < 2000; i++)
        ((int32_t *)(void *)(foreign_memory + HALF))[i] = i % 100;
    ((int32_t *)(void *)(foreign_memory + HALF))[7 * 50 + 20] = -129;
    ((int32_t *)(void *)(foreign_memory + HALF))[30 * 50 + 3] = 1000;
    assert_fails(shmview_copy(&to, &from), SHMVIEW_ERR_CONVERSION,
                 "element [7, 20]: -129 is no value of int8");
    for (int i = 0; i < 7 * 50 + 20; i++)
        ck_assert_int_eq(foreign_memory[i / 50 + i % 50 * 40], i % 100);
    ck_assert_int_eq(foreign_memory[7 + 20 * 40], 0x11);
    ck_assert_int_eq(foreign_memory[30 + 3 * 40], 0x11);
    foreign_end();
}
END_TEST

/* --- What is refused ----------------------------------------------------- */

START_TEST(refused)
{
    foreign_begin();
    struct shmview_view row = foreign_row("i", 0, 6), other = foreign_row("i", 1000, 5);
    struct shmview_view s5 = foreign_row("5s", 0, 6), s6 = foreign_row("6s", 1000, 6);
    struct shmview_view square = foreign_view(
        &(struct shmview_view_spec){.format = "i", .offset = 1000, .ndim = 2, .shape = INTS(2, 3)});
    assert_fails(shmview_copy(&row, &other), SHMVIEW_ERR_INVALID,
                 "a view of shape [6] cannot take one of [5]");
    assert_fails(shmview_copy(&row, &square), SHMVIEW_ERR_INVALID,
                 "a view of shape [6] cannot take one of [2, 3]");
    assert_fails(shmview_copy(&s5, &s6), SHMVIEW_ERR_CONVERSION,
                 "format \"5s\" cannot be made of \"6s\"");
    assert_fails(shmview_copy(&row, &s6), SHMVIEW_ERR_CONVERSION,
                 "format \"i\" cannot be made of \"6s\"");
    assert_fails(shmview_copy(&s6, &row), SHMVIEW_ERR_CONVERSION,
                 "format \"6s\" cannot be made of \"i\"");
    row.flags |= SHMVIEW_VIEW_READ_ONLY;
    assert_fails(shmview_copy(&row, &row), SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    foreign_end();
}
END_TEST

START_TEST(nothing_and_one)
{
    foreign_begin();
    struct shmview_view none = foreign_row("i", 0, 0), no_text = foreign_row("d", 64, 0);
    struct shmview_view one = foreign_view(&(struct shmview_view_spec){.format = "i"});
    struct shmview_view real =
        foreign_view(&(struct shmview_view_spec){.format = "d", .offset = 64});
    ck_assert_int_eq(shmview_copy(&none, &no_text), 0);
    *(double *)(void *)(foreign_memory + 64) = 42;
    ck_assert_int_eq(shmview_copy(&one, &real), 0);
    ck_assert_int_eq(*(int *)(void *)foreign_memory, 42);
    *(double *)(void *)(foreign_memory + 64) = 42.5;
    assert_fails(shmview_copy(&one, &real), SHMVIEW_ERR_CONVERSION,
                 "element []: 42.5 is no value of int32");
    foreign_end();
}
END_TEST

UNIT_MAIN("copy", UNIT_TEST(any_shape), UNIT_TEST(contiguous), UNIT_TEST(strided_to_contiguous),
          UNIT_TEST(contiguous_to_strided), UNIT_TEST(swapped), UNIT_TEST(any_shape_converted),
          UNIT_TEST(first_of_several), UNIT_TEST(refused), UNIT_TEST(nothing_and_one))
