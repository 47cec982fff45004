/* SPDX-License-Identifier: Apache-2.0 */
/* The longest contents of a message, for tests of requests and replies. */
#ifndef UNIT_LONG_LAYOUT_H
#define UNIT_LONG_LAYOUT_H

#include "unit/unit.h"

#include "common/base/limits.h"
#include "common/wire/wire.h"

static char name_128[LIMIT_NAME_BYTES + 1], name_64[LIMIT_VIEW_NAME_BYTES + 1];

static inline void fill_names(void)
{
    memset(name_128, 'N', LIMIT_NAME_BYTES);
    memset(name_64, 'V', LIMIT_VIEW_NAME_BYTES);
}

static inline void assert_same_view(const struct wire_view *a, const struct wire_view *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert_str_eq(a->format, b->format);
    const struct view_desc *x = &a->desc, *y = &b->desc;
    size_t bytes = x->ndim * sizeof(int64_t);
    ck_assert_uint_eq(x->ndim, y->ndim);
    ck_assert_mem_eq(x->shape, y->shape, bytes);
    ck_assert_int_eq(a->has_strides, b->has_strides);
    if (a->has_strides)
        ck_assert_mem_eq(x->strides, y->strides, bytes);
    ck_assert_int_eq(x->indirect, y->indirect);
    if (x->indirect)
        ck_assert_mem_eq(x->suboffsets, y->suboffsets, bytes);
    ck_assert_int_eq(x->read_only, y->read_only);
    ck_assert_uint_eq(x->offset, y->offset);
}

/* Returns the longest layout that a request may have. */
static inline struct wire_layout longest_layout(void)
{
    struct wire_layout l = {name_64, calloc(LIMIT_VIEWS, sizeof *l.views), LIMIT_VIEWS};
    fill_names();
    for (size_t i = 0; i < LIMIT_VIEWS; i++) {
        l.views[i] = (struct wire_view){
            .name = name_64,
            .format = "float64",
            .has_strides = i % 3 != 0,
            .desc = {.ndim = (uint32_t)(i % 9), .read_only = i % 2, .offset = INT64_MAX - i}};
        for (size_t k = 0; k < 8; k++) {
            l.views[i].desc.shape[k] = INT64_MAX - (int64_t)k;
            l.views[i].desc.strides[k] = INT64_MIN + (int64_t)k;
        }
    }
    return l;
}

#endif
