/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts views into pieces that a buffer of limited size can hold, and compares the pieces with
 * the whole view. */
#include "unit/unit.h"

#include <shmview/shmview.h>

#include "cli/data/pieces.h"

#define N (3 * 4 * 5)

static int32_t elements[N];
static struct shmview_segment *segment;

static struct shmview_view make(uint32_t ndim, const int64_t *shape)
{
    const struct shmview_view_spec spec = {.format = "i", .ndim = ndim, .shape = shape};
    struct shmview_view v;
    for (int32_t i = 0; i < N; i++)
        elements[i] = i;
    ck_assert_int_eq(shmview_wrap(elements, sizeof elements, 0, NULL, NULL, &segment), 0);
    ck_assert_int_eq(shmview_view_make(segment, &spec, &v), 0);
    return v;
}

/* Lists the elements of a view in C order. Returns their number. */
static size_t list(const struct shmview_view *v, uint32_t d, ptrdiff_t *index, int32_t *ret)
{
    size_t n = 0;
    if (d == v->ndim) {
        *ret = *(int32_t *)shmview_at(v, index);
        return 1;
    }
    for (index[d] = 0; index[d] < v->shape[d]; index[d]++)
        n += list(v, d + 1, index, ret + n);
    return n;
}

/* Together the pieces must be the view, and each must keep to the limit. */
static void assert_pieces(const struct shmview_view *v)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
    int32_t whole[N], pieced[N];
    size_t n = list(v, 0, index, whole);
    for (uint64_t limit = 1; limit < 4 * N + 8; limit++) {
        struct pieces pieces;
        struct shmview_view piece;
        size_t at = 0;
        pieces_begin(&pieces, v, limit);
        while (pieces_next(&pieces, &piece) == PIECES_NEXT) {
            ck_assert(piece.nbytes <= limit || piece.nbytes == sizeof(int32_t));
            ck_assert_uint_le(at + piece.nbytes / sizeof(int32_t), n);
            at += list(&piece, 0, index, pieced + at);
        }
        ck_assert_uint_eq(at, n);
        ck_assert_int_eq(memcmp(whole, pieced, n * sizeof *whole), 0);
        ck_assert_int_eq(pieces_next(&pieces, &piece), PIECES_END);
    }
}

START_TEST(every_limit)
{
    const int64_t shape[] = {3, 4, 5};
    struct shmview_view v = make(3, shape), part;
    assert_pieces(&v);
    ck_assert_int_eq(shmview_view_transpose(&v, NULL, &part), 0);
    assert_pieces(&part);
    ck_assert_int_eq(shmview_view_slice(&v, 1, SHMVIEW_OMIT, SHMVIEW_OMIT, -2, &part), 0);
    assert_pieces(&part);
    ck_assert_int_eq(shmview_view_index(&v, 0, 1, &part), 0);
    assert_pieces(&part);
    shmview_detach(segment);
}
END_TEST

START_TEST(one_and_none)
{
    const int64_t empty[] = {3, 0, 5};
    struct shmview_view v = make(0, NULL);
    assert_pieces(&v);
    shmview_detach(segment);
    v = make(3, empty);
    assert_pieces(&v);
    shmview_detach(segment);
}
END_TEST

UNIT_MAIN("cli_pieces", UNIT_TEST(every_limit), UNIT_TEST(one_and_none))
