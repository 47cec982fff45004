/* SPDX-License-Identifier: Apache-2.0 */
/* elements - the ways to an element, from the fastest to the most careful.
 *
 * The memory is the program's own (shmview_wrap()), so that this needs no daemon. All of it works
 * the same with the memory of a segment, under its lock.
 *
 * Build with: cc elements.c $(pkg-config --cflags --libs shmview) */
#include <complex.h>
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <shmview/shmview.h>

static int must(int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s", what, shmview_error_text());
    return result;
}

static void expect(const char *what, double found, double wanted)
{
    if (found < wanted || found > wanted)
        errx(1, "%s is %g, not %g", what, found, wanted);
}

/* --- A type that the program knows ---------------------------------------- */

/* Numbers the elements of a view of three dimensions, and reads them back in several ways. */
static void known_type(const struct shmview_view *cube)
{
    const ptrdiff_t index[] = {1, 2, 3};
    struct shmview_view plane;
    int n = 0;
    for (ptrdiff_t i = 0; i < cube->shape[0]; i++)
        for (ptrdiff_t j = 0; j < cube->shape[1]; j++)
            for (ptrdiff_t k = 0; k < cube->shape[2]; k++)
                SHMVIEW_AT3(int32_t, cube, i, j, k) = n++;
    expect("the last element", *(int32_t *)shmview_at(cube, index), 23);
    expect("the first of a row", *(int32_t *)shmview_at2(cube, 1, 2), 20);

    must(shmview_view_index(cube, 0, 1, &plane), "the second plane");
    if (shmview_is_contiguous(&plane))
        expect("element 11 of the plane", SHMVIEW_DATA(int32_t, &plane)[11], 23);
    must(shmview_view_slice(cube, 2, 0, 2, 1, &plane), "a part of each row");
    expect("whether that has gaps", shmview_is_contiguous(&plane), 0);
    expect("whether its rows have gaps", shmview_rows_contiguous(&plane), 1);
    expect("the order", shmview_view_is_contiguous(cube, 'C'), 1);
}

/* Sums a matrix that may have any type and strides. Returns -1 if it is none of int32. */
static int64_t careful_sum(const struct shmview_view *view)
{
    int64_t sum = 0;
    if (!SHMVIEW_IS_ND(const int32_t, view, 2))
        return -1;
    for (ptrdiff_t i = 0; i < view->shape[0]; i++) {
        struct shmview_strided_row row = SHMVIEW_CHECKED_STRIDED(const int32_t, view, i);
        const int32_t *x;
        for (ptrdiff_t j = 0; (x = SHMVIEW_TRY_ELEM(const int32_t, row, j)); j++)
            sum += *x;
    }
    return sum;
}

/* An index from outside leads to NULL, and never to other bytes. */
static void checked(const struct shmview_view *cube)
{
    const ptrdiff_t inside[] = {1, 2, 3}, outside[] = {1, 3, 0};
    struct shmview_view plane, line;
    must(shmview_view_index(cube, 0, 0, &plane), "the first plane");
    must(shmview_view_index(&plane, 0, 0, &line), "its first row");
    expect("element 3", *SHMVIEW_TRY1(int32_t, &line, 3), 3);
    expect("element [2, 1]", *SHMVIEW_TRY2(int32_t, &plane, 2, 1), 9);
    expect("element [1, 0, 0]", *SHMVIEW_TRY3(int32_t, cube, 1, 0, 0), 12);
    expect("element [1, 2, 3]", *SHMVIEW_TRY(int32_t, cube, inside), 23);
    if (SHMVIEW_TRY(int32_t, cube, outside) || SHMVIEW_TRY1(float, &line, 0) ||
        SHMVIEW_CHECKED_DATA(float, cube) || SHMVIEW_IS(int64_t, cube))
        errx(1, "an index outside or a wrong type was accepted");
    expect("the first of row 1", SHMVIEW_CHECKED_ROW(int32_t, &plane, 1)[0], 4);
    expect("the sum", (double)careful_sum(&plane), 66);
    expect("the sum of a line", (double)careful_sum(&line), -1);
}

/* --- A type that only the run time knows ----------------------------------- */

/* Gets and sets elements with a conversion. A value that the type cannot hold is refused. */
static void converted(const struct shmview_view *cube, struct shmview_segment *memory)
{
    const ptrdiff_t index[] = {0, 0, 1}, first[] = {0};
    double pair[2] = {3, 4};
    int64_t integer;
    int32_t bytes;
    struct shmview_view wave;
    must(shmview_set_int64(cube, index, 77), "set");
    must(shmview_get_int64(cube, index, &integer), "get");
    must(shmview_get_bytes(cube, index, &bytes), "get bytes");
    expect("the integer", (double)integer, bytes);
    must(shmview_set_bytes(cube, index, &(int32_t){1}), "set bytes");
    if (shmview_set_double(cube, index, 0.5) != -SHMVIEW_ERR_CONVERSION)
        errx(1, "half an integer was stored");
    printf("refused: %s\n", shmview_error_text());

    must(shmview_view_cast(memory, "complex64", 96, 8, &wave), "complex");
    must(shmview_set_complex(&wave, first, pair), "set complex");
    must(shmview_get_complex(&wave, first, pair), "get complex");
    expect("the imaginary part", cimagf(SHMVIEW_AT1(float _Complex, &wave, 0)), pair[1]);
}

/* --- Whole views and other views of them ----------------------------------- */

/* Fills and compares whole views. A broadcast column has strides of 0, so it takes no memory. */
static void whole(const struct shmview_view *cube)
{
    const int32_t five = 5;
    const int64_t shape[] = {2, 3, 4};
    ptrdiff_t at[SHMVIEW_MAX_NDIM];
    struct shmview_view one, many;
    must(shmview_fill(cube, &five), "fill");
    must(shmview_view_slice(cube, 2, 0, 1, 1, &one), "one column");
    must(shmview_view_broadcast(&one, 3, shape, &many), "broadcast");
    expect("whether all are equal", must(shmview_equal(cube, &many, at), "compare"), 1);
    SHMVIEW_AT3(int32_t, cube, 1, 1, 1) = 6;
    expect("whether all are equal", must(shmview_equal(cube, &many, at), "compare"), 0);
    printf("different at [%td, %td, %td]\n", at[0], at[1], at[2]);
}

/* One field of an array of structs is a view with strides. */
static void fields(struct shmview_segment *memory)
{
    struct shmview_view points, y;
    must(shmview_view_cast(memory, "T{f:x:f:y:}", 0, 32, &points), "points");
    must(shmview_view_field(&points, "y", &y), "the field y");
    must(shmview_fill_double(&y, 1.5), "fill");
    expect("y of the last point", SHMVIEW_AT1(float, &y, 3), 1.5);
}

/* --- Exchange with other libraries ----------------------------------------- */

/* A library from before DLPack 1.0 takes the old form of a tensor. An imported tensor belongs to a
 * segment of its own, which calls the tensor's deleter when it is detached. */
static void exchange(const struct shmview_view *cube)
{
    struct DLManagedTensor *tensor;
    struct shmview_segment *owner;
    struct shmview_view same;
    must(shmview_dlpack_export(cube, &tensor), "export");
    must(shmview_dlpack_import(tensor, &owner, &same), "import");
    expect("the same address", same.data == cube->data, 1);
    must(shmview_detach_later(owner), "detach");
}

/* Called once, when the wrapped memory is not used any longer. */
static void on_release(void *arg)
{
    printf("released: %s\n", (const char *)arg);
}

int main(void)
{
    static int32_t numbers[26];
    static const int64_t shape[] = {2, 3, 4};
    const struct shmview_view_spec spec = {.format = "int32", .ndim = 3, .shape = shape};
    struct shmview_segment *memory;
    struct shmview_view cube;
    char name[] = "the numbers";
    must(shmview_wrap(numbers, sizeof numbers, 0, on_release, name, &memory), "wrap");
    must(shmview_view_make(memory, &spec, &cube), "view");
    known_type(&cube);
    checked(&cube);
    converted(&cube, memory);
    whole(&cube);
    fields(memory);
    exchange(&cube);
    must(shmview_detach(memory), "detach");
    return 0;
}
